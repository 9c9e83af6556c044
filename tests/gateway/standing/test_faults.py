"""Standing jobs on a gateway whose database fails at any one call, or loses its answer: a job runs and ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import Connection

from gateway.standing.gateways import waited
from lithify.api.wiring.system_clock import SystemClock
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.gateways.jobs_sql import SqlStandingJobs
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.daemons.stop import Stop
from lithify.errors import CoordinationError
from lithify.gateway.standing import standing_jobs
from lithify.gateway.standing.options import StandingOptions
from lithify.gateway.standing.standing_jobs import StandingJobs
from lithify.model.jobs.definition import StandingJob

T = TypeVar("T")

HOUR_MS = 3_600_000
LEASE_MS = 60
SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")


class Still(SystemClock):
    """A steady clock that never moves, an hour ahead: no lease ends, and no guard loses patience."""

    def __init__(self) -> None:
        self._now_ms = super().monotonic_ms() + HOUR_MS

    def monotonic_ms(self) -> int:
        return self._now_ms


class Struck(Transactions):
    """Transactions of which one fails: before it is done, or after it."""

    def __init__(self, url: str, at: int, *, is_done: bool) -> None:
        super().__init__(engine_at(url))
        self._at, self._is_done, self.calls = at, is_done, 0

    def done(self, work: Callable[[Connection], T]) -> T:
        self.calls += 1
        if self.calls != self._at:
            return super().done(work)
        if self._is_done:
            super().done(work)
        raise CoordinationError("injected")


@pytest.mark.parametrize("is_done", [False, True], ids=["fails", "loses its answer"])
def test_one_failure_at_any_call_leaves_no_job_without_a_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    monkeypatch.setattr(standing_jobs, "TICK_S", 0.01)
    at, calls = 0, 0
    while calls >= at:
        at += 1
        url = f"sqlite:///{tmp_path}/leases{at}.db"
        calls = a_life(url, Struck(url, at, is_done=is_done))
    assert at > 15


def a_life(url: str, struck: Struck) -> int:
    """A job is added, runs and is paused; returns how many transactions that took."""
    stored, stop = SqlStandingJobs(Transactions(engine_at(url)), "lake"), Stop()
    clock, options = Still(), StandingOptions("g", lease_ms=LEASE_MS, program=SLEEPER)
    gateway = StandingJobs(SqlStandingJobs(struck, "lake"), clock, options, stop, lambda _event: None)

    def lives(until: Callable[[], bool]) -> None:
        def lived() -> bool:
            gateway.beat()
            gateway.step()
            return until()

        waited(lived, within_s=5)

    def is_free() -> bool:
        return not any("/job/" in lease.name for lease in stored.leases.leases())

    assert stored.add(StandingJob("job", (), None, paused=False, created_ms=1))
    try:
        lives(lambda: gateway.running() == ("job",))
        stored.pause("job", paused=True)
        lives(lambda: gateway.running() == () and is_free())
        (paused,) = stored.jobs()
        assert paused.state is not None and not paused.state.running
    finally:
        stop.ask("the test ends")
        waited(lambda: gateway.step() and not gateway.running())
        gateway.close()
    return struck.calls
