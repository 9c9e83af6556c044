"""Parts of segments as batches, kept in memory: each is encoded once for all clients that read there.

    segment     [ part ][ part ][ part ··· not asked for yet ]
    readings                    ▲ open: the client that asks for the next part does not decode again what is before it

A part begins where a client asked and nothing was known, and has about `PART_BYTES`. So clients that read one after
the other find the parts of the first one, and many partitions that are read at the same time take little memory each.
Segments never change, nor do masks (C6): a part is known by their files, the offset from which the segment counts, and
the leader epoch in its batches. A client that asks for a part which another one waits for waits for the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, NamedTuple

from lithify.columnar.files.access import local_path
from lithify.columnar.segment.column_names import HEADERS, KEY, OFFSET, TIMESTAMP, VALUE
from lithify.columnar.segment.writer import ROW_GROUP_RECORDS
from lithify.kafka_log.batches.encoding import Batches, BatchLimits, encoded_with_create_time
from lithify.model.segment import Segment
from lithify.ports.files import SegmentFiles

PART_BYTES: Final = 3 * 2**19
"""Of a decoded part, at most. Of values of 200 bytes it makes 1 MiB of batches: clients ask for that at once."""
KEPT_BYTES: Final = 128 * 2**20
"""Of all parts that are kept. Those that are being sent count no longer once others have replaced them."""
READING_BYTES: Final = 128 * 2**20
"""Of all readings that are open. In an object store each has what is stored of a row group, else two buffers."""
READING_KEPT_MS: Final = 60_000
LIMITS: Final = BatchLimits(records=100_000, bytes=256 * 2**10)
COLUMNS: Final = (OFFSET, TIMESTAMP, KEY, VALUE, HEADERS)
_PART_OVERHEAD: Final = 1_000
"""Bytes that a part takes besides its batches, about."""
_LEAST_READING, _LOCAL_READING = 2**19, 2**21
"""Bytes that a reading counts for: each also has an open file."""


class Place(NamedTuple):
    """Which batches are meant: the records of a segment from an offset on, with a leader epoch."""

    segment: str
    start: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Part:
    """Batches with all records of a segment in [start, end)."""

    start: int
    end: int
    batches: Batches

    @property
    def size_bytes(self) -> int:
        return len(self.batches.data) + _PART_OVERHEAD

    def first_at(self, offset: int) -> int:
        """The number of the first batch with a record at or above `offset`."""
        return bisect_right(self.batches.last_offsets, offset - 1)


@dataclass(slots=True)
class _Reading:
    """The rest of a segment, in pieces."""

    pieces: Generator[Any, None, None]
    size_bytes: int
    used_ms: int = 0


@dataclass(slots=True)
class Parts:
    """The parts of all topics. Several threads may use it."""

    files: SegmentFiles
    monotonic_ms: Callable[[], int]
    kept_bytes: int = KEPT_BYTES
    _size_bytes: int = 0
    _kept: OrderedDict[tuple[Place, int], Part] = field(default_factory=OrderedDict)
    """By place and start, those that were used last at the end."""
    _starts: dict[Place, list[int]] = field(default_factory=dict)
    """Of the parts that are kept, ascending."""
    _building: dict[tuple[Place, int], Future[Part]] = field(default_factory=dict)
    _readings: OrderedDict[tuple[Place, int], _Reading] = field(default_factory=OrderedDict)
    """By the offset at which each continues, those that were used last at the end."""
    _lock: Lock = field(default_factory=Lock)

    def part(self, segment: Segment, offset: int, *, start: int, leader_epoch: int) -> Part:
        """The part of a segment that `offset` is in, of its records from `start` on.

        The offset is one of the segment. Raises `DamagedError`, which names the file.
        """
        place = Place(segment.id, max(start, segment.base_offset), leader_epoch)
        with self._lock:
            if (part := self._found(place, offset)) is not None:
                return part
            known = self._building.get((place, offset))
            building = Future[Part]() if known is None else known
            self._building[place, offset] = building
        if known is not None:
            return known.result()
        try:
            part = self._built(segment, place, offset)
        except BaseException as error:
            with self._lock:
                del self._building[place, offset]
            building.set_exception(error)
            raise
        with self._lock:
            self._keep(place, part)
            del self._building[place, offset]
        building.set_result(part)
        return part

    def close_idle(self) -> None:
        """Closes readings that nobody has continued for `READING_KEPT_MS`."""
        until_ms = self.monotonic_ms() - READING_KEPT_MS
        with self._lock:
            idle = [at for at, reading in self._readings.items() if reading.used_ms < until_ms]
            closing = [self._readings.pop(at) for at in idle]
        _close(closing)

    def close(self) -> None:
        """Drops all."""
        with self._lock:
            closing = [*self._readings.values()]
            self._readings.clear()
            self._kept.clear()
            self._starts.clear()
            self._size_bytes = 0
        _close(closing)

    def _found(self, place: Place, offset: int) -> Part | None:
        starts = self._starts.get(place, ())
        at = bisect_right(starts, offset) - 1
        part = self._kept.get((place, starts[at])) if at >= 0 else None
        if part is None or offset >= part.end:
            return None
        self._kept.move_to_end((place, part.start))
        return part

    def _built(self, segment: Segment, place: Place, offset: int) -> Part:
        with self._lock:
            reading = self._readings.pop((place, offset), None)
        if reading is None:
            from_offset = max(offset, place.start)
            pieces = self.files.read_pieces(segment, from_offset, COLUMNS, PART_BYTES)
            reading = _Reading(pieces, _reading_bytes(segment))
        table = next(reading.pieces, None)
        if table is None:
            return Part(offset, segment.end_offset, Batches(memoryview(b""), (0,), ()))
        batches = encoded_with_create_time(table, leader_epoch=place.leader_epoch, limits=LIMITS)
        part = Part(offset, batches.last_offsets[-1] + 1, batches)
        if part.end < segment.end_offset:
            self._hold(reading, (place, part.end))
        else:
            reading.pieces.close()
        return part

    def _hold(self, reading: _Reading, at: tuple[Place, int]) -> None:
        reading.used_ms = self.monotonic_ms()
        closing = []
        with self._lock:
            if (same := self._readings.pop(at, None)) is not None:
                closing.append(same)
            self._readings[at] = reading
            while sum(one.size_bytes for one in self._readings.values()) > READING_BYTES and len(self._readings) > 1:
                closing.append(self._readings.popitem(last=False)[1])
        _close(closing)

    def _keep(self, place: Place, part: Part) -> None:
        at = (place, part.start)
        starts = self._starts.setdefault(place, [])
        if (same := self._kept.pop(at, None)) is not None:
            self._size_bytes -= same.size_bytes
        else:
            starts.insert(bisect_right(starts, part.start), part.start)
        self._kept[at] = part
        self._size_bytes += part.size_bytes
        while self._size_bytes > self.kept_bytes and len(self._kept) > 1:
            (place, start), oldest = self._kept.popitem(last=False)
            self._size_bytes -= oldest.size_bytes
            self._starts[place].remove(start)
            if not self._starts[place]:
                del self._starts[place]


def _reading_bytes(segment: Segment) -> int:
    """What a reading takes, about."""
    group = segment.size_bytes * min(1, ROW_GROUP_RECORDS / max(1, segment.records_in_file))
    held = group if local_path(segment.path) is None else min(group, _LOCAL_READING)
    return max(_LEAST_READING, round(held))


def _close(readings: list[_Reading]) -> None:
    """Outside of locks: a file may take long to close."""
    for reading in readings:
        with suppress(Exception):
            reading.pieces.close()
