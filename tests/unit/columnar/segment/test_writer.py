"""What `SegmentWriter` puts into a row group (C38, C51)."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.writer import ROW_GROUP_BYTES, SegmentSpec, SegmentWriter
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
