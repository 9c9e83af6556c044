"""Ctrl-C cancels the job at the gateway, and what is said of the data then is true."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

import lithify as package
from cli.conftest import plain_rounds
from cli.surroundings.test_interrupts import handled, press
from gateway.conftest import ENOUGH_S
from lithify.gateway.client import jobs
from lithify.gateway.server.jobs.jobs import Job, Jobs
from lithify.store.iceberg.store import IcebergStore
from lithify.testing.oracle_engine import OracleEngine

__all__ = ["handled", "plain_rounds"]

pytestmark = pytest.mark.usefixtures("plain_rounds", "handled")


@pytest.fixture
def orders(lithify):
    lithify("topic", "create", "orders")
    lithify("produce", "orders", stdin='{"key":"a","value":"1"}\n{"key":"a","value":"2"}')
    return lithify


@pytest.fixture
def pressed_in_rounds(monkeypatch) -> Callable[[Event], list[Job]]:
    """Presses Ctrl-C in each round, which then waits for an event; returns the jobs that were cancelled."""

    def arrange(go_on: Event, *, at_cancel: bool = False) -> list[Job]:
        cancelled: list[Job] = []
        open_round, cancel = OracleEngine.open_round, Jobs.cancel

        def noted(jobs: Jobs, job: Job) -> None:
            cancel(jobs, job)
            cancelled.append(job)
            if at_cancel:
                go_on.set()

        def struck(*given: Any) -> Any:
            press()
            assert go_on.wait(ENOUGH_S)
            return open_round(*given)

        monkeypatch.setattr(Jobs, "cancel", noted)
        monkeypatch.setattr(OracleEngine, "open_round", struck)
        return cancelled

    return arrange


def version(program) -> int:
    return package.open(str(program.warehouse)).topic("orders").state().version


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_before_the_commit_the_round_is_cancelled(orders, pressed_in_rounds, form):
    cancelled, at = pressed_in_rounds(Event(), at_cancel=True), version(orders)
    stopped = orders("compact", "orders", *form, code=130)
    said = [line for line in stopped.err.splitlines() if "free until the replaced files" not in line]  # may come before
    assert len(said) == 1 and "interrupted: the logs of orders are unchanged" in said[0]
    assert (stopped.out, version(orders)) == ("", at)
    assert [job.operation for job in cancelled] == ["compact"]


def test_a_round_that_does_not_end_in_time_may_have_changed_the_topic(orders, pressed_in_rounds, monkeypatch):
    monkeypatch.setattr(jobs, "ENDS_WITHIN_S", 0.2)
    go_on = Event()
    pressed_in_rounds(go_on)
    try:
        stopped = orders("compact", "orders", code=130)
    finally:
        go_on.set()
    last = "interrupted: orders may have been changed; `lithify history orders` shows whether it was"
    assert stopped.err.splitlines()[-1] == last


def test_a_commit_that_is_under_way_is_waited_for(orders, monkeypatch):
    commit, at = IcebergStore.commit, version(orders)

    def struck(store, base, edit):
        press()
        return commit(store, base, edit)

    monkeypatch.setattr(IcebergStore, "commit", struck)
    stopped = orders("compact", "orders", code=130)
    assert stopped.err.splitlines()[-1] == f"interrupted: orders was changed, version {at + 1}"
    assert version(orders) == at + 1
