"""Survivors go from file to file: whole row groups where they can, every field as it was (C1, C39)."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from lithify.columnar import rewrite as rewriting
from lithify.columnar.parquet import footer as footers
from lithify.columnar.parquet.thrift import Struct, read_struct
from lithify.columnar.rewrite import Source, Throttles, cut, rewrite
from lithify.columnar.segment import writer
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.columnar.segment.writer import SegmentSpec
from lithify.errors import DamagedError
from lithify.model.record import Record
from support.topics.stored_topics import ACCESS, records_in, write_segments


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch):
    monkeypatch.setattr(writer, "ROW_GROUP_RECORDS", 10)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    """Where few survive, however small the files are."""
    monkeypatch.setattr(rewriting, "LARGE_SOURCE_BYTES", 0)


@pytest.fixture
def spec(tmp_path):
    return SegmentSpec(str(tmp_path), "round", 0, 2**40, "zstd")


@pytest.fixture
def reads(monkeypatch):
    """Row groups and columns that were read, in order."""
    seen = []

    def watched(method):
        def watching(self, row_group, columns, *more):
            seen.append((row_group, tuple(columns)))
            return method(self, row_group, columns, *more)

        return watching

    for name in ("read", "pieces"):
        monkeypatch.setattr(SegmentReader, name, watched(getattr(SegmentReader, name)))
    return seen


def a_segment(folder: Path, first: int, count: int, *, headers: bool = False):
    records = [
        Record(b"k%d" % i, b"v" * (i % 7), i, (("h", b"1"),) if headers and i % 2 else (), 0, i)
        for i in range(first, first + count)
    ]
    (segment,) = write_segments(folder, "append", records)
    return segment, records


def stays(segment, positions) -> Source:
    return Source(segment, len(positions), DeadPositions.all_but(positions))


def goes(segment, positions) -> Source:
    return Source(segment, segment.records - len(positions), DeadPositions.of(positions))


def test_survivors_of_dirty_and_clean_segments_in_order(tmp_path, spec):
    clean, first = a_segment(tmp_path, 0, 35)
    dirty, second = a_segment(tmp_path, 100, 35, headers=True)
    (written,), _ = rewrite(ACCESS, spec, [goes(clean, [0, 11, 34]), stays(dirty, [1, 2, 33])], attempt="g")
    expected = [r for i, r in enumerate(first) if i not in (0, 11, 34)] + [second[i] for i in (1, 2, 33)]
    assert records_in(written) == expected
    assert (written.base_offset, written.end_offset, written.records) == (1, 134, 35)


def test_a_row_group_without_survivors_is_not_read(tmp_path, spec, reads):
    segment, _ = a_segment(tmp_path, 0, 30)
    (written,), bytes_read = rewrite(ACCESS, spec, [stays(segment, [3, 25])], attempt="g")
    assert sorted(group for group, _ in reads) == [0, 2]
    assert bytes_read < segment.size_bytes
    assert [r.offset for r in records_in(written)] == [3, 25]


@pytest.mark.parametrize("shares", [(7, 3, 5), (2, 2, 3), (1, 1, 1)])
def test_survivors_are_in_order_however_many_threads_read_them(tmp_path, spec, shares):
    """Above half of the records one thread reads them, below two: each other row group that has survivors (C1)."""
    random = Random(7)
    sources, expected = [], []
    for number, share in enumerate(shares):
        segment, records = a_segment(tmp_path, 1000 * number, 55, headers=number == 1)
        positions = [n for n in range(55) if n // 10 != number + 1 and random.randrange(8) < share]
        sources.append(stays(segment, positions))
        expected += [records[n] for n in positions]
    (written,), bytes_read = rewrite(ACCESS, spec, sources, attempt="g")
    assert records_in(written) == expected
    assert 0 < bytes_read < sum(source.segment.size_bytes for source in sources)


def test_small_files_are_opened_once_however_few_survive(tmp_path, spec, monkeypatch):
    """In an object store each is a request, and one that reads the whole file before the read rate is asked (C40)."""
    monkeypatch.undo()
    sources = [stays(a_segment(tmp_path, 100 * number, 30)[0], [3, 25]) for number in range(4)]
    opened = []
    enter = SegmentReader.__enter__
    monkeypatch.setattr(SegmentReader, "__enter__", lambda reader: opened.append(reader) or enter(reader))
    rewrite(ACCESS, spec, sources, attempt="g")
    assert len(opened) == len(sources)


@pytest.mark.parametrize("first", [1, 2])
def test_a_file_that_is_replaced_while_it_is_read_is_damaged(tmp_path, spec, monkeypatch, first):
    """Each thread opens it: by other row groups they would copy some records twice, or not at all (C8)."""
    segment, records = a_segment(tmp_path, 0, 60)
    monkeypatch.setattr(writer, "ROW_GROUP_RECORDS", 40)
    (other,) = write_segments(tmp_path / "other", "append", records)
    enter, opened = SegmentReader.__enter__, []

    def entering(reader: SegmentReader) -> SegmentReader:
        opened.append(reader)
        if len(opened) == first:
            reader._segment = other
        return enter(reader)

    monkeypatch.setattr(SegmentReader, "__enter__", entering)
    with pytest.raises(DamagedError, match=f"{segment.path}: it was replaced"):
        rewrite(ACCESS, spec, [stays(segment, range(0, 60, 2))], attempt="g")


@pytest.mark.parametrize("left", [range(1, 60, 7), range(60)])
def test_an_error_of_the_writer_ends_those_that_read(tmp_path, spec, left):
    def full(_bytes: int) -> None:
        raise OSError(28, "no space left on device")

    segment, _ = a_segment(tmp_path, 0, 60)
    before = threading.active_count()
    with pytest.raises(OSError, match="no space left"):
        rewrite(ACCESS, spec, [stays(segment, left)], attempt="g", throttles=Throttles(write=full))
    assert threading.active_count() == before


def test_a_row_group_is_decoded_a_piece_at_a_time(tmp_path, spec, monkeypatch):
    """Memory is that of a piece, with the survivors (C38)."""
    monkeypatch.setattr(rewriting, "PIECE_BYTES", 100)
    segment, records = a_segment(tmp_path, 0, 60, headers=True)
    with SegmentReader(ACCESS, segment) as reader:
        rows = [piece.num_rows for piece in reader.pieces(2, reader.schema.names, 100)]
    assert sum(rows) == 10
    assert len(rows) > 3
    (written,), _ = rewrite(ACCESS, spec, [goes(segment, [25, 26])], attempt="g")
    assert records_in(written) == records[:25] + records[27:]


def test_sizes_that_a_footer_makes_up_do_not_make_pieces_tiny(tmp_path, monkeypatch):
    """Reading a record at a time would take hours (C51)."""
    segment, records = a_segment(tmp_path, 0, 10)

    def lying(raw: bytes) -> tuple[Struct, int]:
        found, end = read_struct(raw)
        for column in found[4][0][1]:
            column[3][6] = 2**40
        return found, end

    monkeypatch.setattr(footers, "read_struct", lying)
    with SegmentReader(ACCESS, segment) as reader:
        assert [piece.num_rows for piece in reader.pieces(0, reader.schema.names, 10_000)] == [len(records)]


def test_headers_are_read_only_where_a_record_has_some(tmp_path, spec, reads):
    without, _ = a_segment(tmp_path, 0, 10)
    some, _ = a_segment(tmp_path, 10, 10, headers=True)
    rewrite(ACCESS, spec, [goes(without, []), goes(some, [])], attempt="g")
    assert ["headers" in columns for _, columns in reads] == [False, True]


def test_it_writes_several_segments_above_the_segment_size(tmp_path, spec):
    segment, records = a_segment(tmp_path, 0, 60)
    written, _ = rewrite(ACCESS, replace(spec, segment_bytes=1), [goes(segment, [5])], attempt="g")
    assert len(written) == 6
    assert [r for s in written for r in records_in(s)] == records[:5] + records[6:]


def test_two_attempts_never_write_the_same_file(tmp_path, spec):
    segment, _ = a_segment(tmp_path, 0, 10)
    (one,), _ = rewrite(ACCESS, spec, [goes(segment, [1])], attempt="7")
    (two,), _ = rewrite(ACCESS, spec, [goes(segment, [1])], attempt="8")
    assert one.path != two.path
    assert records_in(one) == records_in(two)


def test_it_pays_before_it_reads_and_after_it_wrote(tmp_path, spec, reads):
    segment, _ = a_segment(tmp_path, 0, 30)
    paid = {"read": [], "write": []}
    throttles = Throttles(lambda n: paid["read"].append((n, len(reads))), paid["write"].append)
    (written,), bytes_read = rewrite(ACCESS, spec, [goes(segment, [1])], attempt="g", throttles=throttles)
    assert sum(n for n, _ in paid["read"]) == bytes_read > 0
    assert [already for _, already in paid["read"]] == [0, 1, 2]
    assert sum(paid["write"]) == written.size_bytes - len(b"PAR1")
    assert len(paid["write"]) == 3 + 1  # the footer comes last


def test_a_source_that_holds_other_records_than_were_counted_is_damaged(tmp_path, spec):
    segment, _ = a_segment(tmp_path, 0, 30)
    source = replace(goes(segment, [1]), survivors=30)
    with pytest.raises(DamagedError, match=segment.path):
        rewrite(ACCESS, spec, [source], attempt="g")


def test_a_source_that_is_cut_short_is_named(tmp_path, spec):
    segment, _ = a_segment(tmp_path, 0, 30)
    path = Path(segment.path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DamagedError, match=segment.path):
        rewrite(ACCESS, spec, [goes(segment, [1])], attempt="g")


def test_one_row_group_at_a_time_is_written(tmp_path, spec):
    segment, _ = a_segment(tmp_path, 0, 60)
    (written,), _ = rewrite(ACCESS, spec, [goes(segment, range(0, 60, 2))], attempt="g")
    footer = pq.ParquetFile(written.path).metadata
    assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [10, 10, 10]


@pytest.mark.parametrize("end", [1, 9, 10, 11, 25, 30])
def test_a_cut_leaves_what_is_below_it(tmp_path, spec, reads, end):
    """C26."""
    segment, records = a_segment(tmp_path, 0, 30, headers=True)
    (written,) = cut(ACCESS, spec, segment, end)
    read = len(reads)
    assert records_in(written) == records[:end]
    assert written.end_offset == end
    assert read == -(-end // 10)


def test_nothing_is_written_where_nothing_is_below_the_cut(tmp_path, spec):
    segment, _ = a_segment(tmp_path, 5, 10)
    before = list(tmp_path.rglob("*.parquet"))
    assert cut(ACCESS, spec, segment, 5) == ()
    assert list(tmp_path.rglob("*.parquet")) == before


def test_segments_that_begin_alike_are_cut_into_files_of_their_own(tmp_path, spec):
    """C26: a truncate cuts the log and its view in one commit."""
    log, records = a_segment(tmp_path, 0, 20)
    (view,) = write_segments(tmp_path, "view", [*records[:1], *records[15:]])
    (of_log,), (of_view,), (lower,) = (cut(ACCESS, spec, *what) for what in ((log, 18), (view, 18), (log, 17)))
    assert records_in(of_log) == records[:18]
    assert records_in(of_view) == [*records[:1], *records[15:18]]
    assert records_in(lower) == records[:17]


def test_a_cut_of_a_damaged_segment_names_it(tmp_path, spec):
    """C8."""
    segment, _ = a_segment(tmp_path, 0, 30)
    Path(segment.path).write_bytes(Path(segment.path).read_bytes()[:-20])
    with pytest.raises(DamagedError, match=segment.path):
        cut(ACCESS, spec, segment, 15)
