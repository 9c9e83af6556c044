"""What a gateway does about standing jobs, as pure functions: which it takes, starts and stops, and when again.

jobs that run or are due        7, on 3 gateways      ──► at most ⌈7/3⌉ = 3 here
due, and free for a whole lease, as no gateway took it ──► taken above that

a run ends      --every 5m: again in 5 minutes        fails: after 2, 4, 8 ... s, at most 5 minutes
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from zlib import crc32

from lithify.model.jobs.definition import JobState, StandingJob

LEAST_DELAY_MS = 2_000
MOST_DELAY_MS = 300_000
STEADY_MS = 600_000
"""A run that fails after this time is the first failure, not one more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, by name. What is not named goes on."""

    start: tuple[str, ...]
    stop: Mapping[str, str]
    """The running jobs that are to end, and why."""
    drop: tuple[str, ...]
    """Jobs that were taken and are not to be started."""


def plan(
    jobs: Mapping[str, StandingJob],
    taken: Collection[str],
    running: Mapping[str, StandingJob],
    held: Collection[str],
    *,
    ending: bool,
) -> Plan:
    """`jobs` are the definitions, `taken` the jobs whose leases were taken, `held` those that certainly are held.

    `running` are the jobs with a process, as they were when it was started; each of them is `taken` too.
    """
    start: list[str] = []
    drop: list[str] = []
    for name in sorted(set(taken) - running.keys()):
        job = jobs.get(name)
        starts = job is not None and not job.paused and name in held and not ending
        (start if starts else drop).append(name)
    stop = {}
    for name, job in running.items():
        if (why := _why_stopped(job, jobs.get(name), held=name in held, ending=ending)) is not None:
            stop[name] = why
    return Plan(tuple(start), stop, tuple(drop))


LOST = "its lease is lost"


def _why_stopped(job: StandingJob, now: StandingJob | None, *, held: bool, ending: bool) -> str | None:
    if not held:
        return LOST
    if ending:
        return "the gateway stops"
    if job.runs_as(now):
        return None
    if now is None:
        return "it was removed"
    return "it was paused" if now.paused else "it was replaced"


@dataclass(frozen=True, slots=True)
class Sight:
    """What a gateway sees of the jobs that run or are due."""

    free: Mapping[str, int]
    """Those that are due and that no gateway has, and for how many ms that has been so."""
    here: int
    """The number that this gateway has."""
    elsewhere: int
    gateways: int
    """With this one."""


def claims(sight: Sight, gateway: str, patience_ms: int) -> tuple[str, ...]:
    """The free jobs that this gateway tries to take.

    It leaves to the others their share, unless they have not taken a job for `patience_ms`. Gateways begin at
    different jobs, so that they seldom try to take the same one.
    """
    wanted = sight.here + sight.elsewhere + len(sight.free)
    share = -(-wanted // max(1, sight.gateways))
    room = max(0, share - sight.here)
    names = sorted(sight.free, key=lambda name: (crc32(f"{gateway}/{name}".encode()), name))
    return (*names[:room], *(name for name in names[room:] if sight.free[name] >= patience_ms))


def failures_after(job: StandingJob, before: int, exit_code: int, lasted_ms: int) -> int:
    """How many runs in a row have failed. A command that is to run until it is stopped fails by ending."""
    if job.every_ms is not None and exit_code == 0:
        return 0
    return 1 if lasted_ms >= STEADY_MS else before + 1


def delay_ms(job: StandingJob, failures: int) -> int:
    """Between the end of a run and the next one."""
    backoff_ms = min(LEAST_DELAY_MS << min(max(failures - 1, 0), 20), MOST_DELAY_MS)
    if job.every_ms is None:
        return backoff_ms
    return min(job.every_ms, backoff_ms) if failures else job.every_ms


def due_in_ms(job: StandingJob, state: JobState | None, now_ms: int) -> int:
    """When the next run of a job that no gateway has is due; 0 is now.

    `now_ms` is of another clock than the note may be: neither delays a run by more than the longest wait. A job that is
    noted as running has lost its gateway.
    """
    if state is None or state.running or state.next_ms is None:
        return 0
    return min(max(state.next_ms - now_ms, 0), delay_ms(job, state.failures))
