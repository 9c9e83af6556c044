"""What `lithify gateway job` prints of standing jobs. The field names are the JSON keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import Any, Never

from lithify.model.jobs.definition import JobState, StandingJob, StoredJob
from lithify.model.settings.units import format_duration, format_time
from lithify.reports.page import Page, Table
from lithify.reports.page.wording import coded, or_dash
from lithify.reports.report import Report

UNSEEN_MS = 120_000
"""A run that no gateway has noted for so long is not shown as running: clocks differ by a minute at most."""


class JobStanding(StrEnum):
    """What a job does now."""

    RUNNING = "running"
    WAITING = "waiting"
    """The next run is not due yet, or no gateway has begun it."""
    FAILING = "failing"
    """The last run failed, and the next one is not due yet."""
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class StandingJobInfo(Report):
    """A job as it is defined, and what gateways have noted of it."""

    name: str
    state: JobStanding
    arguments: tuple[str, ...]
    """The words of the command line after `lithify`."""
    command: str
    """The same as a shell takes them."""
    every_ms: int | None
    """Between the end of a run and the next one; null for a command that does not end."""
    paused: bool
    created_at: str
    gateway: str | None = None
    """The gateway that runs the job, or has run it last; null before the first run."""
    since: str | None = None
    """When the run began, or the last one ended."""
    next_at: str | None = None
    """When the next run is due."""
    failures: int = 0
    """In a row."""
    exit_code: int | None = None
    """Of the last run that has ended."""
    error: str | None = None
    error_code: str | None = None
    report: Mapping[str, Any] | None = None
    """The last JSON object that a run printed on stdout."""

    @classmethod
    def of(cls, stored: StoredJob, now_ms: int) -> StandingJobInfo:
        job, state = stored.job, stored.state
        defined = cls(
            name=job.name,
            state=_standing(job, state, now_ms),
            arguments=job.arguments,
            command=job.command,
            every_ms=job.every_ms,
            paused=job.paused,
            created_at=format_time(job.created_ms),
        )
        return defined if state is None else defined._with(state)

    def _with(self, state: JobState) -> StandingJobInfo:
        return replace(
            self,
            gateway=state.gateway,
            since=format_time(state.since_ms),
            next_at=None if state.next_ms is None else format_time(state.next_ms),
            failures=state.failures,
            exit_code=state.exit_code,
            error=state.error,
            error_code=state.error_code,
            report=None if state.report is None else printed_object(state.report),
        )

    def page(self) -> Page:
        return self.listed([self])

    @classmethod
    def listed(cls, reports: Sequence[StandingJobInfo]) -> Page:
        """GATEWAY and SINCE: which gateway runs a job, or has run it last, and since when. LAST: how a run ended."""
        return Page("standing jobs", table=Table(_HEADER, reports, _row, left=_HEADER, notes=_notes))


_HEADER = ("NAME", "STATE", "GATEWAY", "SINCE", "LAST", "COMMAND")


def _standing(job: StandingJob, state: JobState | None, now_ms: int) -> JobStanding:
    if job.paused:
        return JobStanding.PAUSED
    if state is None:
        return JobStanding.WAITING
    if state.running:
        return JobStanding.RUNNING if now_ms - state.seen_ms < UNSEEN_MS else JobStanding.WAITING
    return JobStanding.FAILING if state.failures else JobStanding.WAITING


def printed_object(text: str | bytes) -> dict[str, Any] | None:
    """The JSON object that a run has printed; None if it is anything else, or has a number that JSON cannot have."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finite(text: str) -> float:
    return number if isfinite(number := float(text)) else _refuse(text)


def _refuse(number: str) -> Never:
    raise ValueError(number)


def _row(info: StandingJobInfo) -> tuple[str, ...]:
    every = "" if info.every_ms is None else f", every {format_duration(info.every_ms)}"
    return (
        info.name,
        info.state.upper() if info.state is JobStanding.FAILING else info.state,
        info.gateway or "-",
        info.since or "-",
        or_dash(info.exit_code, lambda code: f"exit {code}"),
        f"{info.command}{every}",
    )


def _notes(info: StandingJobInfo) -> list[str]:
    notes = []
    if info.error is not None and (info.failures or info.exit_code):
        told = coded(info.error, info.error_code)
        notes.append(f"last error: {told}" if info.state is JobStanding.RUNNING else told)  # maybe of an earlier run
    if info.next_at is not None and info.state is not JobStanding.PAUSED:
        notes.append(f"next run at {info.next_at}")
    return notes
