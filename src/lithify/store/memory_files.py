"""The memory store's segments: the executable specification of `SegmentFiles`.

A segment's data is a tuple of records under its path. Every rule is applied to one record at a
time, in the order of the batch; sizes are plain sums.

    records ──receive──► by partition ──write──► [record, record, ...] under a path ──read──► records
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lithify.columnar.arrivals.columns import given_batches, given_schema, refused_record
from lithify.columnar.arrivals.partitioner import partition_of
from lithify.columnar.segment.convert import envelope_columns, to_records, to_table
from lithify.columnar.segment.schema import ENVELOPE_SCHEMA, SEGMENT_SCHEMA, TIMESTAMP_TYPE, VALUE_SIZE
from lithify.compaction.rules import SurvivorRules
from lithify.compaction.survivors import survivors
from lithify.errors import DamagedError
from lithify.lifecycle.admission import keeps_times, message_id_refusal, offset_refusal, partition_refusal, refusal
from lithify.lifecycle.sweeping import run_of
from lithify.model.log import TopicState
from lithify.model.message import EnvelopeFacts, MessageId
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.stored_file import FileKind, StoredFile
from lithify.ports.files import Arrivals
from lithify.reading.lag import Left

RECORD_BYTES = 16
"""What a record takes in this store beyond its payload."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records of one segment, in offset order."""

    content: tuple[Record, ...]

    def __len__(self) -> int:
        return len(self.content)

    @property
    def end_offset(self) -> int:
        return _offset(self.content[-1]) + 1

    def records(self) -> Iterator[Record]:
        return iter(self.content)

    def offset_at(self, timestamp_ms: int) -> int | None:
        return next((r.offset for r in self.content if r.timestamp is not None and r.timestamp >= timestamp_ms), None)

    def offset_of(self, sought: MessageId) -> int | None:
        return next((r.offset for r in self.content if r.envelope is not None and r.envelope.id >= sought), None)

    def to_arrow(self) -> pa.Table:
        sizes = pa.array([None if r.value is None else len(r.value) for r in self.content], pa.int32())
        table, schema = to_table(self.content).append_column(VALUE_SIZE, sizes), SEGMENT_SCHEMA
        if any(r.envelope is not None for r in self.content):
            schema = ENVELOPE_SCHEMA
            for name, column in envelope_columns(self.content).items():
                table = table.append_column(name, column)
        return table.select(schema.names).cast(schema)


@dataclass(frozen=True, slots=True)
class RecordArrivals:
    """Records to append to one log, complete except for their offsets."""

    content: tuple[Record, ...]

    @property
    def records(self) -> int:
        return len(self.content)

    @property
    def first_offset(self) -> int | None:
        return self.content[0].offset

    @property
    def last_timestamp_ms(self) -> int:
        timestamp = self.content[-1].timestamp
        assert timestamp is not None  # `receive` gives every record a timestamp
        return timestamp

    @property
    def message_ids(self) -> tuple[MessageId, MessageId] | None:
        first, last = self.content[0].envelope, self.content[-1].envelope
        return None if first is None or last is None else (first.id, last.id)


