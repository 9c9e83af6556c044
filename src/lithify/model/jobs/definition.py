"""A standing job: a command line of lithify that one of the gateways of a warehouse runs at a time.

    every_ms is None    the command never ends by itself: it is started again when it does
    every_ms            the command ends; it is run again that long after its end

What a gateway has noted of a job is a `JobState`, for other gateways and for people.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from lithify.errors import InvalidNameError
from lithify.model.names import MAX_NAME_LENGTH

_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class StandingJob:
    """A job as it was requested. One that was removed and added again has another `created_ms`."""

    name: str
    arguments: tuple[str, ...]
    """The words of the command line after `lithify`."""
    every_ms: int | None
    """Between the end of a run and the next one; None for a command that does not end."""
    paused: bool
    created_ms: int

    @property
    def command(self) -> str:
        """The arguments as a shell takes them."""
        return shlex.join(self.arguments)

    def runs_as(self, other: StandingJob | None) -> bool:
        """Whether a run that was begun for this one may continue for the other."""
        return other is not None and not other.paused and self._run == other._run

    @property
    def _run(self) -> tuple[object, ...]:
        return self.name, self.arguments, self.every_ms, self.created_ms


@dataclass(frozen=True, slots=True)
class JobState:
    """What the gateway that has a job, or had it last, has noted. Times are of its clock."""

    gateway: str
    running: bool
    since_ms: int
    """When the run began, or when the last one ended."""
    seen_ms: int
    """When the gateway noted this: every few seconds while the job runs."""
    next_ms: int | None = None
    """When the next run is due; None while it runs, and for now."""
    failures: int = 0
    """How many runs have failed in a row."""
    exit_code: int | None = None
    """Of the last run; 128 and the number of the signal that ended it."""
    error: str | None = None
    """The last error that a run printed, and its code."""
    error_code: str | None = None
    report: str | None = None
    """The last JSON object that a run printed on stdout, a report or an event."""


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job, and what was noted of it; None before its first run."""

    job: StandingJob
    state: JobState | None


def checked_job(name: str) -> str:
    """`name` if it can be one of a job. Raises `InvalidNameError`."""
    if len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        raise InvalidNameError(
            f"{name!r} is not a name of a standing job: it must be 1 to {MAX_NAME_LENGTH} letters, digits, '.', '_' or "
            "'-', and must not begin with '-', like an option"
        )
    return name
