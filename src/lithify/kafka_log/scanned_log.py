"""One replica of a log, once all its segments are scanned: which offsets it has, and what is wrong with it.

    segments   0 ───── 1000 ───── 2000 ──╳        a crash: cut where a broker cuts it when it starts again
    damage            ▒                           named by file and byte, and passed over only if told to
               ╰ log start        stable end ╯    ╰ log end

A broker that was not shut down checks what it wrote after its recovery point, and cuts its log before the first byte
that is not a whole batch. Before that point it trusts its disk, so that what is damaged there is damage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lithify.kafka_log.batches.frames import BatchError
from lithify.kafka_log.committed import Committed
from lithify.kafka_log.directories.checkpoints import EpochStart
from lithify.kafka_log.directories.folders import LogFolder
from lithify.kafka_log.log_epochs import LogEpochs, log_epochs
from lithify.kafka_log.segment_scan import SegmentScan
from lithify.kafka_log.transactions import LogTransactions, transactions_of
from lithify.model.settings.units import plural


@dataclass(frozen=True, slots=True)
class ScannedSegment:
    """A file of a log, and what a task has found in it."""

    path: Path
    base_offset: int
    scan: SegmentScan
    is_checked: bool = False
    """Whether a broker that starts would cut it at its first damaged batch, and the scan has ended there."""

    @property
    def end_offset(self) -> int:
        return self.base_offset if self.scan.end_offset is None else self.scan.end_offset

    @property
    def is_damaged(self) -> bool:
        return bool(self.scan.damaged_frames) or self.scan.broken is not None

    def committed(self, start: int, end: int, transactions: LogTransactions) -> Committed:
        """Which records of it count, of those in [start, end)."""
        damaged = {error.position for error in self.scan.damaged}
        return Committed(start, end, transactions.aborted_in(start, end), damaged)


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not a batch; where `is_rest` is true, no batch after them in the file can be found."""

    path: Path
    position: int
    what: str
    is_rest: bool
    files_after: int = 0
    """That are left out with it."""

    def __str__(self) -> str:
        rest = ["what follows in the file"] if self.is_rest else []
        files = [f"{plural(self.files_after, 'file')} after it"] if self.files_after else []
        lost = f"; lost with it: {', '.join([*rest, *files])}" if rest or files else ""
        return f"{self.path}, byte {self.position}: {self.what}{lost}"


