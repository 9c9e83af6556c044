"""Standing jobs on two gateways while anything happens to them: none runs twice at once, and all run in the end."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

from gateway.standing.gateways import LEASE_MS, GatewayProcess, Journal, is_running, waited
from lithify.api.wiring.system_clock import SystemClock
from lithify.coordination.leases.gateways.jobs_sql import SqlStandingJobs, open_standing_jobs
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.jobs.definition import StandingJob
from support.processes.frozen import freeze

pytestmark = [pytest.mark.kills, pytest.mark.timeout(600)]

JOBS = ("endless", "stubborn", "often")
STEPS = 12


@pytest.mark.parametrize("seed", [1, 2])
def test_no_job_runs_twice_and_all_run_in_the_end(tmp_path: Path, seed: int) -> None:
    with closing(Schedule(tmp_path, Random(seed))) as schedule:
        for _ in range(STEPS):
            schedule.step()
        schedule.end()


class Schedule:
    """Two gateways, three jobs, and what happens."""

    def __init__(self, folder: Path, random: Random) -> None:
        self._database, self._random = folder / "leases.db", random
        self._jobs: SqlStandingJobs = open_standing_jobs(self._url, None, WarehouseScope.of("lake"))
        self._journals = {name: Journal(folder / name) for name in JOBS}
        for name in JOBS:
            self._add(name)
        self._gateways = [GatewayProcess(self._url, "a"), GatewayProcess(self._url, "b")]
        self.told: list[str] = []

    @property
    def _url(self) -> str:
        return f"sqlite:///{self._database}"

    def step(self) -> None:
        happens = self._random.choice(
            [
                *(self._kill, self._terminate, self._freeze, self._freeze, self._pause, self._resume, self._replace),
                *(self._strike_guard, self._freeze_guard, self._strike_child, self._freeze_child, self._lock),
            ]
        )
        self.told.append(happens.__name__)
        happens()
        time.sleep(self._random.choice((0.0, 0.05, 0.5, 2.5)))
        self._check()

    def end(self) -> None:
        for name in JOBS:
            assert self._jobs.remove(name)
            self._add(name)  # one that has failed often would wait for long
        since_ms = time.monotonic_ns() // 1_000_000
        for journal in self._journals.values():
            waited(lambda j=journal: any(at > since_ms and is_lively(what) for at, _, what in j.notes()))
        for name in JOBS:
            assert self._jobs.remove(name)
        for journal in self._journals.values():
            waited(lambda j=journal: len(set(j.pids()) - gone(j)) == 0)
        self._check()

    def close(self) -> None:
        for gateway in self._gateways:
            gateway.__exit__()

    def _check(self) -> None:
        for journal in self._journals.values():
            assert journal.times("overlap") == [], self.told

    def _add(self, name: str) -> None:
        mode = {"endless": "works", "stubborn": "stubborn", "often": "reports"}[name]
        arguments = (mode, str(self._journals[name].path))
        every_ms = 1_000 if name == "often" else None
        assert self._jobs.add(StandingJob(name, arguments, every_ms, paused=False, created_ms=SystemClock().now_ms()))

    def _kill(self) -> None:
        at = self._random.randrange(2)
        self._gateways[at].__exit__()
        time.sleep(self._random.choice((0.0, LEASE_MS / 1000)))
        self._gateways[at] = GatewayProcess(self._url, "ab"[at])

    def _terminate(self) -> None:
        at = self._random.randrange(2)
        self._gateways[at].signal(signal.SIGTERM)
        assert self._gateways[at].ended() in (0, -signal.SIGTERM)  # before it has its handler
        self._gateways[at].__exit__()
        self._gateways[at] = GatewayProcess(self._url, "ab"[at])

    def _freeze(self) -> None:
        gateway = self._random.choice(self._gateways)
        freeze(gateway.process, self._database)  # type: ignore[arg-type]  # which reads no text of it
        time.sleep(self._random.choice((0.3, 1.0, 2.0)) * LEASE_MS / 1000)
        gateway.signal(signal.SIGCONT)

    def _pause(self) -> None:
        self._jobs.pause(self._random.choice(JOBS), paused=True)

    def _resume(self) -> None:
        self._jobs.pause(self._random.choice(JOBS), paused=False)

    def _replace(self) -> None:
        name = self._random.choice(JOBS)
        assert self._jobs.remove(name)
        time.sleep(self._random.choice((0.0, 0.5)))
        self._add(name)

    def _strike_guard(self) -> None:
        self._struck(self._guard, signal.SIGKILL)

    def _strike_child(self) -> None:
        self._struck(self._child, signal.SIGKILL)

    def _freeze_guard(self) -> None:
        self._frozen(self._guard)

    def _freeze_child(self) -> None:
        self._frozen(self._child)

    def _lock(self) -> None:
        with closing(sqlite3.connect(self._database, timeout=60, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(self._random.choice((0.5, 3.0, 7.0)))
            connection.execute("ROLLBACK")

    def _frozen(self, which: Callable[[], int | None]) -> None:
        if (pid := self._struck(which, signal.SIGSTOP)) is not None:
            time.sleep(self._random.choice((0.3, 2.0)) * LEASE_MS / 1000)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _struck(self, which: Callable[[], int | None], number: signal.Signals) -> int | None:
        pid = which()
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return pid

    def _child(self) -> int | None:
        journal = self._journals[self._random.choice(("endless", "stubborn"))]
        alive = [pid for pid in journal.pids() if is_running(pid)]
        return alive[-1] if alive else None

    def _guard(self) -> int | None:
        if (child := self._child()) is None:
            return None
        try:
            parent = int(Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].split()[1])
            return parent if b"guard.py" in Path(f"/proc/{parent}/cmdline").read_bytes() else None
        except OSError:
            return None


def is_lively(what: str) -> bool:
    return what in ("begin", "alive")


def gone(journal: Journal) -> set[int]:
    return {pid for pid in journal.pids() if not is_running(pid)}
