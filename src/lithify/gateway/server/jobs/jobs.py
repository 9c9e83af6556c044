"""Long work as jobs: they run on threads of their own, and outlive the request that began them.

    begin ─► queued ─► running ─► done | failed | cancelled        the last ones are kept, a bounded number
                          │
                          └─ events: progress, notes; the latest are kept for those who follow

A job that is cancelled ends at its next report of progress, as a round that is interrupted does: what it has committed
remains.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock
from typing import Any

from lithify.errors import LithifyError, RoundAbandonedError, RoundsFailedError
from lithify.errors.defects import as_lithify_error
from lithify.gateway.server.problems import error_json
from lithify.ports.clock import Clock

QUEUED_AT_MOST = 100
KEPT = 500
"""Jobs that have ended, the latest."""
EVENTS_KEPT = 200
"""Of each job; the report and the error are kept beside them."""
CANCELLED = "the job was cancelled"
_ABANDONED = RoundAbandonedError("").code


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


@dataclass(slots=True)
class Job:
    """Changed by its thread, read by any."""

    id: str
    operation: str
    topic: str | None
    who: str
    begun_ms: int
    state: JobState = JobState.QUEUED
    ended_ms: int | None = None
    report: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    cancelled: bool = False
    events: deque[tuple[int, Mapping[str, Any]]] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    """With their numbers."""
    changed: Callable[[Job], None] = lambda _job: None
    """Called when it proceeds."""
    at_end: AtEnd = lambda _job, _state: None
    _told: int = 0

    def tell(self, event: str, **facts: Any) -> None:
        """One more event."""
        self._told += 1
        self.events.append((self._told, {"event": event, **facts}))

    def progress(self, phase: str, done: int, total: int) -> None:
        """What the work calls as it proceeds. Raises `RoundAbandonedError` once the job is cancelled."""
        if self.cancelled:
            raise RoundAbandonedError(CANCELLED)
        reached = {"phase": phase, "done": done, "total": total}
        if not self.events or self.events[-1][1] != {"event": "progress", **reached}:
            self.tell("progress", **reached)
            self.changed(self)

    def since(self, number: int) -> list[tuple[int, Mapping[str, Any]]]:
        """The events after that number which are still kept."""
        return [event for event in list(self.events) if event[0] > number]

    def to_json(self) -> dict[str, Any]:
        state = self.state
        has_ended = state in ENDED
        reached = (event for _, event in reversed(list(self.events)) if event["event"] == "progress")
        last = None if has_ended else next(reached, None)
        return {
            "job": self.id,
            "operation": self.operation,
            "topic": self.topic,
            "who": self.who,
            "state": state.value,
            "begun_ms": self.begun_ms,
            "ended_ms": self.ended_ms if has_ended else None,
            "progress": None if last is None else {name: last[name] for name in ("phase", "done", "total")},
            "report": self.report if has_ended else None,
            "error": self.error if has_ended else None,
        }


AtEnd = Callable[[Job, JobState], None]
"""Gets a job, whose report and error are known, just before others see that it has ended in that state."""
Work = Callable[[Job], Any]
"""What a job does; returns its report as JSON."""


def _untold(_job: Job) -> None:
    """For those whom nobody watches."""


class Jobs:
    """The jobs of one gateway; `tell` gets each when it is queued, and whenever it changes."""

    def __init__(self, clock: Clock, threads: int, tell: Callable[[Job], None] = _untold) -> None:
        self._clock = clock
        self._tell = tell
        self._pool = ThreadPoolExecutor(threads, "job")
        self._jobs: dict[str, Job] = {}
        self._lock = Lock()

    def begin(
        self, operation: str, topic: str | None, who: str, work: Work, at_end: AtEnd = lambda _job, _state: None
    ) -> Job | None:
        """Queues a job; None if too many wait."""
        job = Job(self._clock.new_id(), operation, topic, who, self._clock.now_ms())
        with self._lock:
            waiting = sum(one.state is JobState.QUEUED for one in self._jobs.values())
            if waiting >= QUEUED_AT_MOST:
                return None
            ended = [one for one in self._jobs.values() if one.state in ENDED]
            for old in ended[: max(0, len(ended) - KEPT + 1)]:
                del self._jobs[old.id]
            self._jobs[job.id] = job
        job.changed, job.at_end = self._tell, at_end
        self._tell(job)
        self._pool.submit(self._run, job, work)
        return job

    def job(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def all(self) -> list[Job]:
        """The newest first."""
        with self._lock:
            return [*reversed(self._jobs.values())]

    def cancel(self, job: Job) -> None:
        """It ends at its next report of progress, or before it begins."""
        job.cancelled = True

    def close(self) -> None:
        """Cancels all, and waits for none: the process ends."""
        for job in self.all():
            self.cancel(job)
        self._pool.shutdown(wait=False)  # those that wait end as cancelled ones

    def _run(self, job: Job, work: Work) -> None:
        state = JobState.CANCELLED
        try:
            if job.cancelled:
                raise RoundAbandonedError("the job was cancelled before it began")
            job.state = JobState.RUNNING
            self._tell(job)
            job.report, state = work(job), JobState.DONE
        except RoundsFailedError as error:
            stopped = job.cancelled and all(log.error_code == _ABANDONED for log in error.report.failed)
            job.report = error.report.to_json()
            job.error = error_json(RoundAbandonedError(CANCELLED, hint=error.hint) if stopped else error)
            state = JobState.CANCELLED if stopped else JobState.FAILED
        except Exception as error:
            told: LithifyError = as_lithify_error(error, job.operation)
            stopped = job.cancelled and isinstance(told, RoundAbandonedError)
            job.error, state = error_json(told), JobState.CANCELLED if stopped else JobState.FAILED
        finally:
            job.ended_ms = self._clock.now_ms()
            job.at_end(job, state)
            job.state = state  # last: who follows it reads the report and the error after this
            self._tell(job)
