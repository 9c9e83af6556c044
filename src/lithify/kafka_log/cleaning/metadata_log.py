"""Reads the metadata log of a cluster, of which each KRaft node has a copy in the first of its directories.

    __cluster_metadata-0/   …0100-0000000003.checkpoint    all that counts below offset 100, the latest snapshot
                            …0000.log   …0090.log          from 100 on, record by record

A log with a gap, or with damage, is refused: a setting may have been changed where nothing can be read.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lithify.errors import DamagedError
from lithify.kafka_log.batches.decoding import header_of, records_of
from lithify.kafka_log.batches.frames import BatchError, Frame, frames_of
from lithify.kafka_log.batches.header import MAGIC, BatchHeader
from lithify.kafka_log.cleaning.cluster_configs import ClusterConfigs
from lithify.kafka_log.directories.files import opened
from lithify.kafka_log.directories.segment_names import segment_names
from lithify.kafka_protocol.metadata import metadata_record
from lithify.kafka_protocol.reading import MalformedError

METADATA_FOLDER: Final = "__cluster_metadata-0"
_SNAPSHOT: Final = re.compile(r"([0-9]{20})-[0-9]{10}\.checkpoint")
_KIND: Final = struct.Struct(">hh")
_SNAPSHOT_END: Final = 4
"""The kind of the control record that a whole snapshot ends with."""


def cluster_configs(folder: Path, *, may_be_torn: bool) -> ClusterConfigs:
    """What the log in a folder says at its end; after a crash that may be torn, and a node cuts it there.

    Raises `DamagedError` or `OSError`.
    """
    names = sorted(path.name for path in folder.iterdir())
    snapshot = max((name for name in names if _SNAPSHOT.fullmatch(name)), default=None)
    start = 0 if snapshot is None else int(snapshot[:20])
    configs = ClusterConfigs()
    if snapshot is not None:
        _apply_snapshot(configs, folder / snapshot)
    segments = segment_names(names).segments
    if not segments or min(segments) > start:
        raise _damaged(folder, f"no segment begins at or before offset {start}, up to which there is a snapshot")
    left = [base for base in segments if base >= max(base for base in segments if base <= start)]
    end = left[0]
    for base in left:
        if base != end:
            raise _damaged(folder / segments[base], f"the segment before it ends at offset {end}")
        may_end = may_be_torn and base == left[-1]
        end = _apply_segment(configs, folder / segments[base], base, start, may_be_torn=may_end)
    configs.end()
    return configs


def _apply_snapshot(configs: ClusterConfigs, path: Path) -> None:
    kinds = list[int]()
    with _reading(path), opened(path) as file:
        for frame in frames_of(file):
            header = _header(frame)
            kinds = _control_kinds(frame, header)
            if not header.is_control:
                _apply(configs, frame, header)
    if _SNAPSHOT_END not in kinds:
        raise _damaged(path, "it is a snapshot without its end")


def _apply_segment(configs: ClusterConfigs, path: Path, base: int, start: int, *, may_be_torn: bool) -> int:
    """Applies what it has from `start` on; returns where it ends. Raises `DamagedError` if something is left out.

    No checksum covers the offset of a batch, but here each begins where the one before it ends.
    """
    end = base
    with _reading(path), opened(path) as file:
        try:
            for frame in frames_of(file):
                header = _header(frame)
                if header.base_offset != end:
                    raise frame.error(f"it begins at offset {header.base_offset}, not at {end}")
                end = header.last_offset + 1
                if end > start and not header.is_control:
                    _apply(configs, frame, header)
        except BatchError as error:
            if not (may_be_torn and error.is_torn):
                raise
    return end


def _header(frame: Frame) -> BatchHeader:
    if frame.magic != MAGIC:
        raise frame.error(f"a batch of version {frame.magic}, which a metadata log never has")
    return header_of(frame)


def _apply(configs: ClusterConfigs, frame: Frame, header: BatchHeader) -> None:
    for record in records_of(frame, header):
        try:
            found = metadata_record(record.value or b"")
        except MalformedError as error:
            raise frame.error(str(error)) from error
        if found is not None:
            configs.apply(found)


def _control_kinds(frame: Frame, header: BatchHeader) -> list[int]:
    records = records_of(frame, header) if header.is_control else ()
    keys = [record.key or b"" for record in records]
    return [_KIND.unpack_from(key)[1] for key in keys if len(key) >= _KIND.size]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except BatchError as error:
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, what: str) -> DamagedError:
    return DamagedError(
        f"{path}: {what}",
        hint="this log says which topics are compacted: start the broker, which fetches it again, and stop it in order",
    )
