"""Neighbouring segments, copied into one without the records that go, beside them and under names that do not count.

    00..0.log   00..500.log ─► 00..0.log.cleaned   00..0.index.cleaned   .timeindex.cleaned   .txnindex.cleaned

They are on the disk when this ends (`swapping` puts them in the place of the segments).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from lithify.columnar.files.replaced import sync_folder
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.errors import InsufficientSpaceError, InvalidInputError, RefusedError
from lithify.kafka_log.batches.decoding import KafkaRecord, header_of
from lithify.kafka_log.batches.frames import WholePart, frames_in
from lithify.kafka_log.cleaning.batch_cleaner import BatchCleaner, CleanRules
from lithify.kafka_log.cleaning.clean_settings import LARGEST_FILE_BYTES
from lithify.kafka_log.cleaning.segment_index import SegmentIndex, aborted_index
from lithify.kafka_log.cleaning.swapping import CLEANED, INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX, named
from lithify.kafka_log.directories.files import opened

_FULL: Final = {
    errno.ENOSPC: "no space is left",
    errno.EDQUOT: "the quota is used up",
    errno.EFBIG: "a file would be larger than this process may write",
}


@dataclass(frozen=True, slots=True)
class GroupSource:
    """A segment, the part of it that was scanned, and its records that lose."""

    path: Path
    base_offset: int
    whole: WholePart
    dead: DeadPositions

    def stays(self, record: KafkaRecord) -> bool:
        return not self.dead.has(record.offset - self.base_offset)


@dataclass(frozen=True, slots=True)
class SegmentGroup:
    """What becomes one segment; without `writes` it is only counted what that would have."""

    sources: tuple[GroupSource, ...]
    rules: CleanRules
    open_before: Mapping[int, int]
    index_interval_bytes: int
    modified_ns: int
    writes: bool

    @property
    def base_offset(self) -> int:
        return self.sources[0].base_offset


@dataclass(slots=True)
class CleanedGroup:
    """Records count markers too. `suffixes` are the files that were written."""

    base_offset: int
    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    suffixes: tuple[str, ...] = ()


def cleaned_group(group: SegmentGroup) -> CleanedGroup:
    """Raises `BatchError`, `RefusedError` or `OSError`; then files named `.cleaned` may be left."""
    result = CleanedGroup(group.base_offset)
    cleaner = BatchCleaner(group.rules, group.open_before)
    index = SegmentIndex(group.base_offset, group.index_interval_bytes)
    folder = group.sources[0].path.parent
    with ExitStack() as stack:
        log = stack.enter_context(_new(folder / named(group.base_offset, LOG, CLEANED))) if group.writes else None
        for source in group.sources:
            with opened(source.path) as file:
                _clean_into(log, source, file, cleaner, index, result)
        if log is not None:
            _sync(log)
    index.end()
    if group.writes:
        files = {INDEX: bytes(index.places), TIME_INDEX: bytes(index.times)}
        if cleaner.aborted:
            files[TRANSACTION_INDEX] = aborted_index(cleaner.aborted)
        for suffix, data in files.items():
            with _new(folder / named(group.base_offset, suffix, CLEANED)) as file:
                file.write(data)
                _sync(file)
        result.suffixes = (LOG, *files)
        for suffix in result.suffixes:
            os.utime(folder / named(group.base_offset, suffix, CLEANED), ns=(group.modified_ns, group.modified_ns))
        sync_folder(folder)
    return result


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raises an `OSError` of files that are written in it as `InsufficientSpaceError` or `InvalidInputError`."""
    try:
        yield
    except OSError as error:
        if what := _FULL.get(error.errno or 0):
            raise InsufficientSpaceError(
                f"{folder}: {what}",
                hint="free space for one segment on that disk; logs are complete, and the next run goes on",
            ) from error
        raise InvalidInputError(
            f"{error.filename or folder}: {error.strerror or error}",
            hint="this user has to be able to read and write there; logs are complete, and the next run goes on",
        ) from error


def _clean_into(
    log: BinaryIO | None,
    source: GroupSource,
    file: BinaryIO,
    cleaner: BatchCleaner,
    index: SegmentIndex,
    result: CleanedGroup,
) -> None:
    for frame in frames_in(file, source.whole):
        header = header_of(frame)
        result.records_in += header.records
        result.bytes_in += len(frame.data)
        batch = cleaner.cleaned(frame, header, source.stays)
        if batch is None:
            continue
        index.add(batch.header, len(batch.data))
        result.records_out += batch.header.records
        result.bytes_out += len(batch.data)
        if result.bytes_out > LARGEST_FILE_BYTES:
            raise RefusedError(
                f"{source.path}: the cleaned segment would have more than {LARGEST_FILE_BYTES} bytes, and a broker "
                "opens no such file",
                hint="give a smaller segment.bytes, so that fewer segments become one",
            )
        if log is not None:
            log.write(batch.data)


def _new(path: Path) -> BinaryIO:
    """A file that nothing else has open, whatever a task before has left."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
