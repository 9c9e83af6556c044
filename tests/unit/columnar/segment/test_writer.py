"""What `SegmentWriter` puts into a row group (C38, C51)."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lithify.columnar.files.access import FileAccess
from lithify.columnar.parquet.footer import read_footer
from lithify.columnar.parquet.pages import weigh
from lithify.columnar.segment.writer import LARGE_PAGE_BYTES, ROW_GROUP_BYTES, SegmentSpec, SegmentWriter
from lithify.model.record import Record
from support.topics.stored_topics import segment_table

LARGE, SMALL = 2**21, 3000


@pytest.mark.long
def test_records_of_uneven_sizes_do_not_make_a_row_group_too_large(tmp_path: Path) -> None:
    """C51: the large ones come first, so that the mean size of all says nothing about them."""
    values = [bytes(LARGE)] * 80 + [b""] * SMALL
    table = segment_table([Record(b"k", value, 0, (), 0, offset) for offset, value in enumerate(values)])
    writer = SegmentWriter(FileAccess(), SegmentSpec(str(tmp_path), "run", 0, 2**30, "zstd"), attempt="a")
    writer.write(table)
    (segment,) = writer.close()
    footer = pq.read_metadata(segment.path)
    sizes = [footer.row_group(group).total_byte_size for group in range(footer.num_row_groups)]
    assert len(sizes) > 1
    assert max(sizes) <= 2 * ROW_GROUP_BYTES + LARGE


@pytest.mark.parametrize("size", [100, 50_000])
def test_pages_of_large_values_are_small(tmp_path: Path, size: int) -> None:
    """Else a reader takes memory for a row group at once (C38)."""
    table = segment_table([Record(b"k", bytes(size), 0, (), 0, offset) for offset in range(10_000_000 // size)])
    with SegmentWriter(FileAccess(), SegmentSpec(str(tmp_path), "run", 0, 2**30, "none"), attempt="a") as writer:
        writer.write(table)
        (segment,) = writer.close()
    with Path(segment.path).open("rb") as file:
        footer = read_footer(file)

        def read_at(count: int, start: int) -> bytes:
            file.seek(start)
            return file.read(count)

        chunks = [footer.of_columns(group, ["value"])["value"] for group in range(len(footer.chunks))]
        assert max(weigh(read_at, chunk).page_bytes for chunk in chunks) <= 2 * LARGE_PAGE_BYTES
