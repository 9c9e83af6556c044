"""The contract, literally, for a whole topic: what every verb makes of it, in plain Python.

    TextbookTopic ──verb──► TextbookTopic     or RefusedError, with the error that a person gets

It knows nothing of versions, files or plans; the long random test holds the product to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from lithify.errors import (
    ConflictError,
    InvalidInputError,
    InvalidRecordError,
    InvalidSettingError,
    LithifyError,
    NothingToUndoError,
    OffsetOutOfRangeError,
    PolicyError,
)
from lithify.errors import RefusedError as ProductRefusedError
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings, changes
from support.textbook.log import TextbookLog
from support.textbook.records import at

Segments = Mapping[int, tuple[Segment, ...]]
"""By partition, in offset order."""


class RefusedError(Exception):
    """The contract refuses this, with an error of this kind."""

    def __init__(self, kind: type[LithifyError], why: str = "") -> None:
        super().__init__(f"{kind.__name__} {why}")
        self.kind = kind


@dataclass(frozen=True, slots=True)
class PastRound:
    """A committed round: by partition the log that it was laid over, its H, and S after it."""

    run_id: str
    before: Mapping[int, TextbookLog]
    horizons: Mapping[int, int]
    starts_after: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class TextbookTopic:
    """A topic at one version."""

    settings: TopicSettings
    logs: tuple[TextbookLog, ...]
    rounds: tuple[PastRound, ...] = ()
    """Those that were not undone, the newest last."""
    batch_id: int = -1
    """The latest batch of the query that appends to it."""
    brought_back: int = 0
    """How often something was done that lets superseded records count again."""
    own: frozenset[str] | None = None
    """The names of its own settings (C56); None: those that differ from the defaults, as nothing was altered yet."""

    def with_logs(self, *changed: TextbookLog) -> TextbookTopic:
        by_partition = {log.partition: log for log in (*self.logs, *changed)}
        return replace(self, logs=tuple(by_partition[p] for p in sorted(by_partition)))

    def appended(
        self, records: Sequence[Record], settings: TopicSettings, now_ms: int, *, keep_offsets: bool
    ) -> TextbookTopic:
        """C1, C16: every record gets its offset, or the batch is refused, by settings that were in force then."""
        logs = {log.partition: log for log in self.logs}
        by_log = settings.message_timestamp_type == "LogAppendTime" and not keep_offsets
        for record in records:
            assert record.partition is not None
            log = logs[record.partition]
            if _lacks_a_key(record, settings):
                raise RefusedError(InvalidRecordError, "no key")
            offset = at(record) if keep_offsets else log.end
            if offset < log.end:
                raise RefusedError(InvalidRecordError, "a replay")
            if record.envelope is not None and log.copied_to is not None and log.copied_to >= record.envelope.id:
                raise RefusedError(InvalidRecordError, "copied already")
            stored = record._replace(offset=offset)
            if by_log and record.envelope is None:
                stored = stored._replace(timestamp=now_ms, timestamp_type="LogAppendTime")
            logs[record.partition] = log.appended((stored,), offset + 1)
        return self.with_logs(*logs.values())

    def batch_appended(
        self, records: Sequence[Record], settings: TopicSettings, now_ms: int, batch_id: int
    ) -> TextbookTopic:
        """C6, C16: sent again it is there, and an earlier one is of a query that was set back."""
        fresh = replace(self, logs=tuple(replace(log, copied_to=None) for log in self.logs))
        fresh.appended(records, settings, now_ms, keep_offsets=False)  # what the records themselves are refused for
        if batch_id < self.batch_id:
            raise RefusedError(ProductRefusedError)
        if batch_id == self.batch_id:
            return self
        longer = self.appended(records, settings, now_ms, keep_offsets=False)
        if any(_lacks_a_key(record, self.settings) for record in records):
            raise RefusedError(ConflictError, "keys were not needed when tasks wrote it")
        return replace(longer, batch_id=batch_id)

    def ended(self, partition: int, end: int) -> TextbookTopic:
        """C2: a log may end beyond its last record, and its end does not go back."""
        log = self.logs[partition]
        if end < log.end:
            raise RefusedError(InvalidInputError)
        return self.with_logs(replace(log, end=end))

    def retained(self, segments: Segments, now_ms: int) -> TextbookTopic:
        """C24, C62."""
        if not (self.settings.deletes or self.settings.trimming_groups):
            raise RefusedError(PolicyError, "policy compact")
        return self.with_logs(
            *(log.retained(segments.get(log.partition, ()), self.settings, now_ms) for log in self.logs)
        )

    def records_deleted(self, partition: int, before: int) -> TextbookTopic:
        """C26."""
        log = self.logs[partition]
        if not 0 <= before <= log.end:
            raise RefusedError(OffsetOutOfRangeError)
        return self.with_logs(log.records_deleted(before))

    def read(self, partition: int, group: str, offset: int) -> TextbookTopic:
        """C58: a group commits a position."""
        log = self.logs[partition]
        return self.with_logs(replace(log, readers={**log.readers, group: (offset, len(log.cuts))}))

    def read_as(self, other: TextbookTopic) -> TextbookTopic:
        """With the positions of another moment."""
        readers = {log.partition: log.readers for log in other.logs}
        return self.with_logs(*(replace(log, readers=readers.get(log.partition, {})) for log in self.logs))

    def truncated(self, partition: int, to: int, *, below_compacted: bool) -> TextbookTopic:
        """C26."""
        log = self.logs[partition]
        if not log.start <= to <= log.end:
            raise RefusedError(OffsetOutOfRangeError)
        if to < log.compacted_up_to and not below_compacted:
            raise RefusedError(PolicyError)
        if to == log.end:
            return self
        return replace(self.with_logs(log.truncated(to)), brought_back=self.brought_back + (to < log.compacted_up_to))

    def altered(self, settings: TopicSettings, partitions: int, names: Collection[str]) -> TextbookTopic:
        """C43, C56: `names` were set, and `settings` with them are checked already."""
        if partitions < len(self.logs):
            raise RefusedError(InvalidSettingError, "fewer partitions")
        before = self.settings
        if before.side_by_side and not settings.side_by_side and any(log.view is not None for log in self.logs):
            raise RefusedError(PolicyError, "a view")
        new = tuple(TextbookLog(p) for p in range(len(self.logs), partitions))
        known = frozenset(changes(TopicSettings(), before)) if self.own is None else self.own
        own = known.union(names)
        if settings == before:
            logs = self.logs if own == known else tuple(replace(log, epoch=log.epoch + 1) for log in self.logs)
        else:
            logs = tuple(_altered(log, before, settings) for log in self.logs)
        return replace(self.with_logs(*logs, *new), settings=settings, own=own)

    def uncompacted(self, *, lose_trimmed: bool) -> TextbookTopic:
        """C35."""
        if not self.settings.side_by_side:
            raise RefusedError(PolicyError, "in place")
        for log in self.logs:
            only_here = [r for r in log.view or () if log.deleted_below <= at(r) < log.start]
            if only_here and not lose_trimmed:
                raise RefusedError(PolicyError, "trimmed")
        logs = (replace(log.uncompacted(), epoch=log.epoch + 1) for log in self.logs if log.view is not None)
        return replace(self.with_logs(*logs), brought_back=self.brought_back + 1)

    def undone(self, kept: Collection[str]) -> TextbookTopic:
        """C7: undoes the last round that still counts; `kept` are the runs whose base version is kept."""
        stands = {log.last_round for log in self.logs} - {""}
        standing = [past for past in self.rounds if past.run_id in stands]
        if not standing or standing[-1].run_id not in kept:
            raise RefusedError(NothingToUndoError, "no round, or its version is not kept")
        past = standing[-1]
        logs = []
        for partition, before in past.before.items():
            log = self.logs[partition]
            if log.last_round != past.run_id or log.cuts != before.cuts or (log.uncovered and not before.uncovered):
                raise RefusedError(NothingToUndoError, f"log {partition} went another way since")
            # C33: what has left the backlog since is in the view alone, and in none without the round.
            trimmed = past.starts_after[partition] < log.start > max(before.dirty_from, log.deleted_below)
            if log.view is not None and trimmed:
                raise RefusedError(NothingToUndoError, f"log {partition} was trimmed since")
            logs.append(log.without_round(before, past.horizons[partition], past.starts_after[partition]))
        left = tuple(r for r in self.rounds if r.run_id != past.run_id)
        return replace(self.with_logs(*logs), rounds=left, brought_back=self.brought_back + 1)


def _altered(log: TextbookLog, before: TopicSettings, after: TopicSettings) -> TextbookLog:
    """C43. A log that has had no records has nothing to judge anew."""
    log = replace(log, epoch=log.epoch + 1)
    if not log.end:
        return log
    log = replace(log, round_required=after.compacts or log.round_required)
    if after.empty_value == "tombstone" and before.empty_value == "value":
        log = replace(log, low=(), high=(), uncovered=True)
    begins = after.compacts and not before.compacts
    return log.uncompacted() if begins or (after.side_by_side and not before.side_by_side) else log


def _lacks_a_key(record: Record, settings: TopicSettings) -> bool:
    """C16, C53."""
    return record.key is None and settings.null_key == "reject" and settings.compacts and not record.passed_through
