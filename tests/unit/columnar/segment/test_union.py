"""Overlapping segments become one log again: each offset once, and never of two different records one (C1)."""

from __future__ import annotations

import pytest

from lithify.columnar.rewrite import unite
from lithify.columnar.segment import writer
from lithify.columnar.segment.writer import SegmentSpec
from lithify.errors import DamagedError
from lithify.model.record import Record
from support.topics.stored_topics import ACCESS, records_in, write_segments


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch):
    monkeypatch.setattr(writer, "ROW_GROUP_RECORDS", 7)


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "united").mkdir()
    return SegmentSpec(str(tmp_path / "united"), "repair", 0, 2**40, "zstd")


def some(offsets, value=b"v"):
    return [Record(b"%d" % n, value, n, partition=0, offset=n) for n in offsets]


def written(folder, *runs):
    return [segment for n, records in enumerate(runs) for segment in write_segments(folder, str(n), records)]


@pytest.mark.parametrize(
    "runs",
    [
        ([range(0, 30), range(10, 50, 3)]),
        ([range(0, 50, 7), range(0, 50, 5), range(3, 50, 11)]),
        ([range(0, 9), range(0, 9)]),
        ([[0], range(5, 40), [39], range(2, 60, 19)]),
    ],
)
def test_every_offset_is_there_once(tmp_path, spec, runs):
    segments = written(tmp_path, *(some(offsets) for offsets in runs))

    united = unite(ACCESS, spec, segments)

    everything = sorted({offset for offsets in runs for offset in offsets})
    assert [r for segment in united for r in records_in(segment)] == some(everything)


def test_different_records_of_one_offset_are_not_chosen_between(tmp_path, spec):
    segments = written(tmp_path, some(range(0, 20)), some(range(15, 20), b"other"))

    with pytest.raises(DamagedError, match=r"different records at offset 15 in .*move the file that was not committed"):
        unite(ACCESS, spec, segments)
