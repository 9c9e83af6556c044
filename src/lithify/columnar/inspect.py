"""Reading a whole segment to check it: its facts, its order, and a digest of every record.

The digest covers every field of a record, so that the same offset in two files can be compared
without moving values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.access import FileAccess
from lithify.columnar.schema import OFFSET, PARTITION, SEGMENT_SCHEMA, VALUE, VALUE_SIZE
from lithify.columnar.segment_file import SegmentReader, facts
from lithify.errors import DamagedError
from lithify.model.segment import Segment
from lithify.model.verification import Finding, FindingKind

DIGESTS = pa.schema(
    [
        pa.field("offset", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value_size", pa.int32()),
        pa.field("digest", pa.int64()),
    ]
)
"""One row a record."""

_DIGEST = """
SELECT "offset", key, value_size,
       (hash("timestamp", timestamp_type, key, value, value_size, headers) >> 1)::BIGINT AS digest
FROM records
"""


def inspect_segment(access: FileAccess, segment: Segment) -> Iterator[pa.Table | Finding]:
    """The `DIGESTS` of a segment, a row group at a time, and what is wrong with the file."""
    try:
        with SegmentReader(access, segment) as reader, duckdb.connect(config={"threads": 1}) as connection:
            yield from _wrong_facts(segment, reader)
            last = -1
            for group in range(reader.row_groups):
                records = reader.read(group, SEGMENT_SCHEMA.names)
                yield from _wrong_rows(segment, records, last)
                last = records.column(OFFSET)[-1].as_py()
                connection.register("records", records)
                yield connection.execute(_DIGEST).to_arrow_table().cast(DIGESTS)
    except DamagedError as error:
        missing = isinstance(error.__cause__, FileNotFoundError)
        kind = FindingKind.FILE_MISSING if missing else FindingKind.FILE_DAMAGED
        yield Finding(segment.partition, kind, error.message, path=segment.path)


def _wrong_facts(segment: Segment, reader: SegmentReader) -> Iterator[Finding]:
    """Facts that the manifest has otherwise than the file."""
    found = facts(segment.path, segment.partition, reader.footer(), reader.size_bytes)
    for fact in fields(Segment):
        named, actual = getattr(segment, fact.name), getattr(found, fact.name)
        if named != actual:
            message = f"{segment.path}: {fact.name} is {actual!r}, the metadata says {named!r}"
            yield Finding(segment.partition, FindingKind.WRONG_METADATA, message, path=segment.path)


def _wrong_rows(segment: Segment, records: pa.Table, last: int) -> Iterator[Finding]:
    """Rows out of order, in the wrong partition, or with a size that their value does not have."""
    offsets = records.column(OFFSET).to_numpy()
    backwards = np.flatnonzero(np.diff(offsets, prepend=last) <= 0)
    if len(backwards):
        offset = int(offsets[backwards[0]])
        message = f"{segment.path}: offset {offset} comes after a higher or equal one"
        yield Finding(segment.partition, FindingKind.OUT_OF_ORDER, message, offset, segment.path)
    elsewhere = np.flatnonzero(records.column(PARTITION).to_numpy() != segment.partition)
    sizes = pc.binary_length(records.column(VALUE)).cast(pa.int32())
    wrong_size = np.flatnonzero(pc.fill_null(pc.not_equal(sizes, records.column(VALUE_SIZE)), False).to_numpy())
    nulls_differ = records.column(VALUE).null_count != records.column(VALUE_SIZE).null_count
    for rows, what in ((elsewhere, "is of another partition"), (wrong_size, "has a wrong value_size")):
        if len(rows):
            offset = int(offsets[rows[0]])
            message = f"{segment.path}: the record at offset {offset} {what}"
            yield Finding(segment.partition, FindingKind.FILE_DAMAGED, message, offset, segment.path)
    if nulls_differ:
        message = f"{segment.path}: null values and null value_sizes differ in number"
        yield Finding(segment.partition, FindingKind.FILE_DAMAGED, message, path=segment.path)
