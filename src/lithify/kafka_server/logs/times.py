"""Offsets by time, from memory once a segment was asked for.

    offsets      10   11   12   13   14   15
    timestamps  100  300  200  300  400  350        of all records
                100  300  ·    ·    400  ·          kept: each that is later than all before it

The first record at or after a time is one of those that are kept. The last of them has the largest timestamp.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from lithify.columnar.segment.column_names import OFFSET, TIMESTAMP
from lithify.model.segment import Segment
from lithify.ports.files import SegmentFiles

KEPT_RECORDS: Final = 2**21
"""Of all segments: 32 MiB."""
PIECE_BYTES: Final = 4 * 2**20


class TimedOffset(NamedTuple):
    """A record, by its offset and its timestamp in epoch ms."""

    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Times:
    """The records of a segment that are later than all before them."""

    offsets: npt.NDArray[np.int64]
    timestamps: npt.NDArray[np.int64]

    def first_at(self, timestamp_ms: int) -> TimedOffset | None:
        """The first record at or after a time; None if there is none."""
        at = int(np.searchsorted(self.timestamps, timestamp_ms))
        return self._record(at) if at < len(self.offsets) else None

    def last(self) -> TimedOffset | None:
        """The first record with the largest timestamp; None if no record is left."""
        return self._record(-1) if len(self.offsets) else None

    def _record(self, at: int) -> TimedOffset:
        return TimedOffset(int(self.offsets[at]), int(self.timestamps[at]))


@dataclass(slots=True)
class TimesOfSegments:
    """The times of segments that were asked for last. Several threads may use it."""

    files: SegmentFiles
    _kept: OrderedDict[tuple[str, int], Times] = field(default_factory=OrderedDict)
    """By segment, and the offset from which it counts."""
    _records: int = 0
    _lock: Lock = field(default_factory=Lock)

    def of(self, segment: Segment, start: int) -> Times:
        """Of the records of a segment from an offset on. Raises `DamagedError`, which names the file."""
        at = segment.id, max(start, segment.base_offset)
        with self._lock:
            if (known := self._kept.get(at)) is not None:
                self._kept.move_to_end(at)
                return known
        times = self._read(segment, at[1])
        with self._lock:
            if at not in self._kept:
                self._kept[at] = times
                self._records += len(times.offsets)
            while self._records > KEPT_RECORDS and len(self._kept) > 1:
                self._records -= len(self._kept.popitem(last=False)[1].offsets)
        return times

    def _read(self, segment: Segment, start: int) -> Times:
        offsets, timestamps = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        latest = np.iinfo(np.int64).min
        for piece in self.files.read_pieces(segment, start, (OFFSET, TIMESTAMP), PIECE_BYTES):
            times = piece.column(TIMESTAMP).to_numpy()
            reached = np.maximum.accumulate(np.concatenate([[latest], times]))
            later = np.flatnonzero(reached[1:] > reached[:-1])
            offsets.append(piece.column(OFFSET).to_numpy()[later])
            timestamps.append(times[later])
            latest = reached[-1]
        return Times(np.concatenate(offsets), np.concatenate(timestamps))
