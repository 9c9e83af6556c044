"""Indexes of keys against a dict: all records of a key are found, others at most by a hash (C12)."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keyindex import building, key_index
from lithify.columnar.keyindex.layout import ENTRY, Named
from lithify.columnar.segment import checked_file
from lithify.columnar.segment.checked_file import CheckedFile
from lithify.columnar.segment.inspect import inspect_segment
from lithify.columnar.segment.schema import KEY
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.columnar.segment.writer import SegmentSpec
from lithify.errors import DamagedError
from lithify.model.finding import Finding
from lithify.model.record import Record
from lithify.model.segment import Segment
from support.generated.indexed_files import every_file_indexed, indexed_segment, weak_hashes

ACCESS = FileAccess()

keys = st.one_of(
    st.none(),
    st.sampled_from([b"", b"a", b"b", b"ab"]),
    st.binary(max_size=40),
    st.binary(min_size=1020, max_size=1030),
)
values = st.sampled_from([b"value", b"", None])
records = st.lists(st.tuples(keys, values), min_size=1, max_size=60)


def segment_of(folder: Path, groups: Sequence[Sequence[tuple[bytes | None, bytes | None]]], **how: object) -> Segment:
    numbered, offset = [], 0
    for group in groups:
        numbered.append([Record(key, value, 0, (), 0, offset + at) for at, (key, value) in enumerate(group)])
        offset += len(group)
    return indexed_segment(folder, numbered, **how)  # type: ignore[arg-type]


def found(segment: Segment, wanted: Sequence[bytes]) -> dict[bytes, list[int]]:
    """The positions of each wanted key that is there, as one who reads by the index finds them."""
    with SegmentReader(ACCESS, segment) as reader:
        index = reader.key_index()
        assert index is not None
        positions = index.candidates(pa.array(wanted, pa.binary()))
        assert (np.diff(positions) > 0).all()
        there = reader.records_at(positions).read([KEY]).column(KEY).combine_chunks()
        index.check(there)
        found: dict[bytes, list[int]] = {}
        for position, key in zip(positions.tolist(), there.to_pylist(), strict=True):
            if key in wanted:
                found.setdefault(key, []).append(position)
        return found


def positions_of(pairs: Sequence[tuple[bytes | None, object]], wanted: Sequence[bytes]) -> dict[bytes, list[int]]:
    positions: dict[bytes, list[int]] = {}
    for position, (key, _) in enumerate(pairs):
        if key is not None and key in wanted:
            positions.setdefault(key, []).append(position)
    return positions


@settings(max_examples=30)
@given(st.lists(records, min_size=1, max_size=3), st.lists(keys.filter(lambda key: key is not None), max_size=8))
@pytest.mark.parametrize("weak", [False, True])
def test_finds_all_records_of_each_key(
    weak: bool, groups: list[list[tuple[bytes, bytes]]], others: list[bytes]
) -> None:
    pairs = [pair for group in groups for pair in group]
    wanted = [*others, *(key for key, _ in pairs[::2] if key is not None)]
    with tempfile.TemporaryDirectory() as folder:
        if not weak:
            segment = segment_of(Path(folder), groups)
        else:
            with weak_hashes():
                segment = segment_of(Path(folder), groups)
        if any(key is not None for key, _ in pairs):
            if not weak:
                assert found(segment, wanted) == positions_of(pairs, wanted)
            else:
                with weak_hashes():
                    assert found(segment, wanted) == positions_of(pairs, wanted)
        with SegmentReader(ACCESS, segment) as reader:
            index = reader.key_index()
            if index is not None:
                nulls, empties = index.deletes()
                expected = [[p for p, (key, v) in enumerate(pairs) if key is not None and v == x] for x in (None, b"")]
                assert [list(nulls), list(empties)] == expected


def test_few_keys_that_are_not_there_are_candidates(tmp_path: Path) -> None:
    segment = segment_of(tmp_path, [[(b"key-%d" % n, b"v") for n in range(20_000)]])
    with SegmentReader(ACCESS, segment) as reader:
        index = reader.key_index()
        assert index is not None
        others = pa.array([b"other-%d" % n for n in range(20_000)], pa.binary())
        assert len(index.candidates(others)) < 100  # one in 65,536 for each key of a bucket
        before = index.bytes_read
        index.candidates(others[:1])
        assert index.bytes_read - before < 1000


@pytest.mark.parametrize("whole_bytes", [0, 2**20])
def test_finds_them_in_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_bytes: int) -> None:
    """Small files are read in one request, others by ranges."""
    pairs = [(b"key-%d" % n, b"v") for n in range(3000)]
    segment = segment_of(tmp_path, [pairs[:1000], pairs[1000:]])
    wanted = [b"key-7", b"key-2999", b"other"]
    monkeypatch.setattr(checked_file, "local_path", lambda _path: None)
    opened = partial(CheckedFile, whole_bytes=whole_bytes)
    monkeypatch.setattr("lithify.columnar.segment.segment_reader.CheckedFile", opened)
    assert found(segment, wanted) == {b"key-7": [7], b"key-2999": [2999]}


def test_small_files_and_very_large_ones_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SegmentReader(ACCESS, segment_of(tmp_path, [[(b"a", b"v")] * 40], indexes_keys=False)) as reader:
        assert reader.key_index() is None
    monkeypatch.setattr(building, "MOST_KEYS", 39)
    segment = segment_of(tmp_path / "many", [[(b"a", b"v")] * 30, [(b"a", b"v")] * 10])
    with SegmentReader(ACCESS, segment) as reader:
        assert reader.key_index() is None
    builder = building.KeyIndexBuilder("few")
    builder.add(pa.array([b"a"] * 100), pa.array([1] * 100, pa.int32()))
    assert builder.write_to(None) is None


def test_a_key_of_too_many_records_is_in_no_index() -> None:
    builder = building.KeyIndexBuilder("same")
    builder.add(pa.array([b"a"] * 2**17), pa.array([1] * 2**17, pa.int32()))
    assert builder.write_to(None) is None  # a bucket counts to 65,535


def test_the_seed_is_that_of_the_file(tmp_path: Path) -> None:
    pairs = [(b"key-%d" % n, b"v") for n in range(100)]
    blocks = []
    for name in ("one", "other"):
        segment = segment_of(tmp_path / name, [pairs])
        blocks.append(block_of(segment)[1])
    assert blocks[0] != blocks[1]


def block_of(segment: Segment) -> tuple[Named, bytes]:
    content = Path(segment.path).read_bytes()
    entry = pq.read_metadata(segment.path).metadata[ENTRY]
    named = Named(*map(int, entry.split()[1:]))
    return named, content[named.start : named.start + named.block_bytes]


def with_bytes(segment: Segment, at: int, new: bytes) -> None:
    path = Path(segment.path)
    content = path.read_bytes()
    path.write_bytes(content[:at] + new + content[at + len(new) :])


@pytest.mark.long
def test_a_changed_byte_is_an_error_or_changes_nothing(tmp_path: Path) -> None:
    pairs = [(b"key-%d" % n, b"v" if n % 9 else None) for n in range(150)]
    segment = segment_of(tmp_path, [pairs])
    content = Path(segment.path).read_bytes()
    wanted = [b"key-%d" % n for n in range(0, 150, 7)]
    expected = positions_of(pairs, wanted)
    deleted = [position for position, (_, value) in enumerate(pairs) if value is None]
    named, block = block_of(segment)
    entry = content.rindex(ENTRY)
    lists_of_pages = named.start + named.block_bytes
    errors = 0
    for at in [*range(named.start, named.start + len(block), 3), *range(lists_of_pages, entry + 60, 5)]:
        with_bytes(segment, at, bytes([content[at] ^ 1 << at % 8]))
        try:
            with SegmentReader(ACCESS, segment) as reader:
                index = reader.key_index()
                assert index is None or list(index.deletes()[0]) == deleted
            assert index is None or found(segment, wanted) == expected, at
        except DamagedError as error:
            assert segment.path in error.message
            errors += 1
        with_bytes(segment, at, content[at : at + 1])
    assert errors > len(block) // 12


@pytest.mark.parametrize(
    "entry",
    [
        "1 4 100 200",
        "1 4 100 200 1 2",
        "1 4 x 200 1",
        "1 4 -5 200 1",
        "1 0 100 100 1",
        "1 {start} 99999999999 99999999999 1",
        "1 {start} 10 {size} 1",
        "1 {start} 200000 300000 1",
        "1 {start} {front} {less} {front_sum}",
        "1 {start} {front} {size} 1",
        "1 99999999999999999999999 1 1 1",
    ],
)
def test_an_entry_that_cannot_be_is_refused(tmp_path: Path, entry: str) -> None:
    segment = segment_of(tmp_path, [[(b"key-%d" % n, b"v") for n in range(300)]])
    named, block = block_of(segment)
    known = {"start": named.start, "front": named.front_bytes, "size": len(block), "less": len(block) - 6}
    file = CheckedFile(ACCESS, segment.path, segment.size_bytes)
    metadata = _Metadata(entry.format(**known, front_sum=named.front_sum).encode(), file.footer.metadata.num_rows)
    object.__setattr__(file.footer, "metadata", metadata)
    with pytest.raises(DamagedError, match="index of keys"):
        key_index.KeyIndex.of(file)


@pytest.mark.parametrize("wrong", ["tags_of", "_bitmap"])
def test_verify_proves_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """C8: an index that was wrong when it was written has right checksums."""
    pairs = [(b"key-%d" % n if n % 5 else None, b"v" if n % 9 else None) for n in range(300)]
    right = segment_of(tmp_path / "right", [pairs[:100], pairs[100:]])
    write = getattr(building, wrong)
    monkeypatch.setattr(
        building, wrong, lambda given, *more: write(given[::-1].copy()[:-1] if not more else given[::-1], *more)
    )
    segment = segment_of(tmp_path / "wrong", [pairs[:100], pairs[100:]])
    assert findings(right) == []
    assert any("its index of keys is wrong about the record at offset" in message for message in findings(segment))


def findings(segment: Segment) -> list[str]:
    return [one.message for one in inspect_segment(ACCESS, segment, None, None) if isinstance(one, Finding)]


class _Metadata:
    def __init__(self, entry: bytes, num_rows: int) -> None:
        self.metadata, self.num_rows = {ENTRY: entry}, num_rows


def test_an_index_of_a_later_version_is_not_read(tmp_path: Path) -> None:
    segment = segment_of(tmp_path, [[(b"key-%d" % n, b"v") for n in range(300)]])
    content = Path(segment.path).read_bytes()
    value = pq.read_metadata(segment.path).metadata[ENTRY]
    with_bytes(segment, content.rindex(value), b"2")
    with SegmentReader(ACCESS, segment) as reader:
        assert reader.key_index() is None
        assert reader.read(0, [KEY]).num_rows == 300


def test_other_readers_pass_over_the_index(tmp_path: Path) -> None:
    pairs = [(b"key-%d" % n, b"v" * (n % 50)) for n in range(5000)]
    plain, indexed = (segment_of(tmp_path / str(which), [pairs] * 1, indexes_keys=which) for which in (False, True))
    assert indexed.size_bytes > plain.size_bytes
    expected = pq.read_table(plain.path)
    assert pq.read_table(indexed.path).equals(expected)
    for path in (plain.path, indexed.path):
        rows = duckdb.sql(f"SELECT key, value FROM read_parquet('{path}') WHERE \"offset\" >= 4990 ORDER BY ALL")
        assert sorted(rows.fetchall()) == sorted(pairs[4990:])
    assert plain.records == indexed.records and plain.max_key == indexed.max_key


def test_a_spec_says_whether_keys_are_indexed(tmp_path: Path) -> None:
    with every_file_indexed():
        assert not SegmentSpec(str(tmp_path), "run", 0, 2**40, "zstd").indexes_keys
