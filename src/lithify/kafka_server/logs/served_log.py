"""A log in one version of its topic, as clients of Kafka read it: offsets, epochs, times, batches.

    segments   S [ part ][ part ]   [ part ][ part ]          E
    batches      |    |  |    |     |    |  |    |   empty    |
                           ▲ offset: from the batch that it is in, as many as are asked for

Side by side (C33) they read the backlog, or what is compacted: the view below D, and the backlog from there on.

Rounds may have removed the last records below the log end. Then an empty batch follows, by which clients get to the
log end; otherwise some would wait there for ever.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lithify.kafka_log.batches.encoding import empty_batch
from lithify.kafka_server.logs.leader_epochs import epoch_end
from lithify.kafka_server.logs.parts import Part
from lithify.kafka_server.logs.times import TimedOffset
from lithify.kafka_server.logs.version_files import VersionFiles
from lithify.model.cursor import checked_offset
from lithify.model.names import LogId
from lithify.model.topic.log import LogState
from lithify.rules.reading.pieces import Piece, Reading

_LARGEST_DELTA: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ServedLog:
    """What is known at once are properties. The methods may read files, and so block."""

    id: LogId
    state: LogState
    files: VersionFiles
    how: Reading

    @property
    def start(self) -> int:
        return self.how.start(self.state)

    @property
    def end(self) -> int:
        return self.state.log_end_offset

    @property
    def leader_epoch(self) -> int:
        return self.state.generation

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The epoch, and the offset up to which what was read in it is still there; (-1, -1) for an unknown one."""
        return epoch_end(self.state, epoch, self.start)

    def batches(self, offset: int, max_bytes: int) -> list[memoryview]:
        """Whole batches from the one on that `offset` is in: at least one if there is any, at most `max_bytes`.

        Raises `OffsetOutOfRangeError`, `DamagedError`, and `VersionSweptError` if there is a later version that does
        not need the files that are missing.
        """
        checked_offset(self.id, self.start, self.end, offset)
        found: list[memoryview] = []
        left = max_bytes
        for part in self._parts(offset):
            first, starts = part.first_at(offset), part.batches.starts
            if first == len(starts) - 1:
                continue
            end = bisect_right(starts, starts[first] + left) - 1
            if end <= first:
                if found:
                    return found
                end = first + 1
            found.append(part.batches.data[starts[first] : starts[end]])
            offset = part.batches.last_offsets[end - 1] + 1
            left -= starts[end] - starts[first]
            if end < len(starts) - 1 or left <= 0:
                return found
        if offset < self.end:
            empty = memoryview(self._empty_batch(offset))
            if not found or len(empty) <= left:
                found.append(empty)
        return found

    def offset_at(self, timestamp_ms: int) -> TimedOffset | None:
        """The first record at or after a time; None if there is none. Raises as `batches` does."""
        for piece in self._pieces(self.start):
            if piece.segment.max_timestamp_ms >= timestamp_ms:
                with self.files.sweeps_told(self.id):
                    first = self.files.kept.times.of(piece.segment, piece.start_offset).first_at(timestamp_ms)
                if first is not None:
                    return first
        return None

    def max_time(self) -> TimedOffset | None:
        """The first record with the largest timestamp; None if there is none. Raises as `batches` does."""
        latest: TimedOffset | None = None
        for piece in sorted(self._pieces(self.start), key=_latest_first):
            if latest is not None and latest.timestamp_ms > piece.segment.max_timestamp_ms:
                break
            with self.files.sweeps_told(self.id):
                last = self.files.kept.times.of(piece.segment, piece.start_offset).last()
            if last is not None and (latest is None or _later(last, latest)):
                latest = last
        return latest

    def _parts(self, offset: int) -> Iterator[Part]:
        """The parts from the one on that an offset is in."""
        for piece in self._pieces(offset):
            segment, start = piece.segment, piece.start_offset
            offset = max(offset, segment.base_offset)
            while offset < segment.end_offset:
                with self.files.sweeps_told(self.id):
                    part = self.files.kept.parts.part(segment, offset, start=start, leader_epoch=self.leader_epoch)
                offset = part.end
                yield part

    def _pieces(self, offset: int) -> tuple[Piece, ...]:
        """Those with offsets at or above one, in order."""
        if offset >= self.end:
            return ()
        with self.files.sweeps_told(self.id):
            pieces = self.files.pieces(self.id.partition, self.how)
        return pieces[bisect_right(pieces, offset, key=lambda piece: piece.segment.end_offset) :]

    def _empty_batch(self, offset: int) -> bytes:
        last = self.end - 1
        return empty_batch(max(offset, last - _LARGEST_DELTA), last, self.leader_epoch)


def _latest_first(piece: Piece) -> tuple[int, int]:
    return -piece.segment.max_timestamp_ms, piece.segment.base_offset


def _later(one: TimedOffset, other: TimedOffset) -> bool:
    return (one.timestamp_ms, -one.offset) > (other.timestamp_ms, -other.offset)
