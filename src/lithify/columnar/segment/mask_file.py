"""Masks: the positions of the dead records of one segment in a file of their own, which Iceberg calls position deletes.

    file_path   pos              position: the row number in the file of the segment
    <segment>     3
    <segment>    17              ascending, each once; every row names the segment

Every reader of Iceberg leaves the records out. A later mask of the segment has all positions of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from lithify.columnar.files.access import SMALL_BYTES, FileAccess
from lithify.columnar.files.durable import make_lasting
from lithify.columnar.parquet.footer import UnsoundFileError
from lithify.columnar.segment.checked_file import OWN_PATH, RESTORE, CheckedFile, damage_named, own_path
from lithify.columnar.segment.dead_records import DeadPositions, bitmap_of
from lithify.columnar.segment.writer import SegmentSpec
from lithify.errors import DamagedError, LithifyError
from lithify.model.segment import Mask, Segment

FILE_PATH = "file_path"
POSITION = "pos"
MASK_SCHEMA = pa.schema(
    [
        pa.field(FILE_PATH, pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
        pa.field(POSITION, pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
    ]
)
"""Iceberg reserves these ids."""

PIECE_RECORDS = 128 * 1024
"""The records of a segment that are checked together."""
GROUP_ROWS = 48 * 1024
MOST_GROUP_BYTES = 256 * 2**20
"""Largest decoded size of a row group, with room for the longest path of a file system, 4,096 bytes, in each row."""

_AS_READ = pa.schema([MASK_SCHEMA.field(0).with_type(pa.dictionary(pa.int32(), pa.string())), MASK_SCHEMA.field(1)])


def read_mask(access: FileAccess, segment: Segment) -> BitMap:
    """The positions of the records of a segment that its mask hides: none, if it has none.

    Raises `DamagedError`, which names the mask.
    """
    mask = segment.mask
    if mask is None:
        return BitMap()
    file = CheckedFile(
        access,
        mask.path,
        mask.size_bytes,
        whole_bytes=SMALL_BYTES,
        most_group_bytes=MOST_GROUP_BYTES,
        as_indexes=[FILE_PATH],
    )
    try:
        file.check(size_bytes=mask.size_bytes, records=mask.dead)
        if not file.schema.equals(_AS_READ):
            raise DamagedError(f"{mask.path}: its columns are not the columns of a mask", hint=RESTORE)
        masked, last = BitMap(), -1
        for group in range(file.row_groups):
            rows = file.read(group, MASK_SCHEMA.names)
            with damage_named(mask.path):
                _check_path(rows.column(FILE_PATH), segment.path)
                positions = rows.column(POSITION).to_numpy()
                ascending = positions[0] > last and (positions[1:] > positions[:-1]).all()  # differences may overflow
                if not ascending or positions[-1] >= segment.records_in_file:
                    raise UnsoundFileError(
                        "its positions are not positions of records, ascending and without duplicates"
                    )
                masked |= bitmap_of(positions)
            last = int(positions[-1])
        return masked
    finally:
        file.close()


def masked_by(access: FileAccess, path: str, segments: Mapping[str, Segment]) -> Segment | None:
    """With a mask that no manifest names, the one of `segments` that it belongs to, by their paths; or None.

    Raises `DamagedError`, or what reading a footer raises.
    """
    with access.open(path) as source:
        size = source.seek(0, 2)
        source.seek(0)
        metadata = pq.ParquetFile(source).metadata
    segment = segments.get(metadata.row_group(0).column(0).statistics.max)
    if segment is None:
        return None
    found = replace(segment, records=segment.records - metadata.num_rows, mask=Mask(path, size, metadata.num_rows))
    read_mask(access, found)
    return found


def _check_path(column: pa.ChunkedArray, path: str) -> None:
    for chunk in column.chunks:
        if chunk.dictionary.to_pylist() != [path] or chunk.indices.to_numpy().any():
            raise UnsoundFileError("it is the mask of another file")


def masked_with(masked: BitMap, dead: DeadPositions, records_in_file: int) -> BitMap:
    """The masked positions of a segment, and the positions in `dead`, which count only the records that are left."""
    together, before = BitMap(masked), DeadPositions(masked)
    left_before = 0
    for start in range(0, records_in_file, PIECE_RECORDS):
        left = np.flatnonzero(~before.flags(start, min(start + PIECE_RECORDS, records_in_file)))
        together |= bitmap_of(left[dead.flags(left_before, left_before + len(left))] + start)
        left_before += len(left)
    return together


def write_mask(
    access: FileAccess,
    spec: SegmentSpec,
    segment: Segment,
    masked: BitMap,
    *,
    attempt: str,
    acquire: Callable[[int], None],
) -> Mask:
    """Writes the mask of a segment, durably, with these positions in its file, of which there is one at least.

    `attempt` and `acquire` are as in `SegmentWriter`. Raises `OSError` or `WarehouseError`.
    """
    name = f"{segment.base_offset:020d}-{spec.run_id}-{attempt}-0.deletes.parquet"
    path = f"{spec.location}/data/partition={segment.partition}/{name}"
    return _write(access, path, own_path(path, spec.location), segment, masked, acquire)


def copy_mask(access: FileAccess, path: str, location: str, segment: Segment, masked: BitMap) -> Mask:
    """Writes the same mask at `path`, in the folder `location` of a topic, for its own copy of the segment (C65).

    After an error the file is removed, so that retries leave no heap. Raises `OSError` or `WarehouseError`.
    """
    try:
        return _write(access, path, own_path(path, location), segment, masked, lambda _size: None)
    except BaseException:
        with suppress(OSError, LithifyError):
            access.delete(path)
        raise


def _write(
    access: FileAccess, path: str, own: str, segment: Segment, masked: BitMap, acquire: Callable[[int], None]
) -> Mask:
    told = 0
    with _created(access, path) as sink:
        writer = pq.ParquetWriter(
            sink,
            MASK_SCHEMA,
            compression="zstd",
            use_dictionary=[FILE_PATH],
            column_encoding={POSITION: "DELTA_BINARY_PACKED"},
            store_schema=False,
            write_page_checksum=True,
        )
        with _given_up_on_error(writer):
            writer.add_key_value_metadata({OWN_PATH: own})
            for first in range(0, len(masked), GROUP_ROWS):
                positions = np.array(masked[first : first + GROUP_ROWS].to_array(), np.int64)
                paths = pa.repeat(pa.scalar(segment.path), len(positions))
                writer.write_table(pa.table([paths, positions], schema=MASK_SCHEMA), row_group_size=len(positions))
                acquire(sink.tell() - told)
                told = sink.tell()
            writer.close()
        size = sink.tell()
        acquire(size - told)
    make_lasting(path)
    return Mask(path, size, len(masked))


@contextmanager
def _created(access: FileAccess, path: str) -> Iterator[Any]:
    """A new file, open for writing; an error leaves it unreferenced for `sweep`."""
    sink = access.create(path)
    try:
        yield sink
    except BaseException:
        with suppress(OSError, LithifyError):
            sink.close()
        raise
    sink.close()


@contextmanager
def _given_up_on_error(writer: pq.ParquetWriter) -> Iterator[None]:
    try:
        yield
    except BaseException:
        writer.is_open = False  # else its finaliser tries to write the rest, and prints the failure
        raise
