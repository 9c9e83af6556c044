"""One segment read from its first byte to its last, without its records: what it has, and what is wrong with it.

    batch   batch   batch (checksum wrong)   batch   ███ torn: all before it is whole
                    ╰─ damaged: named, and the next one is where its length says

Every checksum is compared. Only control batches are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO

from lithify.kafka_log.batches.decoding import header_of, records_of, transaction_end_of
from lithify.kafka_log.batches.frames import BatchError, Frame, frames_of
from lithify.kafka_log.batches.header import MAGIC
from lithify.kafka_log.transactions import SegmentTransactions

DAMAGED_NAMED_AT_MOST = 100


@dataclass(slots=True)
class SegmentScan:
    """What a segment has. Offsets are None while it has no batch."""

    first_offset: int | None = None
    end_offset: int | None = None
    """After its last batch, whose last records may be gone."""
    whole_bytes: int = 0
    """Up to here frames follow one another."""
    batches: int = 0
    newest_epoch: int = -1
    transactions: SegmentTransactions = field(default_factory=SegmentTransactions)
    damaged: list[BatchError] = field(default_factory=list)
    """Frames that can be passed over, the first ones."""
    damaged_frames: int = 0
    broken: BatchError | None = None
    """Why nothing after `whole_bytes` can be read; it is torn if the file ends within a batch."""


def scanned(file: BinaryIO, *, cuts: bool = False) -> SegmentScan:
    """Reads a segment; with `cuts` only up to its first damaged batch, as a broker does that cuts there.

    Raises `OSError`.
    """
    scan = SegmentScan()
    try:
        for frame in frames_of(file):
            try:
                _add(scan, frame)
            except BatchError as error:
                if cuts:
                    raise
                scan.damaged_frames += 1
                if len(scan.damaged) < DAMAGED_NAMED_AT_MOST:
                    scan.damaged.append(error)
            scan.whole_bytes = frame.end
            scan.batches += 1
    except BatchError as error:
        scan.broken = error
    return scan


def _add(scan: SegmentScan, frame: Frame) -> None:
    first, end = _offsets(scan, frame)
    if scan.end_offset is not None and first < scan.end_offset:
        raise frame.error(f"it begins at offset {first}, before {scan.end_offset}, where the batch before it ends")
    if scan.first_offset is None:
        scan.first_offset = first
    scan.end_offset = end


def _offsets(scan: SegmentScan, frame: Frame) -> tuple[int, int]:
    if frame.magic < MAGIC:
        records = records_of(frame)
        return records[0].offset, records[-1].offset + 1
    header = header_of(frame)
    scan.newest_epoch = max(scan.newest_epoch, header.leader_epoch)
    if header.is_control:
        if (ending := transaction_end_of(frame, header)) is not None:
            scan.transactions.end(ending)
    elif header.is_transactional:
        scan.transactions.data(header.producer_id, header.base_offset)
    return header.base_offset, header.last_offset + 1
