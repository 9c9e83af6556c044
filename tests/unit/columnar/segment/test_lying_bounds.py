"""Bounds of row groups that are not those of their records: an error that names the file, or the truth (C8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.columnar.files.access import FileAccess
from lithify.columnar.rewrite import cut
from lithify.columnar.segment.segment_reader import read_segment
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.errors import DamagedError
from lithify.model.record import Record
from lithify.model.segment import Segment
from support.topics.stored_topics import segment_table

pytestmark = pytest.mark.long
ACCESS = FileAccess()
BASE = 10**15
"""So that eight bytes of an offset are nowhere else in the footer."""
OF_GROUP, GROUPS = 10, 4
END = BASE + OF_GROUP * GROUPS


def a_spec(folder: Path) -> SegmentSpec:
    folder.mkdir(exist_ok=True)
    return SegmentSpec(str(folder), "run", 0, 2**30, "zstd")


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    writer = SegmentWriter(ACCESS, a_spec(tmp_path), attempt="a")
    for start in range(BASE, END, OF_GROUP):
        writer.write(segment_table([Record(b"k", b"v", 0, (), 0, offset) for offset in range(start, start + OF_GROUP)]))
        writer.flush()
    (made,) = writer.close()
    return made


def lie(segment: Segment, group: int, largest: int) -> None:
    """The footer says another largest offset of a row group, wherever it says one."""
    path = Path(segment.path)
    content = path.read_bytes()
    footer_at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    true = (BASE + (group + 1) * OF_GROUP - 1).to_bytes(8, "little")
    assert true in content[footer_at:]
    path.write_bytes(content[:footer_at] + content[footer_at:].replace(true, largest.to_bytes(8, "little")))


def offsets(segments: tuple[Segment, ...], start: int = 0) -> list[int]:
    tables = [table for segment in segments for table in read_segment(ACCESS, segment, start_offset=start)]
    return [offset for table in tables for offset in table.column("offset").to_pylist()]


@pytest.mark.parametrize("largest", [BASE, BASE + 14, END - 1, 2**62])
@pytest.mark.parametrize("group", range(GROUPS))
def test_a_reader_that_seeks_is_not_made_to_pass_over_records(segment: Segment, group: int, largest: int) -> None:
    lie(segment, group, largest)
    for start in range(BASE, END + 2):
        try:
            found = offsets((segment,), start)
        except DamagedError as error:
            assert segment.path in error.message
        else:
            assert found == list(range(start, END))


@pytest.mark.parametrize("largest", [BASE, BASE + 14, END - 1, 2**62])
@pytest.mark.parametrize("group", range(GROUPS))
def test_a_cut_takes_what_is_below_it_and_nothing_else(
    segment: Segment, tmp_path: Path, group: int, largest: int
) -> None:
    lie(segment, group, largest)
    for end in range(BASE + 1, END, 3):
        try:
            made = cut(ACCESS, a_spec(tmp_path / f"{end}"), segment, end)
        except DamagedError as error:
            assert segment.path in error.message
        else:
            assert offsets(made) == list(range(BASE, end))


@pytest.mark.long
def test_what_is_stated_truly_is_read_from_everywhere(segment: Segment, tmp_path: Path) -> None:
    for start in range(BASE, END + 2):
        assert offsets((segment,), start) == list(range(start, END))
    for end in range(BASE + 1, END + 1):
        assert offsets(cut(ACCESS, a_spec(tmp_path / f"{end}"), segment, end)) == list(range(BASE, end))
