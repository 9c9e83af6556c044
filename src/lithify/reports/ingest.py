"""What an ingest from Kafka reports of its work. The field names are the JSON keys; times are epoch ms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class Hole:
    """Offsets that Kafka had deleted before they were copied: [start_offset, end_offset)."""

    partition: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class CopiedTopic(Report):
    """Of which Kafka topic a topic is a copy, and what of it could not be copied.

    `topic_id` is Kafka's: a recreated topic has another one.
    """

    name: str
    topic_id: str
    holes: tuple[Hole, ...] = ()

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CopiedTopic:
        """Raises `LookupError`, `TypeError` or `ValueError` for any other document."""
        copied = CopiedTopic(data["name"], data["topic_id"], tuple(Hole(**hole) for hole in data["holes"]))
        numbers = [number for hole in copied.holes for number in astuple(hole)]
        if not all(type(text) is str for text in (copied.name, copied.topic_id)) or {*map(type, numbers)} - {int}:
            raise ValueError(f"{copied!r} names no Kafka topic")
        return copied


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
class IngestBatch:
    """One committed batch. Logs without new records have `records` 0."""

    topic: str
    source: str
    version: int
    logs: tuple[IngestedLog, ...]
    duration_ms: int

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)

    @property
    def lag(self) -> int:
        return sum(log.lag for log in self.logs)

    def to_json(self) -> dict[str, Any]:
        logs = [{**asdict(log), "lag": log.lag} for log in self.logs]
        return {**asdict(self), "logs": logs, "records": self.records, "lag": self.lag}


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What one run has copied of one topic; `error` says why it ended early."""

    topic: str
    source: str
    batches: int
    records: int
    duration_ms: int
    holes: tuple[Hole, ...] = ()
    error: str | None = None

    @property
    def records_per_s(self) -> float:
        return round(1000 * self.records / max(1, self.duration_ms), 1)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "records_per_s": self.records_per_s}


TellBatch = Callable[[IngestBatch], None]
"""Called after every commit."""
