"""Segments as entries of Iceberg manifests, and back.

The facts of a segment are the column metrics of its data file, so any engine plans with them and
Lithify plans without opening a file:

    offset       bounds: base offset, end offset - 1         key    bounds (16 bytes), nulls,
    timestamp    bounds                                             column size
    value_size   lower bound, nulls                          value  nulls

The column size of `key` is that of all columns of the key pass together (`scan_bytes`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestFile, read_manifest_list
from pyiceberg.typedef import Record

from lithify.columnar.schema import FIELD_IDS, KEY, OFFSET, PARTITION, TIMESTAMP, TIMESTAMP_TYPE, VALUE, VALUE_SIZE
from lithify.errors import DamagedError, LithifyError
from lithify.model.segment import Segment
from lithify.store.iceberg.layout import SORT_ORDER_ID

_INT_BYTES, _LONG_BYTES = 4, 8
_PARTITION, _OFFSET, _TIMESTAMP = FIELD_IDS[PARTITION], FIELD_IDS[OFFSET], FIELD_IDS[TIMESTAMP]
_KEY, _VALUE, _VALUE_SIZE = FIELD_IDS[KEY], FIELD_IDS[VALUE], FIELD_IDS[VALUE_SIZE]
_COUNTED = (_PARTITION, _OFFSET, _TIMESTAMP, FIELD_IDS[TIMESTAMP_TYPE], _KEY, _VALUE, _VALUE_SIZE)


def data_file(segment: Segment) -> DataFile:
    """The manifest entry of a segment."""
    lower = {
        _PARTITION: _bound(_INT_BYTES, segment.partition),
        _OFFSET: _bound(_LONG_BYTES, segment.base_offset),
        _TIMESTAMP: _bound(_LONG_BYTES, segment.min_timestamp_ms),
    }
    upper = {
        _PARTITION: lower[_PARTITION],
        _OFFSET: _bound(_LONG_BYTES, segment.end_offset - 1),
        _TIMESTAMP: _bound(_LONG_BYTES, segment.max_timestamp_ms),
    }
    if segment.min_key is not None:
        lower[_KEY] = segment.min_key
    if segment.max_key is not None:
        upper[_KEY] = segment.max_key
    if segment.min_value_size is not None:
        lower[_VALUE_SIZE] = _bound(_INT_BYTES, segment.min_value_size)
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=segment.path,
        file_format=FileFormat.PARQUET,
        partition=Record(segment.partition),
        record_count=segment.records,
        file_size_in_bytes=segment.size_bytes,
        column_sizes={_KEY: segment.scan_bytes},
        value_counts=dict.fromkeys(_COUNTED, segment.records),
        null_value_counts={
            **dict.fromkeys(_COUNTED, 0),
            _KEY: segment.null_keys,
            _VALUE: segment.null_values,
            _VALUE_SIZE: segment.null_values,
        },
        nan_value_counts={},
        lower_bounds=lower,
        upper_bounds=upper,
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=SORT_ORDER_ID,
    )
    file.spec_id = 0
    return file


def segment_of(file: DataFile) -> Segment:
    """The inverse of `data_file`."""
    lower, upper, nulls = file.lower_bounds, file.upper_bounds, file.null_value_counts
    smallest = lower.get(_VALUE_SIZE)
    return Segment(
        path=file.file_path,
        partition=file.partition[0],
        base_offset=_number(lower[_OFFSET]),
        end_offset=_number(upper[_OFFSET]) + 1,
        records=file.record_count,
        size_bytes=file.file_size_in_bytes,
        scan_bytes=file.column_sizes[_KEY],
        min_timestamp_ms=_number(lower[_TIMESTAMP]),
        max_timestamp_ms=_number(upper[_TIMESTAMP]),
        null_keys=nulls[_KEY],
        null_values=nulls[_VALUE_SIZE],
        min_value_size=None if smallest is None else _number(smallest),
        min_key=lower.get(_KEY),
        max_key=upper.get(_KEY),
    )


def read_segments(io: FileIO, manifest_list: str, partitions: Sequence[int] | None) -> tuple[Segment, ...]:
    """The segments that a manifest list names, by partition and offset; of some partitions only, if asked.

    Raises `DamagedError`, which names the file.
    """
    wanted = None if partitions is None else frozenset(partitions)
    segments = [
        segment_of(entry.data_file)
        for manifest in read_manifests(io, manifest_list)
        if wanted is None or may_hold(manifest, wanted)
        for entry in read_entries(io, manifest)
        if wanted is None or entry.data_file.partition[0] in wanted
    ]
    return tuple(sorted(segments, key=lambda s: (s.partition, s.base_offset)))


def read_manifests(io: FileIO, manifest_list: str) -> list[ManifestFile]:
    """The manifests of a snapshot. Raises `DamagedError`."""
    try:
        return list(read_manifest_list(io.new_input(manifest_list)))
    except LithifyError:
        raise  # the store cannot be reached, which is no damage
    except Exception as error:  # a damaged file makes the Avro reader fail in any way
        raise _damaged(manifest_list, error) from error


def read_entries(io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
    """The live entries of a manifest. Raises `DamagedError`."""
    try:
        return manifest.fetch_manifest_entry(io, discard_deleted=True)
    except LithifyError:
        raise
    except Exception as error:  # as above
        raise _damaged(manifest.manifest_path, error) from error


def may_hold(manifest: ManifestFile, partitions: frozenset[int]) -> bool:
    """Whether an entry of one of these partitions can be in the manifest, by its summary."""
    if not manifest.partitions:
        return True
    low, high = manifest.partitions[0].lower_bound, manifest.partitions[0].upper_bound
    if low is None or high is None:
        return True
    least, most = _number(low), _number(high)
    return any(least <= partition <= most for partition in partitions)


def _bound(size: int, number: int) -> bytes:
    """A bound as Iceberg's specification writes int and long."""
    return number.to_bytes(size, "little", signed=True)


def _number(bound: bytes) -> int:
    return int.from_bytes(bound, "little", signed=True)


def _damaged(path: str, error: Exception) -> DamagedError:
    why = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error!r}"
    return DamagedError(f"{path}: the file {why}", hint="restore it from a backup or a replica; nothing was changed")
