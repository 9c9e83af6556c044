"""Masks as entries of Iceberg's manifests of deletes, and back to the segments that they belong to.

    manifests of data       segment a    segment b    segment c
    manifests of deletes        ▲ mask                    ▲ mask       by the bounds of `file_path`: both are its path

A mask applies to a segment that was added by the same commit or an earlier one. So a segment that is added again has
its mask added again. What only reads masks need not import PyIceberg.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lithify.errors import DamagedError
from lithify.model.segment import Mask, Segment
from lithify.store.iceberg.io.checksums import RESTORE

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile

FILE_PATH, _POS = 2147483546, 2147483545
"""The ids that Iceberg reserves for the two columns of such a file."""


@dataclass(frozen=True, slots=True)
class MaskEntry:
    """What a manifest says of a mask: it, and the path of its segment."""

    segment: str
    mask: Mask


def mask_file(segment: Segment, mask: Mask) -> DataFile:
    """The manifest entry of the mask of a segment. Bounds of positions are those that all of its records have."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    path = segment.path.encode()
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=mask.path,
        file_format=FileFormat.PARQUET,
        partition=Record(segment.partition),
        record_count=mask.dead,
        file_size_in_bytes=mask.size_bytes,
        column_sizes={},
        value_counts={FILE_PATH: mask.dead, _POS: mask.dead},
        null_value_counts={FILE_PATH: 0, _POS: 0},
        nan_value_counts={},
        lower_bounds={FILE_PATH: path, _POS: _position(0)},
        upper_bounds={FILE_PATH: path, _POS: _position(segment.records_in_file - 1)},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    file.spec_id = 0
    return file


def mask_of(file: DataFile) -> MaskEntry:
    """The inverse of `mask_file`. Raises `DamagedError` for another program's file of deleted rows."""
    from pyiceberg.manifest import DataFileContent

    lower, upper = (bounds or {} for bounds in (file.lower_bounds, file.upper_bounds))
    path = lower.get(FILE_PATH)
    if file.content != DataFileContent.POSITION_DELETES or path is None or path != upper.get(FILE_PATH):
        raise other_deletes(file.file_path)
    return MaskEntry(path.decode(), Mask(file.file_path, file.file_size_in_bytes, file.record_count))


def other_deletes(path: str) -> DamagedError:
    return DamagedError(f"{path}: it deletes rows in another way than Lithify", hint=RESTORE)


def masked(segments: Iterable[Segment], masks: Iterable[MaskEntry]) -> list[Segment]:
    """Segments with their masks. Raises `DamagedError` for two masks of one segment, or one of none of them."""
    by_segment: dict[str, Mask] = {}
    for entry in masks:
        if entry.segment in by_segment:
            raise DamagedError(f"{entry.mask.path}: it is a second mask of {entry.segment}", hint=RESTORE)
        by_segment[entry.segment] = entry.mask
    joined = [_with(segment, by_segment.pop(segment.path, None)) for segment in segments]
    for path, mask in by_segment.items():
        raise DamagedError(f"{mask.path}: it masks {path}, which the version does not reference", hint=RESTORE)
    return joined


def _with(segment: Segment, mask: Mask | None) -> Segment:
    return segment if mask is None else replace(segment, records=segment.records - mask.dead, mask=mask)


def _position(number: int) -> bytes:
    """A bound as Iceberg's specification writes a long."""
    return number.to_bytes(8, "little", signed=True)
