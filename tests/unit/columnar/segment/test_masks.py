"""Masks of dead records: every reader passes over them, and no damage of one goes unnoticed (C1, C8)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lithify.columnar.rewrite import Source, Throttles, cut, mask, mask_offsets, rewrite, unite
from lithify.columnar.segment import mask_file, writer
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.columnar.segment.file_pieces import checked_pieces
from lithify.columnar.segment.inspect import TombstonesOf, Wanted, inspect_file, inspect_segment
from lithify.columnar.segment.mask_file import FILE_PATH, MASK_SCHEMA, POSITION, masked_with, read_mask, write_mask
from lithify.columnar.segment.segment_reader import SegmentReader, read_segment
from lithify.columnar.segment.writer import SegmentSpec
from lithify.errors import DamagedError, EngineError
from lithify.model.finding import Finding, FindingKind, TombstoneCount
from lithify.model.record import Record
from lithify.model.segment import Segment
from support.topics.stored_topics import ACCESS, records_in, write_segments

COUNT = 40
SEGMENT = Segment("/lake/t/data/partition=0/x.parquet", 0, 0, COUNT, COUNT, 9, 1, 0, 0, 0, 0, 1, b"a", b"b")


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP_RECORDS", 10)
    monkeypatch.setattr(mask_file, "PIECE_RECORDS", 7)
    monkeypatch.setattr(mask_file, "GROUP_ROWS", 7)


@pytest.fixture
def spec(tmp_path: Path) -> SegmentSpec:
    return SegmentSpec(str(tmp_path / "orders"), "round", 0, 2**40, "zstd")


@pytest.fixture
def whole(spec: SegmentSpec) -> Segment:
    """Four row groups; offsets have gaps, each fifth record is a tombstone, and only the second half has headers."""
    records = [
        Record(b"k%d" % n, None if n % 5 == 0 else b"v", n, (("h", b"1"),) if n >= COUNT // 2 else (), 0, 3 * n)
        for n in range(COUNT)
    ]
    (segment,) = write_segments(Path(spec.location), "append", records)
    return segment


def hidden(spec: SegmentSpec, segment: Segment, positions: Sequence[int], attempt: str = "a") -> Segment:
    source = Source(segment, segment.records - len(positions), DeadPositions.of(positions))
    return mask(ACCESS, spec, source, attempt=attempt)[0]


def left(records: Sequence[Record], dead: Sequence[int]) -> list[Record]:
    return [record for n, record in enumerate(records) if n not in set(dead)]


@given(st.integers(0, 60), st.data())
def test_masks_one_after_the_other_hide_what_rounds_found_dead(count: int, data: st.DataObject) -> None:
    records, masked = list(range(count)), BitMap()
    for _ in range(3):
        dead = data.draw(st.sets(st.sampled_from(range(len(records))) if records else st.nothing()))
        listed = data.draw(st.booleans())
        positions = DeadPositions.of(dead) if listed else DeadPositions.all_but(set(range(len(records))) - dead)
        masked = masked_with(masked, positions, count)
        records = left(records, list(dead))
        assert sorted(set(range(count)) - set(masked)) == records


def test_readers_pass_over_what_a_mask_hides(spec: SegmentSpec, whole: Segment) -> None:
    dead = [0, 3, *range(10, 20), 25, 39]
    masked, expected = hidden(spec, whole, dead), left(records_in(whole), dead)
    assert (masked.path, masked.records, masked.records_in_file) == (whole.path, COUNT - len(dead), COUNT)
    assert records_in(masked) == expected
    with SegmentReader(ACCESS, masked) as reader:
        assert [reader.records(group) for group in range(reader.row_groups)] == [8, 0, 9, 9]
        assert [reader.read(group, ["offset"]).num_rows for group in range(reader.row_groups)] == [8, 0, 9, 9]
        assert reader.first_row_group_at(59) == 2
    for start in range(0, 3 * COUNT, 7):
        found = [o for t in read_segment(ACCESS, masked, start_offset=start) for o in t.column("offset").to_pylist()]
        assert found == [r.offset for r in expected if (r.offset or 0) >= start]


def test_a_second_mask_hides_what_the_first_did(spec: SegmentSpec, whole: Segment) -> None:
    records = records_in(whole)
    first = hidden(spec, whole, [1, 2, 30])
    paid: list[int] = []
    dead = DeadPositions.all_but([0, 5, 36])  # of those that are left
    second, read = mask(ACCESS, spec, Source(first, 3, dead), attempt="b", throttles=Throttles(paid.append))
    assert first.mask is not None
    assert paid == [read] == [first.mask.size_bytes]
    assert records_in(second) == [records[n] for n in (0, 7, 39)]
    assert second.mask is not None
    assert second.id != first.id != whole.id
    assert second.mask.dead == COUNT - 3
    assert records_in(first) == left(records, [1, 2, 30])


def test_records_are_hidden_by_their_offsets(spec: SegmentSpec, whole: Segment) -> None:
    first = mask_offsets(ACCESS, spec, whole, [3, 30, 31])
    second = mask_offsets(ACCESS, spec, first, {9})
    assert records_in(second) == left(records_in(whole), [1, 3, 10])


def test_masked_records_are_neither_rewritten_nor_cut_nor_united(spec: SegmentSpec, whole: Segment) -> None:
    dead = [0, *range(10, 20), 39]
    masked, expected = hidden(spec, whole, dead), left(records_in(whole), dead)
    gone = DeadPositions.of([0, 27])
    (rewritten,), read = rewrite(ACCESS, spec, [Source(masked, len(expected) - 2, gone)], attempt="r")
    assert records_in(rewritten) == expected[1:-1]
    assert rewritten.mask is None
    assert read < masked.size_bytes  # nothing of the second row group, and the mask
    assert [r.offset for s in cut(ACCESS, spec, masked, 75) for r in records_in(s)] == [
        r.offset for r in expected if (r.offset or 0) < 75
    ]
    assert cut(ACCESS, spec, hidden(spec, whole, range(10), "b"), 30) == ()
    assert cut(ACCESS, spec, whole, 75) != cut(ACCESS, spec, masked, 78)
    other = SegmentSpec(spec.location, "other", 0, 2**40, "zstd")
    assert [r for s in unite(ACCESS, other, [masked, rewritten]) for r in records_in(s)] == expected


def test_the_file_of_a_masked_segment_is_copied_as_it_is(spec: SegmentSpec, whole: Segment) -> None:
    masked = hidden(spec, whole, [1])
    assert b"".join(checked_pieces(ACCESS, masked)) == Path(whole.path).read_bytes()


def test_writing_is_paid_for_and_what_is_written_is_known(spec: SegmentSpec, whole: Segment) -> None:
    paid: list[int] = []
    source = Source(whole, COUNT - 20, DeadPositions.of(range(20)))
    masked, _ = mask(ACCESS, spec, source, attempt="a", throttles=Throttles(write=paid.append))
    assert masked.mask is not None
    path = Path(masked.mask.path)
    assert path.name == f"{0:020d}-round-a-0.deletes.parquet"
    assert path.parent == Path(whole.path).parent
    assert sum(paid) == masked.mask.size_bytes == path.stat().st_size
    assert len(paid) == 4  # three row groups and the footer


def test_other_programs_read_it(spec: SegmentSpec, whole: Segment) -> None:
    masked = hidden(spec, whole, [2, 11, 39])
    query = f"SELECT file_path, pos FROM read_parquet('{masked.id}')"
    assert duckdb.sql(query).fetchall() == [(whole.path, 2), (whole.path, 11), (whole.path, 39)]
    schema = pq.read_schema(masked.id)
    assert [schema.field(n).metadata[b"PARQUET:field_id"] for n in (0, 1)] == [b"2147483546", b"2147483545"]
    assert not any(field.nullable for field in schema)


def test_dead_records_that_were_not_counted_are_not_hidden(spec: SegmentSpec, whole: Segment) -> None:
    with pytest.raises(EngineError, match="38 records should survive, but its mask would leave 39"):
        mask(ACCESS, spec, Source(whole, COUNT - 2, DeadPositions.of([1])), attempt="a")
    assert not list(Path(spec.location).rglob("*.deletes.parquet"))


def rows(path: str, positions: Sequence[int], **options: object) -> Callable[[Path], None]:
    def write(to: Path) -> None:
        table = pa.table([[path] * len(positions), list(positions)], schema=MASK_SCHEMA)
        pq.write_table(table, to, store_schema=False, **options)

    return write


DAMAGE: dict[str, tuple[Callable[[Segment], Callable[[Path], None]], str]] = {
    "missing": (lambda _: Path.unlink, "the file is missing"),
    "no Parquet": (lambda _: lambda to: to.write_bytes(b"no Parquet"), "it does not end like a Parquet file"),
    "of another segment": (lambda s: rows(s.path + "x", [1, 2]), "it is the mask of another file"),
    "of two": (
        lambda s: (
            lambda to: pq.write_table(
                pa.table([[s.path, s.path + "x"], [1, 2]], schema=MASK_SCHEMA), to, store_schema=False
            )
        ),
        "it is the mask of another file",
    ),
    "fewer rows": (lambda s: rows(s.path, [1]), "holds 1 records, but the metadata has 2"),
    "twice": (lambda s: rows(s.path, [2, 2]), "its positions are not positions of records"),
    "backwards": (lambda s: rows(s.path, [2, 1]), "its positions are not positions of records"),
    "negative": (lambda s: rows(s.path, [-1, 1]), "its positions are not positions of records"),
    "above the last": (lambda s: rows(s.path, [1, COUNT]), "its positions are not positions of records"),
    "too far apart": (lambda s: rows(s.path, [2**63 - 2, -(2**63)]), "its positions are not positions of records"),
    "other columns": (
        lambda _: lambda to: pq.write_table(pa.table({POSITION: [1, 2]}), to, store_schema=False),
        "the file cannot be read",
    ),
    "nulls": (
        lambda s: lambda to: pq.write_table(pa.table({FILE_PATH: [s.path, None], POSITION: [1, 2]}), to),
        "its columns are not the columns of a mask",
    ),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_mask_that_is_not_what_the_metadata_says_is_damage_that_names_it(
    spec: SegmentSpec, whole: Segment, how: str
) -> None:
    masked = hidden(spec, whole, [1, 2])
    assert masked.mask is not None
    path = Path(masked.mask.path)
    damage, says = DAMAGE[how]
    damage(masked)(path)
    if path.exists():
        masked = replace(masked, mask=replace(masked.mask, size_bytes=path.stat().st_size))
    for read in (lambda: records_in(masked), lambda: hidden(spec, masked, [5], "b"), lambda: read_mask(ACCESS, masked)):
        with pytest.raises(DamagedError, match=says) as raised:
            read()
        assert str(path) in raised.value.message
    (finding,) = inspect_segment(ACCESS, masked, ["h"], None)
    assert isinstance(finding, Finding)
    kind = FindingKind.FILE_MISSING if how == "missing" else FindingKind.FILE_DAMAGED
    assert (finding.kind, finding.path) == (kind, str(path))


def test_a_mask_of_another_size_or_copied_from_elsewhere_is_damage(spec: SegmentSpec, whole: Segment) -> None:
    masked, other = hidden(spec, whole, [1, 2]), hidden(spec, whole, [3, 4], "b")
    assert masked.mask is not None
    assert other.mask is not None
    with pytest.raises(DamagedError, match="but the metadata has 9"):
        read_mask(ACCESS, replace(masked, mask=replace(masked.mask, size_bytes=9)))
    Path(masked.mask.path).write_bytes(Path(other.mask.path).read_bytes())
    with pytest.raises(DamagedError, match=r"is a copy of orders/data/partition=0/.*-b-0\.deletes\.parquet"):
        read_mask(ACCESS, replace(masked, mask=replace(masked.mask, size_bytes=other.mask.size_bytes)))


def test_a_mask_that_would_expand_beyond_measure_is_not_decoded(spec: SegmentSpec, whole: Segment) -> None:
    masked = hidden(spec, whole, [1])
    assert masked.mask is not None
    path = Path(masked.mask.path)
    rows("x" * 2**20, range(300))(path)
    known = replace(masked.mask, size_bytes=path.stat().st_size, dead=300)
    with pytest.raises(DamagedError, match="row group 0 can expand to 30"):
        read_mask(ACCESS, replace(masked, mask=known))


def test_whatever_byte_of_a_mask_is_changed_it_says_the_same_or_is_damage(spec: SegmentSpec, whole: Segment) -> None:
    masked = hidden(spec, whole, [1, 2, 3, 17, 18, 30, 31, 32, 33, 39])
    path, chance = Path(masked.id), random.Random(5)
    content, truth, refused = path.read_bytes(), read_mask(ACCESS, masked), 0
    for at in range(chance.randrange(10), len(content), 10):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :])
        try:
            assert read_mask(ACCESS, masked) == truth
        except DamagedError as error:
            assert masked.id in error.message
            assert "\n" not in error.message
            refused += 1
    for end in range(0, len(content), 50):
        path.write_bytes(content[:end])
        with pytest.raises(DamagedError, match=path.name):
            read_mask(ACCESS, masked)
    assert refused > 20


def test_inspection_counts_and_digests_what_is_left(spec: SegmentSpec, whole: Segment) -> None:
    masked = hidden(spec, whole, [0, 3, *range(10, 20), 25, 39])
    count = TombstoneCount(start=0, end=10**6, step_ends=(60,), empty_is_tombstone=False)
    *digests, tombstones = inspect_segment(ACCESS, masked, [], count)
    offsets = [
        offset for table in digests if isinstance(table, pa.Table) for offset in table.column("offset").to_pylist()
    ]
    assert offsets == [r.offset for r in records_in(masked)]
    assert tombstones == TombstonesOf(0, (1, 3))


def test_segments_of_one_file_are_inspected_by_reading_it_once(spec: SegmentSpec, whole: Segment) -> None:
    """Whatever their masks: each gets what it would get alone."""
    count = TombstoneCount(start=0, end=10**6, step_ends=(60,), empty_is_tombstone=False)
    masked = [whole, hidden(spec, whole, [0, 3, *range(10, 20)], "a"), hidden(spec, whole, [39], "b")]
    wanted = [Wanted(masked[0], ["h"]), Wanted(masked[1], None, count), Wanted(masked[2], ["h"], count)]
    read: list[int] = []
    together = list(inspect_file(ACCESS, wanted, read.append))
    alone: list[int] = []
    for number, one in enumerate(wanted):
        mine = [piece for n, piece in together if n == number]
        assert mine == list(inspect_segment(ACCESS, one.segment, one.headers, one.count, alone.append))
    assert 3 * sum(read) == sum(alone) + 2 * sum(segment.mask_bytes for segment in masked)
    assert [n for n, piece in together if isinstance(piece, TombstonesOf)] == [1, 2]


def test_a_damaged_mask_leaves_the_other_segments_of_its_file_alone(spec: SegmentSpec, whole: Segment) -> None:
    masked, other = hidden(spec, whole, [1], "a"), hidden(spec, whole, [2], "b")
    Path(masked.id).unlink()
    found = list(inspect_file(ACCESS, [Wanted(masked, []), Wanted(other, [])], lambda _bytes: None))
    assert [piece.path for _, piece in found if isinstance(piece, Finding)] == [masked.id]
    assert sum(piece.num_rows for n, piece in found if n == 1 and isinstance(piece, pa.Table)) == COUNT - 1
    assert {n for n, piece in found if isinstance(piece, pa.Table)} == {1}


def test_a_damaged_file_is_found_beneath_a_damaged_mask(spec: SegmentSpec, whole: Segment) -> None:
    masked = hidden(spec, whole, [1])
    Path(masked.id).unlink()
    Path(masked.path).write_bytes(b"nothing")
    findings = list(inspect_segment(ACCESS, masked, [], None))
    assert [(one.kind, one.path) for one in findings if isinstance(one, Finding)] == [
        (FindingKind.FILE_MISSING, masked.id),
        (FindingKind.FILE_DAMAGED, masked.path),
    ]


def test_wrong_facts_beneath_a_mask_are_found(spec: SegmentSpec, whole: Segment) -> None:
    masked = replace(hidden(spec, whole, [1]), null_values=1)
    (finding,) = (one for one in inspect_segment(ACCESS, masked, None, None) if isinstance(one, Finding))
    assert (finding.kind, finding.path) == (FindingKind.WRONG_METADATA, whole.path)


def test_many_positions_are_few_bytes(spec: SegmentSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    count, chance = 200_000, random.Random(1)
    segment = replace(SEGMENT, path=f"{spec.location}/data/partition=0/x.parquet", records=count, end_offset=count)
    Path(spec.location).mkdir()
    for share, most in ((0.01, 1.5), (0.2, 0.7)):
        positions = BitMap(n for n in range(count) if chance.random() < share)
        written = write_mask(ACCESS, spec, segment, positions, attempt=str(share), acquire=lambda _bytes: None)
        masked = replace(segment, records=count - len(positions), mask=written)
        assert read_mask(ACCESS, masked) == positions
        assert written.size_bytes < most * len(positions) + 2000