class MemoryFiles:
    """`SegmentFiles` in memory. `data` is what there is, by path; tests may damage it."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.data: dict[str, tuple[Record, ...]] = {}
        self._now_ms = now_ms
        self._written_ms: dict[str, int] = {}
        self._heartbeats: dict[str, int] = {}

    @property
    def access(self) -> None:
        """Nothing: no other process can open these files."""
        return None

    def receive(
        self, state: TopicState, batch: Any, *, now_ms: int, keep_offsets: bool
    ) -> Mapping[int, RecordArrivals]:
        """Raises `InvalidRecordError` for the first refused record, or `InvalidInputError`."""
        arriving: dict[int, list[Record]] = {}
        keyless = sum(log.log_end_offset for log in state.logs)  # keyless records continue the round-robin from there
        for index, record in enumerate(_given(batch, state.settings)):
            partition = record.partition
            if partition is None and record.key is not None:
                partition = partition_of(record.key, len(state.logs))
            elif partition is None:
                partition, keyless = keyless % len(state.logs), keyless + 1
            log = arriving.setdefault(partition, [])
            reason = _refusal(record, partition, log, state, now_ms=now_ms, keep_offsets=keep_offsets)
            if reason is not None:
                raise refused_record(index, reason)
            log.append(_completed(record, partition, state.settings, now_ms=now_ms, keep_offsets=keep_offsets))
        return {partition: RecordArrivals(tuple(records)) for partition, records in sorted(arriving.items())}

    def write(self, state: TopicState, arrivals: Arrivals, base_offset: int, run_id: str) -> tuple[Segment, ...]:
        """One segment, or more above `segment.bytes`; offsets from `base_offset` on unless they have their own."""
        assert isinstance(arrivals, RecordArrivals)  # as `receive` gave them
        given = enumerate(arrivals.content, base_offset)
        return self.write_records(state, [r._replace(offset=n) if r.offset is None else r for n, r in given], run_id)

    def write_records(self, state: TopicState, records: Sequence[Record], run_id: str) -> tuple[Segment, ...]:
        """Segments of records of one log that have their offsets, in offset order."""
        segments = []
        for number, piece in enumerate(_pieces(records, state.settings.segment_bytes)):
            first = piece[0]
            path = f"{state.location}/partition={first.partition}/{first.offset:020d}-{run_id}-{number}"
            self.data[path] = piece
            self._written_ms[path] = self._now_ms()
            segments.append(segment_of(path, piece))
        return tuple(segments)

    def read(self, segment: Segment, start_offset: int) -> Iterator[RecordBatch]:
        """Raises `DamagedError`."""
        records = self.data.get(segment.path)
        if records is None:
            raise DamagedError(f"{segment.path}: the file is missing", hint="restore it; nothing was changed")
        if len(records) != segment.records:
            raise DamagedError(
                f"{segment.path}: holds {len(records)} records, the metadata says {segment.records}",
                hint="restore it; nothing was changed",
            )
        wanted = tuple(r for r in records if _offset(r) >= start_offset)
        if wanted:
            yield RecordBatch(wanted)

    def left(self, segment: Segment, start_offset: int) -> Left:
        """Raises `DamagedError`."""
        records = [record for batch in self.read(segment, start_offset) for record in batch.content]
        return Left(len(records), min((r.timestamp for r in records if r.timestamp is not None), default=None))

    def latest(self, segments: Sequence[Segment], rules: SurvivorRules) -> Iterator[RecordBatch]:
        """The records of one log that survive `rules`, in offset order."""
        left = survivors((r for s in segments for batch in self.read(s, 0) for r in batch.content), rules).records
        if left:
            yield RecordBatch(left)

    def cut(self, state: TopicState, segment: Segment, end_offset: int, run_id: str) -> tuple[Segment, ...]:
        """Raises `DamagedError`."""
        records = [r for batch in self.read(segment, 0) for r in batch.content if _offset(r) < end_offset]
        # One run may cut a segment of the log and one of its view that begin at the same offset.
        origin = segment.path.rpartition("/")[2]
        return self.write_records(state, records, f"{run_id}-{origin}-{end_offset}")

    def missing(self, paths: Sequence[str]) -> tuple[str, ...]:
        return tuple(path for path in paths if path not in self.data)

    def free_bytes(self, state: TopicState) -> int | None:
        return None

    def stored(self, location: str) -> Iterator[StoredFile]:
        """The data files of a topic, and heartbeats of runs."""
        for path, records in list(self.data.items()):
            if path.startswith(f"{location}/"):
                size = sum(r.size_bytes + RECORD_BYTES for r in records)
                yield StoredFile(path, size, self._written_ms.get(path, 0), run_id=run_of(path))
        for path, heartbeat_ms in list(self._heartbeats.items()):
            if path.startswith(f"{location}/"):
                yield StoredFile(path, 0, heartbeat_ms, FileKind.HEARTBEAT, path.rpartition("/")[2])

    def heartbeat(self, location: str, run_id: str) -> None:
        """A heartbeat of a run."""
        self._heartbeats[f"{location}/runs/{run_id}"] = self._now_ms()

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.data.pop(path, None)
            self._heartbeats.pop(path, None)

    def drop(self, location: str) -> None:
        """Deletes all files of a topic."""
        for path in [path for path in self.data if path.startswith(f"{location}/")]:
            del self.data[path]


def segment_of(path: str, records: Sequence[Record]) -> Segment:
    """The facts of a segment that holds these records."""
    timestamps = [r.timestamp for r in records if r.timestamp is not None]
    keys = [r.key for r in records if r.key is not None]
    sizes = [len(r.value) for r in records if r.value is not None]
    partition = records[0].partition
    assert partition is not None
    return Segment(
        path=path,
        partition=partition,
        base_offset=_offset(records[0]),
        end_offset=_offset(records[-1]) + 1,
        records=len(records),
        size_bytes=sum(r.size_bytes + RECORD_BYTES for r in records),
        scan_bytes=sum(len(r.key or b"") + RECORD_BYTES for r in records),
        min_timestamp_ms=min(timestamps),
        max_timestamp_ms=max(timestamps),
        null_keys=len(records) - len(keys),
        null_values=len(records) - len(sizes),
        min_value_size=min(sizes, default=None),
        min_key=min(keys, default=None),
        max_key=max(keys, default=None),
        envelopes=_envelope_facts(records),
    )


def _envelope_facts(records: Sequence[Record]) -> EnvelopeFacts | None:
    ids = [r.envelope.id for r in records if r.envelope is not None]
    if not ids:
        return None
    ledgers, entries = [i.ledger for i in ids], [i.entry for i in ids]
    passed_through = sum(r.passed_through for r in records)
    return EnvelopeFacts(min(ledgers), max(ledgers), min(entries), max(entries), passed_through)


def _given(batch: Any, settings: TopicSettings) -> Iterator[Record]:
    """The records of a batch; an Arrow table is read as the bulk path reads it."""
    if not isinstance(batch, pa.Table | pa.RecordBatch):
        yield from batch
        return
    for columns in given_batches(batch, given_schema(settings)):
        table = pa.Table.from_batches([columns])
        at = table.schema.get_field_index(TIMESTAMP_TYPE)
        yield from to_records(table.set_column(at, TIMESTAMP_TYPE, table.column(at).fill_null(0)))


def _refusal(
    record: Record, partition: int, before: Sequence[Record], state: TopicState, *, now_ms: int, keep_offsets: bool
) -> str | None:
    reason = partition_refusal(partition, len(state.logs))
    reason = reason or refusal(record, state.settings, now_ms=now_ms, keep_offsets=keep_offsets)
    if reason is None and record.envelope is not None:
        last = before[-1].envelope if before else None
        reason = message_id_refusal(record.envelope.id, None if last is None else last.id)
    if reason is not None or not keep_offsets:
        return reason
    return offset_refusal(record.partition, record.offset, _offset(before[-1]) if before else None)


def _completed(record: Record, partition: int, settings: TopicSettings, *, now_ms: int, keep_offsets: bool) -> Record:
    timestamp = now_ms if record.timestamp is None else record.timestamp
    if keep_offsets:
        return record._replace(partition=partition, timestamp=timestamp)
    own_times = keeps_times(settings, keep_offsets=keep_offsets)
    by_log = settings.message_timestamp_type == "LogAppendTime" and not own_times
    return record._replace(
        partition=partition,
        offset=None,
        timestamp=now_ms if by_log else timestamp,
        timestamp_type="LogAppendTime" if by_log else "CreateTime",
    )


def _pieces(records: Sequence[Record], segment_bytes: int) -> Iterator[tuple[Record, ...]]:
    piece: list[Record] = []
    size = 0
    for record in records:
        piece.append(record)
        size += record.size_bytes + RECORD_BYTES
        if size >= segment_bytes:
            yield tuple(piece)
            piece, size = [], 0
    if piece:
        yield tuple(piece)


def _offset(record: Record) -> int:
    assert record.offset is not None  # every stored record has one
    return record.offset
