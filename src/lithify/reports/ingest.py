"""What an ingest reports of its work. The field names are the JSON keys; times are epoch ms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

from lithify.errors import LithifyError
from lithify.reports.report import Report, with_lags


@dataclass(frozen=True, slots=True)
class Hole:
    """Offsets that Kafka had deleted before they were copied: [start_offset, end_offset)."""

    partition: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class IdHole:
    """Entries that Pulsar had deleted before they were copied: those behind `after`, if it is known, up to `before`.

    As text, LEDGER:ENTRY; entry -1 is the start of a ledger. There may have been none.
    """

    partition: int
    after: str | None
    before: str


@dataclass(frozen=True, slots=True)
class MissedRange:
    """Offsets [start_offset, end_offset) in which deletes may be missing, as Kafka may have dropped them (C71)."""

    partition: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class CopiedTopic(Report):
    """Of which topic of Kafka or Pulsar a topic is a copy, and what of it could not be copied.

    `topic_id` is the source's: a recreated topic has another one; empty where it is not known. `config` are the
    settings that were set on the source itself, at the last ingest; None where they are not known.
    """

    name: str
    topic_id: str
    holes: tuple[Hole | IdHole, ...] = ()
    promoted: bool = False
    """It is a copy no more, or soon (C70): said before the commit, so that `repair` cannot take it back."""
    config: Mapping[str, str] | None = None

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CopiedTopic:
        """Raises `LookupError`, `TypeError` or `ValueError` for any other document."""
        holes = tuple(IdHole(**hole) if "before" in hole else Hole(**hole) for hole in data["holes"])
        given = data.get("config")
        config = None if given is None else dict(given)
        copied = CopiedTopic(data["name"], data["topic_id"], holes, bool(data.get("promoted", False)), config)
        texts = [copied.name, copied.topic_id, *(h.before for h in holes if isinstance(h, IdHole))]
        texts += [text for pair in (config or {}).items() for text in pair]
        texts += [h.after for h in holes if isinstance(h, IdHole) and h.after is not None]
        numbers = [number for hole in holes if isinstance(hole, Hole) for number in astuple(hole)]
        numbers += [hole.partition for hole in holes]
        if {*map(type, texts)} - {str} or {*map(type, numbers)} - {int}:
            raise ValueError(f"{copied!r} names no topic")
        return copied


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

    `lag` is how many entries Pulsar is ahead, None where the ids are of several ledgers and do not tell.
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
        """Of all logs; None where that of one is not known."""
        return _lag(self.logs)

    def to_json(self) -> dict[str, Any]:
        return {**with_lags(self), "records": self.records, "lag": self.lag}


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


@dataclass(frozen=True, slots=True)
class IngestNote:
    """What an ingest says besides its batches, such as that it waits for a broker. `text` is for people.

    `topic` is that of the lake and `source` what it is copied from, both None for a note about all of them.
    """

    event: str
    text: str
    source: str | None = None
    topic: str | None = None
    logs: tuple[IngestedLog | IngestedEntries, ...] = ()
    """Where the copy is, in notes about one topic that say so."""

    @property
    def lag(self) -> int | None:
        """Of all logs; None where that of one is not known."""
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
    unit = "offset" if all(isinstance(x, IngestedLog) for x in logs) else "entry"
    plural = {"offset": "offsets", "entry": "entries"}[unit]
    return f"lag {total:,} {unit if total == 1 else plural}"


TellBatch = Callable[[IngestBatch], None]
"""Called after every commit."""
TellNote = Callable[[IngestNote], None]
