"""Reports: what a round did, in numbers that scripts rely on (C42, and the CLI's JSON).

The field names are the JSON keys. Bytes are compressed sizes, durations milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from lithify.errors import RoundsFailedError
from lithify.reports.report import Report
from lithify.reports.space import Space

Made = TypeVar("Made")

REPORTS_KEPT = 100
"""Reports per topic that survive later rounds and restarts (C42)."""


@dataclass(frozen=True, slots=True)
class RatesReport(Report):
    """The rates that `throttle` has stored for running rounds, or for cleaners."""

    topic: str | None
    """None for the cleaners of the whole warehouse."""
    id: str
    read_rate_bytes: int | None
    write_rate_bytes: int | None
    shared: bool = False
    """Whether they are for all cleaners together."""


@dataclass(frozen=True, slots=True)
class Losers:
    """Records that a round removed, by cause."""

    superseded: int = 0
    expired_tombstone: int = 0
    no_key: int = 0
    past_retention: int = 0
    below_start: int = 0

    @property
    def total(self) -> int:
        return sum(getattr(self, f.name) for f in fields(self))


@dataclass(frozen=True, slots=True)
class LogReport:
    """One log's part of a round. With an `error`, the log is as it was before."""

    partition: int
    first_dirty_offset: int
    first_dirty_offset_after: int
    horizon: int
    horizon_limited_by: str
    log_start_offset: int = 0
    log_start_offset_after: int = 0
    log_end_offset: int = 0
    deleted_below: int = 0
    """Where the last `delete-records` before the round had cut (C26)."""
    records_in: int = 0
    records_out: int = 0
    keys: int = 0
    tombstones_in: int = 0
    tombstones_out: int = 0
    tombstones_held: int = 0
    """Expired tombstones that stay, since records that they beat are above the horizon (C20)."""
    tombstones_unversioned: int = 0
    """Losing tombstones without the header of `compaction.strategy.header` (C11)."""
    losers: Losers = Losers()
    segments_in: int = 0
    segments_kept: int = 0
    segments_rewritten: int = 0
    segments_merged: int = 0
    segments_written: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    tombstones_expire_below: int = 0
    tombstones_read_below: int | None = None
    """All groups of `tombstone.hold.groups` had read those below; null where none is named (C61)."""
    held_by: tuple[str, ...] = ()
    """The groups that hold tombstones which would have expired."""
    missed_by: tuple[str, ...] = ()
    """The groups that had not read all tombstones that the round dropped, after `tombstone.hold.max.ms`."""
    backlog_read_below: int | None = None
    """All groups of `backlog.trim.groups` had read what is below; null where none is named (C62)."""
    values_expire_before_ms: int | None = None
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    changed: bool = False
    error: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class RoundReport(Report):
    """A run of `compact` over one topic: one entry per log that was asked for."""

    topic: str
    version: int
    """The version that the run committed, or the newest one if it changed nothing."""
    changed: bool
    logs: tuple[LogReport, ...]
    duration_ms: int
    now_ms: int
    now_given: bool = False
    """Whether `now_ms` was given with `--now` instead of taken from the clock."""
    run_id: str = ""
    groups_error: str | None = None
    """Why positions of groups could not be read: as if they had read nothing (C61, C62)."""
    space: Space | None = None
    """What the topic takes after the round; null in stored reports, and where it could not be read then."""

    @property
    def failed(self) -> tuple[LogReport, ...]:
        return tuple(log for log in self.logs if log.error is not None)

    def unless_all_failed(self) -> RoundReport:
        """This report. Raises `RoundsFailedError`, which has it, if every log failed."""
        failed = self.failed
        if not failed or len(failed) < len(self.logs):
            return self
        others = f"; so did all {len(failed)} logs, as the report of this error says" if len(failed) > 1 else ""
        error = RoundsFailedError(f"{failed[0].error}{others}", hint="they are as they were")
        error.report = self
        raise error

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RoundReport:
        """The inverse of `to_json`; keys of later versions are ignored.

        Raises `AttributeError`, `LookupError`, `TypeError` or `ValueError` for any other document.
        """
        logs = tuple(_made(LogReport, _decoded(log)) for log in data["logs"])
        return _made(cls, {**data, "logs": logs, "space": None})


@dataclass(frozen=True, slots=True)
class LogPlanReport:
    """What a round would do to one log now; what says "at most" is an upper bound (C30)."""

    partition: int
    log_start_offset: int
    first_dirty_offset: int
    horizon: int
    horizon_limited_by: str
    horizon_held_by: str | None
    log_end_offset: int
    log_start_offset_after: int
    records_in: int
    bytes_in: int
    segments_in: int
    segments_gone: int
    segments_scanned: int
    segments_rewritten_at_most: int
    bytes_read_at_most: int
    bytes_written_at_most: int
    tombstones_expire_below: int
    values_expire_before_ms: int | None
    held_by: tuple[str, ...]
    """The groups that hold tombstones which would expire (C61)."""
    idle: bool


@dataclass(frozen=True, slots=True)
class PlanReport(Report):
    """What `compact` would do now. The extra space is needed until the old version is swept."""

    topic: str
    version: int
    logs: tuple[LogPlanReport, ...]
    now_ms: int
    now_given: bool = False
    groups_error: str | None = None
    old_version_until_ms: int | None = None
    """The files of the old version stay at least until then, if the round runs now."""

    @property
    def extra_bytes_needed(self) -> int:
        return sum(log.bytes_written_at_most for log in self.logs)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "extra_bytes_needed": self.extra_bytes_needed}


_KINDS: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "str": (str,),
    "bool": (bool,),
    "int | None": (int, type(None)),
    "str | None": (str, type(None)),
    "Mapping[str, int]": (dict,),
    "Losers": (Losers,),
    "tuple[LogReport, ...]": (tuple,),
    "tuple[str, ...]": (tuple,),
    "Space | None": (type(None),),
}
"""The Python types of a report's fields in JSON, by their annotations."""


def _decoded(log: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a log's report. Raises `TypeError` for lists of groups that are none."""
    groups: dict[str, tuple[str, ...]] = {}
    for name in ("held_by", "missed_by"):
        found = log.get(name, [])
        if not isinstance(found, list | tuple) or not all(isinstance(group, str) for group in found):
            raise TypeError(f"{name} is {found!r:.100}")
        groups[name] = tuple(found)
    return {**log, **groups, "losers": _made(Losers, log["losers"])}


def _made(kind: type[Made], data: Mapping[str, Any]) -> Made:
    """A part of a report, from the fields in `data`. Raises `TypeError` for a value of another type."""
    given = {f.name: data[f.name] for f in fields(kind) if f.name in data}  # type: ignore[arg-type]
    for f in fields(kind):  # type: ignore[arg-type]
        if f.name in given and type(given[f.name]) not in _KINDS[str(f.type)]:
            raise TypeError(f"{f.name} is {given[f.name]!r:.100}")
    return kind(**given)
