"""A log of which tiered storage has the older segments, and a broker's directory the newer ones.

    tiered     0 ───── 500 ───── 1000 ───── 1500            of epoch 3
                           700 ──────────────── 1600        of epoch 4: uploaded by the next leader
    broker                                1400 ──────── 2000
    read       0 ───── 500 ─ 700 ──────── 1400 ──────── 2000

A leader begins with the segment in which its epoch begins, or before that. So from the first offset of its segments on
no segment of an earlier epoch counts: it has the same batches, or others that were lost. A segment that ends within a
batch was not uploaded to its end, and what it has is somewhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from lithify.kafka_log.batches.header import NONE
from lithify.kafka_log.directories.folders import LogFolder
from lithify.kafka_log.replicas import ReplicaError
from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment, scanned_log


@dataclass(frozen=True, slots=True)
class TieredLog:
    """Segments in the order of their offsets, and what a broker has behind them."""

    folder: LogFolder
    segments: tuple[ScannedSegment, ...]
    broker: ScannedLog | None
    left_out: tuple[ScannedSegment, ...] = ()
    """Whole segments that do not count, also of the broker."""

    @property
    def overlapping(self) -> Iterable[tuple[ScannedSegment, int]]:
        """Those that end behind the beginning of the next one, and where that begins."""
        every = [*self.segments, *(self.broker.segments[:1] if self.broker else ())]
        for segment, after in pairwise(every):
            if segment.end_offset > after.base_offset:
                yield segment, after.base_offset

    def check_end(self) -> None:
        """Raises `ReplicaError` if what is left out ends behind the log: an epoch that is wrong would do that."""
        end = self.together().written_end
        for segment in self.left_out:
            if segment.end_offset > end:
                why = f"segments of a later leader epoch replace {segment.path}, which ends at {segment.end_offset}"
                raise ReplicaError(f"{why}, but they end at {end}")

    def together(self) -> ScannedLog:
        """As one log, once none is overlapping."""
        if self.broker is None:
            return scanned_log(self.folder, self.segments)
        log = scanned_log(self.broker.folder, (*self.segments, *self.broker.segments))
        return replace(log, replicated=self.broker.replicated)


def tiered_log(folder: LogFolder, segments: Iterable[ScannedSegment], broker: ScannedLog | None) -> TieredLog:
    """Of `segments`, in any order, those that count. A broker's log of an earlier epoch than theirs does not count."""
    whole = [segment for segment in segments if segment.scan.broken is None or not segment.scan.broken.is_torn]
    newest = max(map(_epoch, whole), default=NONE)
    left_out: list[ScannedSegment] = []
    if broker is not None and (not broker.segments or (broker.leader_epoch or 0) < newest):
        left_out += broker.segments
        broker = None
    kept: list[ScannedSegment] = []
    for segment in sorted(whole, key=lambda one: (_epoch(one), one.base_offset, one.end_offset), reverse=True):
        after = kept[-1] if kept else broker.segments[0] if broker else None
        if after is None or segment.base_offset < after.base_offset:
            kept.append(segment)
        else:
            left_out.append(segment)
    return TieredLog(folder, tuple(reversed(kept)), broker, tuple(left_out))


def _epoch(segment: ScannedSegment) -> int:
    return segment.scan.epochs[-1].epoch if segment.scan.epochs else NONE
