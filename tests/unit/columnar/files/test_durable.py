"""Large files reach the disk while they are written, and are whole all the same."""

from __future__ import annotations

import errno
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lithify.columnar.files import durable
from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.schema import SEGMENT_SCHEMA
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be asked to")

RECORDS = 1000


def a_batch(first: int) -> pa.RecordBatch:
    constant = {"partition": 0, "timestamp": 0, "timestamp_type": 0, "value": b"v" * 100, "value_size": 100}
    rows = [{**constant, "offset": first + i, "key": b"%d" % i} for i in range(RECORDS)]
    return pa.RecordBatch.from_pylist(rows, schema=SEGMENT_SCHEMA)


def written(folder, groups: int) -> str:
    writer = SegmentWriter(FileAccess(), SegmentSpec(str(folder), "run", 0, 2**30, "none"), attempt="0")
    for group in range(groups):
        writer.write(a_batch(group * RECORDS))
        writer.flush()
    (segment,) = writer.close()
    return segment.path


@pytest.fixture
def asked(monkeypatch) -> list[tuple[int, int]]:
    """The stretches of files that Linux was asked to begin with."""
    asked: list[tuple[int, int]] = []
    ask = os.posix_fadvise

    def noted(descriptor: int, start: int, size: int, advice: int) -> None:
        ask(descriptor, start, size, advice)
        asked.append((start, start + size))

    monkeypatch.setattr(os, "posix_fadvise", noted)
    return asked


def test_each_row_group_is_on_its_way_before_the_next(tmp_path, monkeypatch, asked):
    monkeypatch.setattr(durable, "EARLY_BYTES", 1)
    path = written(tmp_path, 3)
    assert [start for start, _ in asked[1:]] == [end for _, end in asked[:-1]]
    assert (asked[0][0], len(asked)) == (4, 3)  # behind Parquet's magic number
    assert pq.read_table(path).num_rows == 3 * RECORDS


def test_small_appends_are_not_slowed_down(tmp_path, asked):
    assert pq.read_table(written(tmp_path, 2)).num_rows == 2 * RECORDS
    assert asked == []


def test_a_file_system_that_refuses_to_begin_early_is_no_error(tmp_path, monkeypatch):
    def refuse(*_: int) -> None:
        raise OSError(errno.EINVAL, "not here")

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    monkeypatch.setattr(durable, "EARLY_BYTES", 1)
    assert pq.read_table(written(tmp_path, 2)).num_rows == 2 * RECORDS


def test_files_elsewhere_are_not_asked_for(asked):
    durable.start_writing("s3://bucket/topic/data/file.parquet", 0, 2**30)
    assert asked == []
