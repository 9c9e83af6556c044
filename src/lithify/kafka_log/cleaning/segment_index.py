"""The indexes of a segment, as a broker writes them beside it; with them it need not read the segment when it starts.

    .index       last offset of a batch (4)   its position (4)          every index.interval.bytes
    .timeindex   largest timestamp so far (8)   the offset of it (4)    with these, and at the end
    .txnindex    version (2)   producer (8)   first, last and stable offset (8 each) of an aborted transaction

Offsets of the first two are relative to the base offset of the segment.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from lithify.kafka_log.batches.header import BatchHeader
from lithify.kafka_log.cleaning.batch_cleaner import AbortedEntry

_PLACE: Final = struct.Struct(">ii")
_TIME: Final = struct.Struct(">qi")
_ABORTED: Final = struct.Struct(">hqqqq")


class SegmentIndex:
    """Filled in the order of batches."""

    def __init__(self, base_offset: int, interval_bytes: int) -> None:
        self.places, self.times = bytearray(), bytearray()
        self._base, self._interval_bytes = base_offset, interval_bytes
        self._since = self._position = 0
        self._newest_ms, self._newest_at, self._noted_ms = -1, base_offset, -1

    def add(self, header: BatchHeader, size: int) -> None:
        if header.max_timestamp > self._newest_ms:
            self._newest_ms, self._newest_at = header.max_timestamp, header.last_offset
        if self._position - self._since > self._interval_bytes:
            self.places += _PLACE.pack(header.last_offset - self._base, self._position)
            self._note_time()
            self._since = self._position
        self._position += size

    def end(self) -> None:
        self._note_time()

    def _note_time(self) -> None:
        if self._newest_ms > self._noted_ms:
            self.times += _TIME.pack(self._newest_ms, self._newest_at - self._base)
            self._noted_ms = self._newest_ms


def aborted_index(entries: Iterable[AbortedEntry]) -> bytes:
    return b"".join(_ABORTED.pack(0, *entry) for entry in entries)
