"""What is read of a masked segment is the file without the masked rows, for any columns and however it is read (C1)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.columnar.files.access import local_path
from lithify.columnar.segment import checked_file, segment_reader, writer
from lithify.columnar.segment.convert import to_records
from lithify.columnar.segment.schema import ENVELOPE_SCHEMA, SEGMENT_SCHEMA
from lithify.columnar.segment.segment_reader import SegmentReader, read_segment
from lithify.model.message import Envelope, MessageId
from lithify.model.record import Header, Record
from lithify.model.segment import Segment
from support.store.masks import dead_positions, with_mask
from support.topics.stored_topics import ACCESS, write_segments

SIZES: dict[tuple[Any, str], list[Any]] = {
    (writer, "ROW_GROUP_RECORDS"): [1, 7, 50, 200],
    (writer, "LARGE_PAGE_BYTES"): [1, 100, 2**20],
    (segment_reader, "VALUES_BYTES"): [1, 50, 5000, 2**20],
    (checked_file, "WHOLE_BYTES"): [0],
    (checked_file, "local_path"): [local_path, local_path, lambda _path: None],
}
"""The last has files read as those of an object store."""

HEADERS: list[list[tuple[Header, ...]]] = [[()], [(("h", None), ("", b"x"))], [(), (("h", b""),)]]


def some_records(random: Random, *, enveloped: bool) -> list[Record]:
    """With gaps in their offsets, and columns that are null in all records, in some, or in none."""
    keys = random.choice([[None], [b"", b"k"], [None, b"", b"k", random.randbytes(100)]])
    values = random.choice([[None], [b"v"], [None, b"", b"v" * 300, random.randbytes(20_000)]])
    headers = random.choice(HEADERS)
    return [
        Record(
            random.choice(keys),
            random.choice(values),
            random.randrange(3000),
            random.choice(headers),
            0,
            2 * n + random.randrange(2),
            envelope=Envelope(MessageId(7, n, 0), event_time=random.choice([None, 5])) if enveloped else None,
        )
        for n in range(random.choice([1, 2, 9, 40, 150 if writer.ROW_GROUP_RECORDS > 1 else 40]))
    ]


def some_positions(random: Random, count: int) -> set[int]:
    """One at least: all, a run of them, or any."""
    start = random.randrange(count)
    some = {start, *(n for n in range(count) if random.random() < random.choice([0.02, 0.2, 0.9]))}
    return random.choice([set(range(count)), set(range(start, random.randrange(start, count) + 1)), some])


@pytest.mark.long
@given(st.integers(0, 2**32))
def test_what_is_read_is_what_is_left(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    random, folder = Random(seed), tmp_path_factory.mktemp("masked")
    enveloped = random.random() < 0.4
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), sizes in SIZES.items():
            patch.setattr(module, name, random.choice(sizes))
        records = some_records(random, enveloped=enveloped)
        schema = ENVELOPE_SCHEMA if enveloped else SEGMENT_SCHEMA
        (whole,) = write_segments(folder, "append", records, schema=schema, indexes_keys=random.random() < 0.5)
        segment = with_mask(whole, some_positions(random, len(records)))
        dead = dead_positions(segment)
        left = [record for n, record in enumerate(records) if n not in dead]
        start = random.choice([0, random.randrange(2 * len(records) + 2)])
        tables = list(read_segment(ACCESS, segment, start_offset=start))
        assert all(table.num_rows for table in tables)
        assert [record for table in tables for record in to_records(table)] == [r for r in left if r.offset >= start]
        some = random.sample(schema.names, random.randrange(1, len(schema.names) + 1))
        check_groups(segment, dead, (some, ["value"], ["value", "offset"], schema.names))


def check_groups(segment: Segment, dead: set[int], choices: Sequence[list[str]]) -> None:
    """Each row group gives the rows that PyArrow alone reads, without the dead, and with the types of the file."""
    first = 0
    with SegmentReader(ACCESS, segment) as reader, SegmentReader(ACCESS, segment.unmasked) as unmasked:
        file = pq.ParquetFile(segment.path)
        for group in range(reader.row_groups):
            rows = file.read_row_group(group).to_pylist()
            for columns in choices:
                found = reader.read(group, columns)
                found.validate(full=True)
                assert found.schema == unmasked.read(group, columns).schema
                assert found.num_rows == reader.records(group)
                expected = [{name: row[name] for name in columns} for n, row in enumerate(rows, first) if n not in dead]
                assert found.to_pylist() == expected
                pieces = pa.concat_tables(reader.pieces(group, columns, segment_reader.VALUES_BYTES))
                assert pieces.equals(found)
            first += len(rows)
