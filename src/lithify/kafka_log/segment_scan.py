"""One segment read from its first byte to its last, without its records: what it has, and what is wrong with it.

    batch   batch   batch (checksum wrong)   batch   ███ torn: all before it is whole
                    ╰─ damaged: named, and the next one is where its length says

Every checksum is compared. The offset of a batch is not under it, so it is compared with what the names of files allow.
Records are read of control batches alone, unless it is asked whether all of them can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import BinaryIO, NamedTuple

import numpy as np

from lithify.kafka_log.batches.blocks import plain_batches, with_piece
from lithify.kafka_log.batches.decoding import header_of, records_of, transaction_end_of
from lithify.kafka_log.batches.frames import BatchError, Frame, Piece, WholePart, pieces_of
from lithify.kafka_log.batches.header import MAGIC, NONE, BatchHeader
from lithify.kafka_log.log_epochs import EpochRun
from lithify.kafka_log.transactions import SegmentTransactions

DAMAGED_NAMED_AT_MOST = 100
ANY_OFFSETS = range(2**63 - 1)
MOST_FACTS = 500_000
"""The driver holds no more of the segments of one scan; each takes some 250 bytes."""


class TooManyFacts(Exception):  # noqa: N818 - no error of a batch
    """More than `MOST_FACTS`; callers know the files, and say so."""


@dataclass(slots=True)
class SegmentScan:
    """What a segment has. Offsets are None while it has no batch."""

    first_offset: int | None = None
    end_offset: int | None = None
    """After its last batch, whose last records may be gone."""
    whole: WholePart = WholePart()
    batches: int = 0
    epochs: list[EpochRun] = field(default_factory=list)
    """The leader epochs of its batches, in the order of these."""
    transactions: SegmentTransactions = field(default_factory=SegmentTransactions)
    damaged: list[BatchError] = field(default_factory=list)
    """Frames that can be passed over, the first ones."""
    damaged_frames: int = 0
    broken: BatchError | None = None
    """Why nothing after the whole part can be read; it is torn if the file ends within a batch."""

    @property
    def facts(self) -> int:
        """Of what grows with the batches: changes of the epoch, producers with transactions, aborted transactions."""
        own = self.transactions
        return max(len(self.epochs) - 1, 0) + len(own.first_ends) + len(own.open) + len(own.aborted)

    def pass_over(self, error: BatchError) -> None:
        self.damaged_frames += 1
        if len(self.damaged) < DAMAGED_NAMED_AT_MOST:
            self.damaged.append(error)


def scanned(
    file: BinaryIO,
    *,
    cuts: bool = False,
    offsets: range = ANY_OFFSETS,
    reads_records: bool = False,
    end: int | None = None,
    told: Callable[[BatchHeader | None], None] | None = None,
) -> SegmentScan:
    """Reads a segment, which has no other `offsets`; with `end` only batches that begin before that offset.

    With `cuts` only up to its first damaged batch, as a broker does that cuts there. With `reads_records` batches
    are damaged as well whose records cannot be read, though their checksums are right. `told` gets the header of each
    batch that is not damaged, and None for messages of the versions before. Raises `OSError` or `TooManyFacts`.
    """
    scan = SegmentScan()
    are_alike = end is None and told is None and not reads_records
    try:
        for piece in pieces_of(file):
            if are_alike and _take_all(scan, piece, offsets):
                continue
            for frame in piece.frames():
                if end is not None and frame.offset >= end:
                    return scan
                try:
                    batch = _checked(frame)
                except BatchError as error:
                    if cuts:
                        raise
                    scan.pass_over(error)
                else:
                    if _take(scan, batch, offsets, reads_records) and told is not None:
                        told(batch.header)
                scan.whole = scan.whole.with_next(frame)
                scan.batches += 1
    except BatchError as error:
        scan.broken = error
    return scan


def _take_all(scan: SegmentScan, piece: Piece, offsets: range) -> bool:
    """Adds batches of which nothing is to be told but offsets and epochs; false if there is something else."""
    batches = plain_batches(piece)
    if batches is None:
        return False
    first, last, epochs = batches.first, batches.last, batches.heads["epoch"]
    begin, end = int(first[0]), int(last[-1]) + 1
    if begin < max(offsets.start, scan.end_offset or 0) or end > offsets.stop or (epochs <= NONE).any():
        return False
    if not batches.are_whole:
        return False
    for start, to in pairwise([0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist(), len(epochs)]):
        for at in (start, to - 1):
            _add_epoch(scan, int(epochs[start]), int(first[at]))
    scan.first_offset = begin if scan.first_offset is None else scan.first_offset
    scan.end_offset = end
    scan.whole = with_piece(scan.whole, piece)
    scan.batches += len(epochs)
    return True


class _Batch(NamedTuple):
    """One whose checksum is right. Its `header` is None before version 2."""

    frame: Frame
    header: BatchHeader | None
    offsets: range


def _checked(frame: Frame) -> _Batch:
    """Raises `BatchError` for what makes a broker cut a log that it checks."""
    if frame.magic < MAGIC:
        records = records_of(frame)
        return _Batch(frame, None, range(records[0].offset, records[-1].offset + 1))
    header = header_of(frame)
    return _Batch(frame, header, range(header.base_offset, header.last_offset + 1))


def _take(scan: SegmentScan, batch: _Batch, offsets: range, reads_records: bool) -> bool:
    """Whether it adds a batch, and does not pass it over for what a broker ignores."""
    try:
        _check_place(scan, batch, offsets)
        if batch.header is not None:
            if reads_records:
                records_of(batch.frame, batch.header)
            _add_facts(scan, batch.frame, batch.header)
    except BatchError as error:
        scan.pass_over(error)
        return False
    scan.first_offset = batch.offsets.start if scan.first_offset is None else scan.first_offset
    scan.end_offset = batch.offsets.stop
    return True


def _check_place(scan: SegmentScan, batch: _Batch, offsets: range) -> None:
    own = batch.offsets
    if own.start < offsets.start or own.stop > offsets.stop:
        raise batch.frame.error(
            f"it has the offsets {own.start} to {own.stop - 1}, but its file {offsets.start} to {offsets.stop - 1}"
        )
    if scan.end_offset is not None and own.start < scan.end_offset:
        why = f"it begins at offset {own.start}, before {scan.end_offset}, where the batch before it ends"
        raise batch.frame.error(why)


def _add_facts(scan: SegmentScan, frame: Frame, header: BatchHeader) -> None:
    if header.is_control:
        if (ending := transaction_end_of(frame, header)) is not None:
            scan.transactions.end(ending)
        _check_facts(scan)
    elif header.is_transactional:
        scan.transactions.data(header.producer_id, header.base_offset)
        _check_facts(scan)
    if header.leader_epoch > NONE:
        _add_epoch(scan, header.leader_epoch, header.base_offset)


def _add_epoch(scan: SegmentScan, epoch: int, offset: int) -> None:
    if scan.epochs and scan.epochs[-1].epoch == epoch:
        scan.epochs[-1] = scan.epochs[-1]._replace(last=offset)
    else:
        scan.epochs.append(EpochRun(epoch, offset, offset))
        _check_facts(scan)


def _check_facts(scan: SegmentScan) -> None:
    if scan.facts > MOST_FACTS:
        raise TooManyFacts
