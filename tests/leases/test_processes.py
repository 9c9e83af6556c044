"""Leases between processes: races, one that is killed, one that is frozen and woken."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import pytest

from leases.conftest import SHARED
from leases.workers import TIMEOUT_S, keep, monotonic_ms, race
from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.coordination.leases.sql_coordination import open_coordination
from support.processes.store_workers import together

PROCESSES, ROUNDS = 4, 12
LEASE_MS = 1_000

shared = pytest.mark.parametrize("url", SHARED, indirect=True)


@shared
def test_of_processes_that_race_for_leases_one_gets_each(url: str) -> None:
    fresh = [[f"topic{round_}/{n}" for n in range(10)] for round_ in range(ROUNDS)]
    taken_over = fresh[::-1]

    wins = together(race, [(url, f"owner{n}", fresh + taken_over) for n in range(PROCESSES)])

    for names, won in zip(fresh + taken_over, zip(*wins, strict=True), strict=True):
        assert sorted(name for names_of_one in won for name in names_of_one) == sorted(names)
    owners = {lease.name: lease.owner for lease in open_coordination(url).leases()}
    last = {name: f"owner{n}" for n, won in enumerate(wins) for names in won[ROUNDS:] for name in names}
    assert owners == last


@shared
def test_the_lease_of_a_killed_process_is_taken_over(url: str) -> None:
    ours = LeaseKeeper(open_coordination(url), "ours", LEASE_MS, monotonic_ms)
    with a_keeping_process(url) as (process, said):
        assert _next(said) == ("taken", ["orders"])
        assert not _taken_within(ours, 2 * LEASE_MS)  # it renews
        os.kill(process.pid or 0, signal.SIGKILL)
        killed_ms = monotonic_ms()
        assert _taken_within(ours, 30 * LEASE_MS)
    assert monotonic_ms() - killed_ms > LEASE_MS / 2  # its last renewal was not long ago
    assert ours.holds("orders")


@shared
def test_a_process_that_was_frozen_past_its_lease_knows_when_it_wakes(url: str) -> None:
    ours = LeaseKeeper(open_coordination(url), "ours", LEASE_MS, monotonic_ms)
    with a_keeping_process(url) as (process, said):
        assert _next(said) == ("taken", ["orders"])
        os.kill(process.pid or 0, signal.SIGSTOP)
        assert _taken_within(ours, 30 * LEASE_MS)
        assert not said.poll()
        os.kill(process.pid or 0, signal.SIGCONT)
        heard = [_next(said)]
        while heard[-1][0] != "over":
            heard.append(_next(said))
    # Frozen in the middle of a renewal, that one may tell it; otherwise it doubts before it asks.
    assert heard in ([("doubts", ["orders"]), ("over", [])], [("over", [])])


@contextmanager
def a_keeping_process(url: str) -> Iterator[tuple[BaseProcess, Connection]]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=keep, args=(theirs, url, "theirs", LEASE_MS))
    process.start()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join(timeout=10)
        ours.close()
        theirs.close()


def _next(said: Connection) -> tuple[str, list[str]]:
    assert said.poll(TIMEOUT_S)
    what: tuple[str, list[str]] = said.recv()
    return what


def _taken_within(keeper: LeaseKeeper, within_ms: int) -> bool:
    def taken() -> bool:
        keeper.observe()
        return bool(keeper.take(["orders"]))

    return _comes(taken, within_ms)


def _comes(true: Callable[[], bool], within_ms: int) -> bool:
    deadline_ms = monotonic_ms() + within_ms
    while not (is_true := true()) and monotonic_ms() < deadline_ms:
        time.sleep(0.02)
    return is_true
