"""The memory store's segments: the executable specification of `SegmentFiles`.

A segment's data is a tuple of records under its path. Every rule is applied to one record at a
time, in the order of the batch; sizes are plain sums.

    records ──receive──► by partition ──write──► [record, record, ...] under a path ──read──► records
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lithify.columnar.arrivals.arrived_columns import given_batches, given_schema
from lithify.columnar.segment.convert import to_records
from lithify.columnar.segment.schema import TIMESTAMP_TYPE
from lithify.errors import DamagedError, LithifyError
from lithify.model.finding import Finding, FindingKind
from lithify.model.record import TIMESTAMP_TYPES, Record
from lithify.model.replicas.file_names import copied_name
from lithify.model.segment import Mask, Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.stored_file import FileKind, StoredFile
from lithify.model.topic.state import TopicState
from lithify.ports.files import Arrivals
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.compaction.survivors import survivors
from lithify.rules.lifecycle.sweeping import run_of
from lithify.rules.reading.group_lag import Left
from lithify.testing.memory_arrivals import keyless_of, received
from lithify.testing.memory_batches import RecordArrivals, RecordBatch, offset_of
from lithify.testing.memory_segments import RECORD_BYTES, segment_of

MASKED_BYTES = 8
"""What one takes in a mask."""
_KINDS = range(len(TIMESTAMP_TYPES))


class MemoryFiles:
    """`SegmentFiles` in memory. `data` is what there is, by path, `masks` what masks hide; tests may damage both.

    With `converts` it refuses and converts records as a stored lake does, and keeps nothing that a program may change;
    without, it takes them as they are, which costs less.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0, *, converts: bool = False) -> None:
        self._converts = converts
        self.data: dict[str, tuple[Record, ...]] = {}
        self.masks: dict[str, frozenset[int]] = {}
        self._now_ms = now_ms
        self._written_ms: dict[str, int] = {}
        self._heartbeats: dict[str, int] = {}

    @property
    def access(self) -> None:
        """Nothing: no other process can open these files."""
        return None

    def receive(self, state: TopicState, batch: Any, *, now_ms: int, keep_offsets: bool) -> dict[int, RecordArrivals]:
        """Raises `InvalidRecordError` for the first refused record, or `InvalidInputError`."""
        given = self._given(batch, state.settings)
        return received(state, given, keyless_of(state), now_ms=now_ms, keep_offsets=keep_offsets)[0]

    def receive_each(
        self, state: TopicState, batches: Sequence[Any], *, now_ms: int
    ) -> list[dict[int, RecordArrivals] | LithifyError]:
        keyless, outcomes = keyless_of(state), list[dict[int, RecordArrivals] | LithifyError]()
        for batch in batches:
            try:
                given = self._given(batch, state.settings)
                arrivals, keyless = received(state, given, keyless, now_ms=now_ms, keep_offsets=False)
            except LithifyError as error:
                outcomes.append(error)
            else:
                outcomes.append(arrivals)
        return outcomes

    def _given(self, batch: Any, settings: TopicSettings) -> Iterator[Record]:
        """The records of a batch; an Arrow table is read as the bulk path reads it."""
        if not self._converts and not isinstance(batch, pa.Table | pa.RecordBatch):
            yield from batch
            return
        for columns in given_batches(batch, given_schema(settings)):
            table = pa.Table.from_batches([columns])
            at = table.schema.get_field_index(TIMESTAMP_TYPE)
            kinds: list[Any] = [kind or 0 for kind in table.column(at).to_pylist()]
            known = pa.array([kind if kind in _KINDS else 0 for kind in kinds], pa.int32())
            for record, kind in zip(to_records(table.set_column(at, TIMESTAMP_TYPE, known)), kinds, strict=True):
                yield record if kind in _KINDS else record._replace(timestamp_type=kind)  # `_refusal` looks at it

    def joined(self, arrivals: Sequence[Arrivals]) -> RecordArrivals:
        return RecordArrivals(tuple(r for a in arrivals if isinstance(a, RecordArrivals) for r in a.content))

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
        records = self.records_of(segment)
        if records is None:
            raise DamagedError(f"{segment.id}: the file is missing", hint="restore it; nothing was changed")
        if len(records) != segment.records:
            raise DamagedError(
                f"{segment.path}: holds {len(records)} records, but the metadata has {segment.records}",
                hint="restore it; nothing was changed",
            )
        wanted = tuple(r for r in records if offset_of(r) >= start_offset)
        if wanted:
            yield RecordBatch(wanted)

    def read_pieces(
        self, segment: Segment, start_offset: int, columns: Sequence[str], piece_bytes: int
    ) -> Generator[Any, None, None]:
        """Raises `DamagedError`."""
        for batch in self.read(segment, start_offset):
            yield batch.to_arrow().select(list(columns))

    def records_of(self, segment: Segment) -> tuple[Record, ...] | None:
        """The records that its mask does not hide; None if a file is missing."""
        records, hidden = self.data.get(segment.path), self._hidden(segment)
        return None if records is None or hidden is None else tuple(r for r in records if r.offset not in hidden)

    def _hidden(self, segment: Segment) -> frozenset[int] | None:
        return frozenset() if segment.mask is None else self.masks.get(segment.mask.path)

    def left(self, segment: Segment, start_offset: int) -> Left:
        """Raises `DamagedError`."""
        records = [record for batch in self.read(segment, start_offset) for record in batch.content]
        return Left(len(records), min((r.timestamp for r in records if r.timestamp is not None), default=None))

    def latest(
        self, segments: Sequence[Segment], rules: SurvivorRules, key: bytes | None = None
    ) -> Iterator[RecordBatch]:
        every = (r for s in segments for batch in self.read(s, 0) for r in batch.content if key in (None, r.key))
        left = survivors((r for r in every if offset_of(r) < rules.horizon), rules).records
        if left:
            yield RecordBatch(left)

    def cut(self, state: TopicState, segment: Segment, end_offset: int, run_id: str) -> tuple[Segment, ...]:
        """Raises `DamagedError`."""
        records = [r for batch in self.read(segment, 0) for r in batch.content if offset_of(r) < end_offset]
        # One run may cut a segment of the log and one of its view that begin at the same offset.
        origin = segment.id.rpartition("/")[2]
        return self.write_records(state, records, f"{run_id}-{origin}-{end_offset}")

    def masked(self, state: TopicState, segment: Segment, dead: Collection[int], run_id: str) -> Segment:
        """Raises `DamagedError`."""
        hidden = self._hidden(segment)
        if hidden is None:
            raise DamagedError(f"{segment.id}: the file is missing", hint="restore it; nothing was changed")
        hidden |= frozenset(dead)
        path = f"{segment.path.rpartition('/')[0]}/{segment.base_offset:020d}-{run_id}-{len(hidden)}.mask"
        self.masks[path] = hidden
        self._written_ms[path] = self._now_ms()
        mask = Mask(path, len(hidden) * MASKED_BYTES, len(hidden))
        return replace(segment, records=segment.records_in_file - len(hidden), mask=mask)

    def pieces(self, segment: Segment) -> Iterator[bytes]:
        """The records of a segment, pickled. Raises `DamagedError`."""
        for batch in self.read(segment, 0):
            yield pickle.dumps(batch.content)

    def checked_pieces(self, segment: Segment) -> Iterator[bytes]:
        """Raises `DamagedError`."""
        for finding in self.findings(segment):
            raise DamagedError(finding.message, hint="restore it; nothing was changed")
        yield from self.pieces(segment)

    def copy(self, state: TopicState, segment: Segment, pieces: Iterable[bytes], run_id: str) -> Segment:
        path = f"{state.location}/partition={segment.partition}/{copied_name(segment.path, run_id)}"
        self.data[path] = pickle.loads(b"".join(pieces))
        self._written_ms[path] = self._now_ms()
        return replace(segment, path=path)

    def hidden(self, segment: Segment) -> frozenset[int]:
        """Raises `DamagedError`."""
        hidden = self._hidden(segment)
        problem = f"{segment.id}: the file is missing"
        if hidden is not None and segment.mask is not None and len(hidden) != segment.mask.dead:
            problem = f"{segment.id}: hides {len(hidden)} records, but the metadata has {segment.mask.dead}"
        elif hidden is not None:
            return hidden
        raise DamagedError(problem, hint="restore it; nothing was changed") from (
            FileNotFoundError(segment.id) if hidden is None else None
        )

    def copy_mask(self, state: TopicState, segment: Segment, hidden: frozenset[int], run_id: str) -> Segment:
        assert segment.mask is not None
        path = f"{state.location}/partition={segment.partition}/{copied_name(segment.mask.path, run_id)}"
        self.masks[path] = hidden
        self._written_ms[path] = self._now_ms()
        return replace(segment, mask=replace(segment.mask, path=path))

    def findings(self, segment: Segment) -> tuple[Finding, ...]:
        """What is wrong with a segment, by its records."""
        records, hidden = self.data.get(segment.path), self._hidden(segment)
        if records is None or hidden is None:
            path = segment.path if records is None else segment.id
            return (Finding(segment.partition, FindingKind.FILE_MISSING, f"{path}: the file is missing", path=path),)
        if (
            segment_of(segment.path, records) != segment.unmasked
            or len(hidden) != segment.unmasked.records - segment.records
        ):
            message = f"{segment.path}: it does not hold what the metadata has"
            return (Finding(segment.partition, FindingKind.WRONG_METADATA, message, path=segment.path),)
        return ()

    def missing(self, paths: Sequence[str]) -> tuple[str, ...]:
        return tuple(path for path in paths if path not in self.data and path not in self.masks)

    def free_bytes(self, state: TopicState) -> int | None:
        return None

    def stored(self, location: str) -> Iterator[StoredFile]:
        """The data files of a topic, and heartbeats of runs."""
        for path, records in list(self.data.items()):
            if path.startswith(f"{location}/"):
                size = sum(r.size_bytes + RECORD_BYTES for r in records)
                yield StoredFile(path, size, self._written_ms.get(path, 0), run_id=run_of(path))
        for path, hidden in list(self.masks.items()):
            if path.startswith(f"{location}/"):
                written_ms = self._written_ms.get(path, 0)
                yield StoredFile(path, len(hidden) * MASKED_BYTES, written_ms, run_id=run_of(path))
        for path, heartbeat_ms in list(self._heartbeats.items()):
            if path.startswith(f"{location}/"):
                yield StoredFile(path, 0, heartbeat_ms, FileKind.HEARTBEAT, path.rpartition("/")[2])

    def heartbeat(self, location: str, run_id: str) -> None:
        """A heartbeat of a run."""
        self._heartbeats[f"{location}/runs/{run_id}"] = self._now_ms()

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.data.pop(path, None)
            self.masks.pop(path, None)
            self._heartbeats.pop(path, None)

    def drop(self, location: str) -> None:
        """Deletes all files of a topic."""
        self.delete([path for path in (*self.data, *self.masks) if path.startswith(f"{location}/")])


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
