"""Runs of jobs where the machine has no more to give, or where all comes too late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.standing.gateways import is_running, waited
from lithify.api.wiring.system_clock import SystemClock
from lithify.gateway.standing import guard
from lithify.gateway.standing.child import Bounds, Child
from lithify.gateway.standing.guard import processes, steady_ms
from lithify.gateway.standing.options import StandingOptions
from lithify.gateway.standing.output import JobOutput
from lithify.gateway.standing.plan import LOST, STEADY_MS
from lithify.gateway.standing.reporter import JobReporter
from lithify.gateway.standing.runs import Runs
from lithify.model.jobs.definition import JobState, StandingJob, StoredJob
from lithify.reports.jobs.job_events import JobEvent

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")
SLOW = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(15, lambda *_: time.sleep(0.5) or exit()); time.sleep(600)",
)
JOB = StandingJob("job", (), None, paused=False, created_ms=1)
LEASE_MS = 3_000


@pytest.fixture
def no_thread() -> Iterator[None]:
    """No thread can be started: none finds place for its stack."""
    before = threading.stack_size(1 << 46)
    yield
    threading.stack_size(before)


@pytest.mark.usefixtures("no_thread")
def test_a_run_without_threads_to_read_it_is_none() -> None:
    with pytest.raises(OSError, match="thread"):
        Child(SLEEPER, {}, Bounds.of(60_000), steady_ms() + 60_000, JobOutput(time.sleep))
    assert processes(below=os.getpid()) == []


class Ahead(SystemClock):
    """A steady clock that can be put ahead."""

    ahead_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms


class Told:
    """The runs of one gateway, and what they tell."""

    def __init__(self, *program: str) -> None:
        self.events: list[JobEvent] = []
        self.notes: list[JobState] = []
        self.clock, options = Ahead(), StandingOptions("g", lease_ms=LEASE_MS, program=program)
        self.reporter = JobReporter(self.clock, "g", self.events.append)
        self.runs = Runs(options, self.clock, self.reporter, lambda _job, state: self.notes.append(state))

    def step(
        self, until_ms: int, job: StandingJob, before: JobState | None = None, *, ending: bool = False
    ) -> frozenset[str]:
        return self.runs.step({job.name: StoredJob(job, before)}, {job.name}, {job.name: until_ms}, ending=ending)


@pytest.mark.parametrize("program", [SLEEPER, SLOW], ids=["ends first", "is renewed first"])
def test_a_run_that_ended_as_its_lease_was_renewed_too_late_has_not_failed(program: tuple[str, ...]) -> None:
    told, until_ms = Told(*program), steady_ms() + LEASE_MS
    told.step(until_ms, JOB)
    assert told.runs.names() == ("job",)
    waited(lambda: steady_ms() >= until_ms - Bounds.of(LEASE_MS).before_ms)
    if program is SLEEPER:
        waited(lambda: not any(map(is_running, processes(below=os.getpid()))))
    waited(lambda: told.step(until_ms + 600_000, JOB) or told.events[1:])
    assert [event.kind for event in told.events] == ["job-started", "job-stopped"]
    assert told.events[-1].facts["reason"] == LOST
    assert (told.notes[-1].failures, told.notes[-1].next_ms) == (0, None)


def test_a_run_that_was_long_enough_forgets_failures_also_if_it_is_stopped() -> None:
    told, until_ms = Told(*SLEEPER), steady_ms() + 3_600_000
    failed = JobState("g", running=False, since_ms=1, seen_ms=1, failures=7)
    told.step(until_ms, JOB, failed)
    told.clock.ahead_ms = STEADY_MS - 60_000
    told.step(until_ms, JOB, failed)
    assert [note.failures for note in told.notes] == [7, 7]
    told.clock.ahead_ms = STEADY_MS
    waited(lambda: told.step(until_ms, JOB, failed, ending=True))
    assert [(note.failures, note.running) for note in told.notes[-2:]] == [(0, True), (0, False)]


def code_of(until_ms: int, said: bytes, *command: str) -> int:
    """The exit code of a guard to which its gateway had said that before it began."""
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, said)
        given = [sys.executable, guard.__file__, "100", "10", str(until_ms), *command]
        return subprocess.run(given, stdin=read_end, timeout=25, check=False).returncode
    finally:
        os.close(read_end)
        os.close(write_end)


def test_a_command_is_not_started_after_its_lease(tmp_path: Path) -> None:
    """As by a gateway that was frozen between the last look at its lease and the start."""
    touched = tmp_path / "touched"
    assert code_of(steady_ms() - 1, b"", "/bin/touch", str(touched)) == guard.NOT_STARTED
    assert not touched.exists()


def test_a_command_is_started_if_its_lease_was_renewed_meanwhile() -> None:
    """The start of a guard takes long on a busy machine."""
    assert code_of(steady_ms() - 1, b"until %d\n" % (steady_ms() + 600_000), "/bin/true") == 0


def test_what_a_command_leaves_behind_may_end_in_order(tmp_path: Path) -> None:
    """As Spark's JVM does, which deletes its files once its program has ended."""
    tidies = "import pathlib, sys, time; sys.stdin.read(); time.sleep(0.5); pathlib.Path(sys.argv[1]).unlink()"
    leaves = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', *sys.argv[1:]], stdin=subprocess.PIPE)"
    (left := tmp_path / "left").touch()
    assert code_of(steady_ms() + 600_000, b"", sys.executable, "-c", leaves, tidies, str(left)) == 0
    assert not left.exists()


def test_a_run_whose_events_cannot_be_written_is_noted_and_over() -> None:
    told = Told("/bin/true")

    def breaks(event: JobEvent) -> None:
        told.events.append(event)
        if event.kind != "job-started":
            raise OSError("no space left on device")

    told.reporter.listener = breaks
    told.step(steady_ms() + 600_000, JOB)
    with pytest.raises(OSError, match="space"):
        waited(lambda: told.step(steady_ms() + 600_000, JOB) or told.events[1:])
    assert (told.runs.names(), told.notes[-1].running, told.notes[-1].exit_code) == ((), False, 0)


def test_a_run_that_is_to_end_as_it_begins_gets_its_signal() -> None:
    """Also between the fork of the guard and the start of the command."""
    for _ in range(10):
        assert code_of(steady_ms() + 600_000, b"stop 20000\n", *SLEEPER) == 128 + signal.SIGTERM
