"""Segments as entries of Iceberg manifests, and back.

The facts of a segment are the column metrics of its data file, so any engine plans with them and
Lithify plans without opening a file:

    offset       bounds: base offset, end offset - 1         key    bounds (16 bytes), nulls,
    timestamp    bounds                                             column size
    value_size   lower bound, nulls                          value  nulls

and, of a topic with Pulsar's message ids, bounds of `ledger_id` and `entry_id`, and the nulls of `passed_through`. Its
values are true or null; a lower bound of false, which is right of any, says that these entries are chunks alone (C53).
The column size of `key` is the size of all columns of the key pass together (`scan_bytes`). If its number of NaN values
is 0, which is right for any bytes, the file has an index of keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestFile
from pyiceberg.typedef import Record

from lithify.columnar.files.access import check_small
from lithify.columnar.files.sealed import checksum_of
from lithify.columnar.segment.column_names import (
    ENTRY_ID,
    ENVELOPE_FIELD_IDS,
    FIELD_IDS,
    KEY,
    LEDGER_ID,
    OFFSET,
    PARTITION,
    PASSED_THROUGH,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    VALUE_SIZE,
)
from lithify.model.message import EnvelopeFacts
from lithify.model.segment import Segment
from lithify.store.iceberg.io.checksums import MANIFESTS, ManifestList, Stated
from lithify.store.iceberg.layout import SORT_ORDER_ID
from lithify.store.iceberg.manifests.avro import decoded_entries, decoded_list
from lithify.store.iceberg.manifests.written import check_written, damage_named, not_written

_INT_BYTES, _LONG_BYTES = 4, 8
_FALSE = b"\x00"
_PARTITION, _OFFSET, _TIMESTAMP = FIELD_IDS[PARTITION], FIELD_IDS[OFFSET], FIELD_IDS[TIMESTAMP]
_KEY, _VALUE, _VALUE_SIZE = FIELD_IDS[KEY], FIELD_IDS[VALUE], FIELD_IDS[VALUE_SIZE]
_LEDGER, _ENTRY, _PASSED = (ENVELOPE_FIELD_IDS[name] for name in (LEDGER_ID, ENTRY_ID, PASSED_THROUGH))
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
    null_counts = {_KEY: segment.null_keys, _VALUE: segment.null_values, _VALUE_SIZE: segment.null_values}
    counted = _COUNTED if segment.envelopes is None else (*_COUNTED, _LEDGER, _ENTRY, _PASSED)
    if (known := segment.envelopes) is not None:
        lower |= {_LEDGER: _bound(_LONG_BYTES, known.min_ledger), _ENTRY: _bound(_LONG_BYTES, known.min_entry)}
        upper |= {_LEDGER: _bound(_LONG_BYTES, known.max_ledger), _ENTRY: _bound(_LONG_BYTES, known.max_entry)}
        null_counts[_PASSED] = segment.records_in_file - known.passed_through
        if segment.only_chunks:
            lower[_PASSED] = _FALSE
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=segment.path,
        file_format=FileFormat.PARQUET,
        partition=Record(segment.partition),
        record_count=segment.records_in_file,
        file_size_in_bytes=segment.size_bytes,
        column_sizes={_KEY: segment.scan_bytes},
        value_counts=dict.fromkeys(counted, segment.records_in_file),
        null_value_counts={**dict.fromkeys(counted, 0), **null_counts},
        nan_value_counts={_KEY: 0} if segment.keys_indexed else {},
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
        min_value_size=_number(lower[_VALUE_SIZE]) if _VALUE_SIZE in lower else None,
        min_key=lower.get(_KEY),
        max_key=upper.get(_KEY),
        envelopes=_envelopes(file),
        only_chunks=lower.get(_PASSED) == _FALSE,
        keys_indexed=_KEY in (file.nan_value_counts or {}),
    )


def _envelopes(file: DataFile) -> EnvelopeFacts | None:
    lower, upper = file.lower_bounds, file.upper_bounds
    if _LEDGER not in lower:
        return None
    return EnvelopeFacts(
        min_ledger=_number(lower[_LEDGER]),
        max_ledger=_number(upper[_LEDGER]),
        min_entry=_number(lower[_ENTRY]),
        max_entry=_number(upper[_ENTRY]),
        passed_through=file.record_count - file.null_value_counts[_PASSED],
    )


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as a list names it; `checksum` is None in a list of before format 3."""

    file: ManifestFile
    checksum: str | None

    @property
    def path(self) -> str:
        return self.file.manifest_path


def read_manifests(io: FileIO, manifest_list: ManifestList) -> list[Manifest]:
    """The manifests of a snapshot. Raises `DamagedError`, which names the file."""
    content = _content(io, manifest_list.path, manifest_list.stated)
    with damage_named(manifest_list.path):
        header, files = decoded_list(content, known=manifest_list.stated is not None)
        if MANIFESTS not in header:
            return [Manifest(file, None) for file in files]
        return [Manifest(*pair) for pair in zip(files, header[MANIFESTS].split(), strict=True)]


def read_entries(io: FileIO, manifest: Manifest) -> list[ManifestEntry]:
    """The live entries of a manifest. Raises `DamagedError`, which names the file."""
    return _entries(manifest, _read(io, manifest))


def checksum_on_trust(io: FileIO, manifest: Manifest) -> str:
    """The checksum of a manifest of a format before 3, which is read to check it. Raises `DamagedError`."""
    content = _read(io, manifest)
    _entries(manifest, content)
    return checksum_of(content)


def _read(io: FileIO, manifest: Manifest) -> bytes:
    return _content(io, manifest.path, Stated(manifest.file.manifest_length, manifest.checksum))


def _entries(manifest: Manifest, content: bytes) -> list[ManifestEntry]:
    with damage_named(manifest.path):
        return decoded_entries(content, manifest.file, known=manifest.checksum is not None)


def _content(io: FileIO, path: str, stated: Stated | None) -> bytes:
    """A whole file, checked; reads no more than the stated size."""
    with damage_named(path):
        file = io.new_input(path)
        with file.open() as stream:
            size = stream.seek(0, 2)
            if stated is None:
                check_small(path, size)
            elif size != stated.size_bytes:
                raise not_written(path, f"it has {size} bytes, but {stated.size_bytes} were written")
            stream.seek(0)
            content = stream.read()
    if stated is not None:
        check_written(path, content, stated)
    return content


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
