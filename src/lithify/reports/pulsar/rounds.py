"""What `pulsar compact` reports. The field names are the JSON keys; bytes are those of entries in brokers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """An entry of a partition."""

    ledger: int
    entry: int


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """One partition's part of a round. With an `error`, readers get what they got before.

    `compacted_ledger` and `horizon` are those in force afterwards, as far as they are known. A topic without
    partitions is partition 0.
    """

    partition: int
    compacted_ledger: int | None = None
    horizon: EntryPlace | None = None
    messages_in: int = 0
    messages_out: int = 0
    entries_in: int = 0
    entries_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    ledgers_deleted: tuple[int, ...] = ()
    """Ledgers of views that earlier rounds left behind and nobody reads."""
    changed: bool = False
    error: str | None = None
    error_code: str | None = None
    damaged_entries: int = 0
    """Batches that their producers wrote damaged, which the view has whole (C74)."""
    damaged_named: tuple[str, ...] = ()
    """The first of them, as LEDGER:ENTRY."""


@dataclass(frozen=True, slots=True)
class TopicRoundReport(Report):
    """A round of all partitions of a topic."""

    topic: str
    partitions: tuple[PartitionReport, ...]
    duration_ms: int
    run_id: str
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return any(one.changed for one in self.partitions)

    @property
    def failed(self) -> tuple[PartitionReport, ...]:
        return tuple(one for one in self.partitions if one.error is not None)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "changed": self.changed}


@dataclass(frozen=True, slots=True)
class DroppedView:
    """What became of the view of one partition."""

    partition: int
    changed: bool
    error: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class UncompactReport(Report):
    """What `pulsar uncompact` dropped."""

    topic: str
    partitions: tuple[DroppedView, ...]
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[DroppedView, ...]:
        return tuple(one for one in self.partitions if one.error is not None)


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What a round would do to a partition now. Entries and bytes are upper bounds; with an `error`, it would fail."""

    partition: int
    compacted_ledger: int | None = None
    horizon: EntryPlace | None = None
    horizon_after: EntryPlace | None = None
    view_entries: int = 0
    new_entries: int = 0
    bytes_read_at_most: int = 0
    bytes_written_at_most: int = 0
    idle: bool = False
    error: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class TopicRoundPlan(Report):
    """What `pulsar compact` would do now. Nothing was changed."""

    topic: str
    partitions: tuple[PartitionPlan, ...]
    notes: tuple[str, ...] = ()