@dataclass(frozen=True, slots=True)
class ScannedLog:
    """A replica of one partition: the records in [start_offset, stable_end) are there, but for the damage."""

    folder: LogFolder
    segments: tuple[ScannedSegment, ...]
    start_offset: int
    written_end: int
    """After its last batch."""
    own_epochs: LogEpochs
    transactions: LogTransactions
    damage: tuple[Damage, ...]
    cut: Damage | None
    """Where a broker would cut it off, if it would."""
    replicated: tuple[int, Path] | None
    """The high watermark that was noted, and the directory in which it is."""

    @property
    def lacks_from(self) -> int | None:
        """Where its broker has noted that it starts, if no file has that: None if nothing is lacking.

        A log start of zero is not noted; then the first epoch tells, which a broker moves with the log start.
        """
        noted = self.folder.log_start
        if noted is None and self.folder.epochs:
            noted = self.folder.epochs[0].offset
        return noted if noted is not None and noted < self.start_offset else None

    @property
    def end_offset(self) -> int:
        """Where its next record would be: a broker that has noted a later start deletes all that is written."""
        return max(self.written_end, self.start_offset)

    @property
    def stable_end(self) -> int:
        """Where a reader of committed records ends."""
        return max(self.transactions.stable_end(self.end_offset), self.start_offset)

    def damage_from(self, offset: int) -> list[Damage]:
        """What is damaged in segments that may have had offsets from there on."""
        bases = [segment.base_offset for segment in self.segments]
        ends = [*bases[1:], max(offset, self.end_offset) + 1][: len(bases)]
        paths = {segment.path for segment, end in zip(self.segments, ends, strict=True) if end > offset}
        return [one for one in self.damage if one.path in paths]

    @property
    def has_transactions(self) -> bool:
        own = (segment.scan.transactions for segment in self.segments)
        return any(one.first_ends or one.open for one in own)

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Offsets [start, end) between two files. Before the first dirty offset a cleaner has brought them."""
        return [(start, end) for start, end in self._all_gaps if end > (self.folder.first_dirty or 0)]

    @property
    def _all_gaps(self) -> list[tuple[int, int]]:
        pairs = pairwise(self.segments)
        found = [(segment.end_offset, after.base_offset) for segment, after in pairs if not segment.is_damaged]
        return [(start, end) for start, end in found if start < end]

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        """As its broker has noted them, and of batches after that."""
        return self.own_epochs.starts

    @property
    def leader_epoch(self) -> int | None:
        """The latest one; None for a log of a broker that did not note any."""
        return self.epochs[-1].epoch if self.epochs else None

    @property
    def reached_epoch(self) -> int | None:
        """The latest one that it has had, also of records that were torn off."""
        return max((start.epoch for start in (*self.epochs, *self.folder.epochs)), default=None)

    def end_of_epoch(self, epoch: int) -> int | None:
        """The offset at which the log had its first record of a later epoch, or its end.

        None for an epoch that it has not reached: what was read in it is another replica's.
        """
        if self.leader_epoch is not None and self.leader_epoch < epoch:
            return None
        return min((start.offset for start in self.epochs if start.epoch > epoch), default=self.end_offset)

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Of replicas of one partition the one with the largest is the one that a cluster would go on with.

        Of those that it could go on with it has the least damage, and then lacks the fewest offsets: a cleaner may
        have taken them, or a file is missing.
        """
        epoch = -1 if self.leader_epoch is None else self.leader_epoch
        lacks = self.start_offset + sum(end - start for start, end in self._all_gaps)
        return (epoch, self.written_end, -len(self.damage), -lacks)


def is_checked(bases: Sequence[int], recovery_point: int | None, *, was_shut_down: bool) -> Sequence[bool]:
    """Of segments by their base offsets, which a broker that starts would read to its first damaged batch.

    It would read all of a log whose recovery point it does not know. Here that is the last segment alone, so that
    damage further up is told, and does not cut off all that follows.
    """
    if recovery_point is None:
        return [not was_shut_down and base == bases[-1] for base in bases]
    ends = [*bases[1:], recovery_point + 1][: len(bases)]
    return [not was_shut_down and end > recovery_point for end in ends]


def scanned_log(folder: LogFolder, segments: Sequence[ScannedSegment]) -> ScannedLog:
    """Puts the scans of a log's segments, in order, together."""
    kept, cut = _until_cut(segments)
    damage = [one for segment in kept for one in _damage(segment)]
    damage = damage if cut is None else damage[:-1]
    start = max(folder.log_start or 0, kept[0].base_offset if kept else 0)
    end = kept[-1].end_offset if kept else start
    transactions = transactions_of(segment.scan.transactions for segment in kept)
    epochs = log_epochs(folder.epochs, [run for segment in kept for run in segment.scan.epochs], end)
    replicated = None if folder.replicated_to is None else (folder.replicated_to, folder.path.parent)
    return ScannedLog(folder, kept, start, end, epochs, transactions, tuple(damage), cut, replicated)


def _until_cut(segments: Sequence[ScannedSegment]) -> tuple[tuple[ScannedSegment, ...], Damage | None]:
    """The segments that are left, and where the log is cut."""
    for number, segment in enumerate(segments):
        after = len(segments) - 1 - number
        broken = segment.scan.broken
        if broken is not None and (segment.is_checked or (not after and broken.is_torn)):
            return tuple(segments[: number + 1]), _rest(segment, broken, after)
    return tuple(segments), None


def _damage(segment: ScannedSegment) -> list[Damage]:
    found = [Damage(segment.path, error.position, error.what, is_rest=False) for error in segment.scan.damaged]
    return found + ([] if segment.scan.broken is None else [_rest(segment, segment.scan.broken)])


def _rest(segment: ScannedSegment, error: BatchError, files_after: int = 0) -> Damage:
    return Damage(segment.path, error.position, error.what, not error.is_torn, files_after)
