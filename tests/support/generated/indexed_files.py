"""Segments with an index of their keys, however small they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keyindex import building
from lithify.columnar.segment import writer
from lithify.columnar.segment.convert import envelope_columns, to_table
from lithify.columnar.segment.schema import LEDGER_ID, SEGMENT_SCHEMA, VALUE, VALUE_SIZE
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.model.record import Record
from lithify.model.segment import Segment


@contextmanager
def every_file_indexed(page_bytes: int = 64) -> Iterator[None]:
    """Also files of few keys get an index, and pages end at every 1,024 records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "LEAST_KEYS", 1)
        patch.setattr(writer, "PAGE_BYTES", page_bytes)
        yield


def indexed_segment(
    folder: Path,
    groups: Sequence[Sequence[Record]],
    *,
    codec: str = "zstd",
    schema: pa.Schema = SEGMENT_SCHEMA,
    indexes_keys: bool = True,
) -> Segment:
    """One segment with these row groups."""
    folder.mkdir(exist_ok=True)
    spec = SegmentSpec(str(folder), "run", 0, 2**40, codec, schema, indexes_keys)
    with every_file_indexed(), SegmentWriter(FileAccess(), spec, attempt="0") as writing:
        for records in groups:
            writing.write(segment_table(records, schema))
            writing.flush()
        (segment,) = writing.close()
    return segment


def segment_table(records: Sequence[Record], schema: pa.Schema) -> pa.Table:
    """The records with the columns of a segment."""
    table = to_table(records)
    if LEDGER_ID in schema.names:
        for name, column in envelope_columns(records).items():
            table = table.append_column(name, column)
    table = table.append_column(VALUE_SIZE, pc.binary_length(table.column(VALUE)).cast(pa.int32()))
    return table.select(schema.names).cast(schema)
