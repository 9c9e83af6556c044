"""The processes of the jobs that this gateway has, and what there is to note of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from threading import Lock

from lithify.errors.defects import as_lithify_error
from lithify.gateway.standing.child import LOST_MS, TERMINATED_MS, Bounds, Child
from lithify.gateway.standing.guard import NOT_STARTED
from lithify.gateway.standing.options import StandingOptions
from lithify.gateway.standing.output import JobOutput
from lithify.gateway.standing.plan import LOST, STEADY_MS, delay_ms, failures_after, plan
from lithify.gateway.standing.reporter import JobReporter
from lithify.model.jobs.definition import JobState, StandingJob, StoredJob
from lithify.ports.clock import Clock
from lithify.reports.jobs.job_events import JobEventKind

NOTED_MS = 10_000
"""Between two notes of a job that runs."""
ENDING_MS = 7_000
"""The time for orderly ends when the gateway stops, which itself ends within 10 s."""

Note = Callable[[StandingJob, JobState], None]


@dataclass(slots=True)
class _Run:
    job: StandingJob
    child: Child
    output: JobOutput
    begun_ms: int
    state: JobState
    """As it was noted last; `failures` does not count this run."""
    noted_ms: int
    stopped: str | None = None
    """Why it is to end."""


class Runs:
    """For one thread, which calls `step`; `names`, `events`, `end` and `kill` are for any."""

    def __init__(self, options: StandingOptions, clock: Clock, reporter: JobReporter, note: Note) -> None:
        self._options, self._clock, self._reporter, self._note = options, clock, reporter, note
        self._bounds = Bounds.of(options.lease_ms)
        self._lock = Lock()
        self._runs: dict[str, _Run] = {}
        self._outputs: dict[str, JobOutput] = {}

    def step(
        self, jobs: Mapping[str, StoredJob], taken: Collection[str], held: Mapping[str, int], *, ending: bool
    ) -> frozenset[str]:
        """Starts and stops processes; returns the jobs that this gateway needs no more, their runs are over.

        `taken` are the jobs whose leases were taken, `held` until when those are held that certainly are.
        """
        over = self._ended(held)
        for name in held.keys() & self._runs.keys():
            self._renew(self._runs[name], held[name])
        definitions = {name: stored.job for name, stored in jobs.items()}
        running = {name: run.job for name, run in self._runs.items()}
        todo = plan(definitions, frozenset(taken) - over, running, held, ending=ending)
        for name in todo.start:
            if not self._began(jobs[name], held[name]):
                over.add(name)
        for name, why in todo.stop.items():
            self._stop(self._runs[name], why, ending=ending)
        with self._lock:
            self._outputs = {n: output for n, output in self._outputs.items() if n in jobs or n in self._runs}
        return frozenset((*over, *todo.drop))

    def names(self) -> tuple[str, ...]:
        """The jobs that have a process now."""
        with self._lock:
            return tuple(sorted(self._runs))

    def events(self, name: str) -> list[dict[str, object]]:
        """The last lines that this gateway has read of a job's processes, the oldest first."""
        with self._lock:
            output = self._outputs.get(name)
        return [] if output is None else output.events()

    def end(self) -> None:
        """Asks all processes to end, where `step` does not: it hangs, or has ended."""
        for run in self._left():
            run.child.stop(ENDING_MS, self._clock.monotonic_ms())

    def kill(self) -> None:
        """Kills all processes at once."""
        for run in self._left():
            run.child.kill()

    def _left(self) -> list[_Run]:
        with self._lock:
            return list(self._runs.values())

    def _began(self, stored: StoredJob, until_ms: int) -> bool:
        job, before = stored.job, stored.state
        with self._lock:
            output = self._outputs.setdefault(job.name, JobOutput(self._clock.sleep))
        now_ms, epoch_ms = self._clock.monotonic_ms(), self._clock.now_ms()
        state = JobState(self._options.gateway, running=True, since_ms=epoch_ms, seen_ms=epoch_ms)
        if before is not None:
            same = {name: getattr(before, name) for name in ("failures", "exit_code", "error", "error_code")}
            state = replace(state, **same)
        command = [*self._options.program, *self._options.place, *job.arguments]
        try:
            child = Child(command, self._options.environment, self._bounds, until_ms, output)
        except (OSError, ValueError) as error:
            why = as_lithify_error(error, f"the process of job {job.name}")
            self._note_end(job, replace(state, error=str(why), error_code=why.code), NOT_STARTED, 0)
            return False
        with self._lock:
            self._runs[job.name] = _Run(job, child, output, now_ms, state, now_ms)
        self._note(job, state)
        self._reporter.report(JobEventKind.STARTED, job.name, command=job.command)
        return True

    def _renew(self, run: _Run, until_ms: int) -> None:
        """Passes on how long the lease lasts. A guard that has sent SIGTERM, as that comes too late, is to go on."""
        now_ms, known_ms = self._clock.monotonic_ms(), run.child.until_ms
        if until_ms > known_ms and now_ms >= known_ms - self._bounds.before_ms:
            run.stopped = run.stopped or LOST
            run.child.stop(TERMINATED_MS, now_ms)
        run.child.until(until_ms)

    def _stop(self, run: _Run, why: str, *, ending: bool) -> None:
        run.stopped = run.stopped or why
        within_ms = LOST_MS if why == LOST else ENDING_MS if ending else TERMINATED_MS
        run.child.stop(within_ms, self._clock.monotonic_ms())

    def _ended(self, held: Mapping[str, int]) -> set[str]:
        """Notes the runs that have ended, and from time to time those that go on.

        A run that ends with its lease was ended by its guard, and has not failed.
        """
        now_ms, over = self._clock.monotonic_ms(), set()
        for name, run in list(self._runs.items()):
            if (code := run.child.ended(now_ms)) is not None:
                with self._lock:
                    del self._runs[name]
                over.add(name)
                error, error_code = run.output.error()
                state = replace(run.state, error=error, error_code=error_code, report=run.output.report())
                is_lost = now_ms >= min(held.get(name, 0), run.child.until_ms) - self._bounds.before_ms
                stopped = run.stopped or (LOST if is_lost else None)
                self._note_end(run.job, state, code, now_ms - run.begun_ms, stopped)
            elif now_ms - run.noted_ms >= NOTED_MS and run.stopped is None:
                run.noted_ms = now_ms
                failures = 0 if now_ms - run.begun_ms >= STEADY_MS else run.state.failures
                noted = replace(run.state, seen_ms=self._clock.now_ms(), failures=failures)
                run.state = replace(noted, report=run.output.report())
                self._note(run.job, run.state)
        return over

    def _note_end(
        self, job: StandingJob, state: JobState, exit_code: int, lasted_ms: int, stopped: str | None = None
    ) -> None:
        now_ms = self._clock.now_ms()
        state = replace(state, running=False, since_ms=now_ms, seen_ms=now_ms, exit_code=exit_code)
        facts: dict[str, object] = {"exit_code": exit_code, "duration_ms": lasted_ms}
        if stopped is not None:
            kind = JobEventKind.STOPPED
            facts |= {"reason": stopped}
        else:
            kind, failures = JobEventKind.ENDED, failures_after(job, state.failures, exit_code, lasted_ms)
            state = replace(state, failures=failures, next_ms=now_ms + delay_ms(job, failures))
            facts |= {"failures": failures, "retry_ms": state.next_ms}
            facts |= {"error": state.error, "error_code": state.error_code}
        self._note(job, state)  # first, as an event may not be written
        self._reporter.report(kind, job.name, **facts)
