"""What an ingest reports of its work. The field names are the JSON keys; times are epoch ms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from lithify.errors import LithifyError
from lithify.model.settings.units import format_duration, plural
from lithify.model.sources.copied_topic import Hole, IdHole
from lithify.reports.page import Page, Table
from lithify.reports.page.wording import count
from lithify.reports.report import Report, with_lags


@dataclass(frozen=True, slots=True)
class MissedRange:
    """Offsets [start_offset, end_offset) in which deletes may be missing, as Kafka may have dropped them (C71)."""

    partition: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class CopyPromoteReport(Report):
    """A copy of a Kafka topic that is a topic of its own from `version` on."""

    topic: str
    version: int
    copy_of: str
    """The Kafka topic that it was a copy of."""
    now_ms: int


@dataclass(frozen=True, slots=True)
class IngestedLog:
    """One log after a batch. `lag` is how many offsets Kafka's log is ahead, for readers of committed records."""

    partition: int
    log_end_offset: int
    source_end_offset: int
    records: int

    @property
    def lag(self) -> int:
        return max(0, self.source_end_offset - self.log_end_offset)


@dataclass(frozen=True, slots=True)
class IngestedEntries:
    """One log of a copy of a Pulsar topic after a batch. Ids as text, LEDGER:ENTRY.

    `lag` is how many entries Pulsar is ahead, None if the ids are of several ledgers.
    """

    partition: int
    log_end_offset: int
    copied_to: str | None
    source_end: str | None
    records: int
    lag: int | None


@dataclass(frozen=True, slots=True)
class IngestBatch:
    """One committed batch. Logs without new records have `records` 0."""

    topic: str
    source: str
    version: int
    logs: tuple[IngestedLog | IngestedEntries, ...]
    duration_ms: int

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)

    @property
    def lag(self) -> int | None:
        """Of all logs; None if the lag of one is not known."""
        return _lag(self.logs)

    def to_json(self) -> dict[str, Any]:
        return {**with_lags(self), "records": self.records, "lag": self.lag}

    @property
    def text(self) -> str:
        """`orders → shop/orders: 7 records in 2.0 s (4/s), lag 0 offsets`"""
        rate = count(round(1000 * self.records / max(1, self.duration_ms)))
        took = f"{plural(self.records, 'record')} in {format_duration(self.duration_ms)} ({rate}/s)"
        return f"{self.source} → {self.topic}: {took}, {lag_text(self.logs)}"


@dataclass(frozen=True, slots=True)
class IngestReport(Report):
    """What one run has copied of one topic; `error` says why it ended early.

    `refused`: before anything was copied, for what was asked, such as a topic that is not there.
    """

    topic: str
    source: str
    batches: int
    records: int
    duration_ms: int
    holes: tuple[Hole | IdHole, ...] = ()
    error: str | None = None
    error_code: str | None = None
    refused: bool = False
    missed_deletes: tuple[MissedRange, ...] = ()
    """Where it was accepted that deletes may be missing."""
    damaged_entries: int = 0
    """Entries of Pulsar that their producers wrote damaged, and that were copied whole (C74)."""
    damaged_named: tuple[str, ...] = ()
    """The first of them, as LEDGER:ENTRY."""
    deleted_keys: int = 0
    """Keys that the source no longer had, and that were deleted as `--resync` asks."""

    def failed(self, error: LithifyError, *, refused: bool) -> IngestReport:
        """This report, with the error that ended the copy."""
        return replace(self, error=str(error), error_code=error.code, refused=refused)

    @property
    def records_per_s(self) -> float:
        return round(1000 * self.records / max(1, self.duration_ms), 1)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "records_per_s": self.records_per_s}

    def losses(self) -> Iterator[str]:
        """What the source no longer had: records that were never copied, keys and deletes that are gone."""
        for hole in self.holes:
            yield f"{self.topic}[{hole.partition}]: {_gone(hole)} were never copied"
        if self.deleted_keys:
            yield f"{self.topic}: {plural(self.deleted_keys, 'key')} deleted that the source no longer has"
        for gap in self.missed_deletes:
            last = gap.end_offset - 1
            yield f"{self.topic}[{gap.partition}]: deletes at offsets {gap.start_offset} to {last} may be missing"

    @classmethod
    def listed(cls, reports: Sequence[IngestReport]) -> Page:
        header = ("SOURCE", "TOPIC", "BATCHES", "RECORDS", "RECORDS/S", "TIME")
        return Page("copies", table=Table(header, reports, _row, left=("SOURCE", "TOPIC")))


@dataclass(frozen=True, slots=True)
class IngestNote:
    """What an ingest reports besides its batches, such as that it waits for a broker. `text` is for people.

    `topic` is the lake's and `source` what it is copied from, both None for a note about all of them.
    """

    event: str
    text: str
    source: str | None = None
    topic: str | None = None
    logs: tuple[IngestedLog | IngestedEntries, ...] = ()
    """Where the copy is, in notes about one topic that say so."""
    error_code: str | None = None
    """Of the error that ended the copy of a topic."""

    @property
    def lag(self) -> int | None:
        """Of all logs; None if the lag of one is not known."""
        return _lag(self.logs)

    def to_json(self) -> dict[str, Any]:
        return with_lags(self)


def _lag(logs: Sequence[IngestedLog | IngestedEntries]) -> int | None:
    lags = [log.lag for log in logs]
    return None if None in lags else sum(lag or 0 for lag in lags)


def lag_text(logs: Sequence[IngestedLog | IngestedEntries]) -> str:
    """How far the source is ahead: of Kafka in offsets, markers of transactions included; of Pulsar in entries."""
    total = _lag(logs)
    if total is None:
        return "lag not known"
    one, several = ("offset", "offsets") if all(isinstance(x, IngestedLog) for x in logs) else ("entry", "entries")
    return f"lag {total:,} {one if total == 1 else several}"


TellBatch = Callable[[IngestBatch], None]
"""Called after every commit."""
TellNote = Callable[[IngestNote], None]


@dataclass(frozen=True, slots=True)
class IngestListener:
    """The caller of an ingest: is called with batches and other notes, and returns whether it is to end."""

    tell: TellBatch
    notes: TellNote
    stops: Callable[[], bool]


def _gone(hole: Hole | IdHole) -> str:
    if isinstance(hole, Hole):
        return f"offsets {hole.start_offset} to {hole.end_offset - 1}"
    after = "" if hole.after is None else f"after {hole.after} and "
    return f"entries {after}before {hole.before.replace(':-1', ':0')}, if there were any,"


def _row(report: IngestReport) -> tuple[str, ...]:
    figures = map(count, (report.batches, report.records, round(report.records_per_s)))
    return report.source, report.topic, *figures, format_duration(report.duration_ms)
