"""What files and manifests say of whole entries: whether all of them are chunks (C53, C66)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lithify.columnar.segment import writer
from lithify.columnar.segment.chunk_keys import chunk_keys
from lithify.columnar.segment.facts import wrong_facts
from lithify.columnar.segment.inspect import inspect_segment
from lithify.columnar.segment.schema import ENVELOPE_SCHEMA
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.model.finding import Finding
from lithify.model.segment import Segment
from lithify.store.iceberg.manifests.segment_entries import data_file, segment_of
from support.builders import a_log, with_id
from support.generated.indexed_files import every_file_indexed
from support.topics.stored_topics import ACCESS, segment_table, write_segments

CASES = [
    ("a=1 □=x b=2", False, 0),
    ("a=1 b=2", False, 0),
    ("□a=x", True, 1),
    ("□a=x c=1 □·=x b=1 □''=x", True, 3),
    ("□a=x c=1 c=2 c=3 □=x", False, 0),
    ("□=x c=1 c=2 c=3 □a=x", False, 0),
    ("a=1 b=1 c=1 d=1 □a=x", True, 1),
]


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch):
    monkeypatch.setattr(writer, "ROW_GROUP_RECORDS", 2)


def stored(folder: Path, drawn: str) -> Segment:
    records = [with_id(record) for record in a_log(drawn).records]
    (segment,) = write_segments(folder, "run", records, schema=ENVELOPE_SCHEMA)
    return segment


@pytest.mark.parametrize(("drawn", "only_chunks", "chunks"), CASES)
def test_a_footer_and_a_manifest_say_whether_all_whole_entries_are_chunks(tmp_path, drawn, only_chunks, chunks):
    segment = stored(tmp_path, drawn)
    passed = drawn.count("□")
    assert (segment.only_chunks, segment.chunks, segment.sealed) == (only_chunks, chunks, passed - chunks)
    again = segment_of(data_file(segment))
    assert (again, again.only_chunks) == (segment, only_chunks)
    with SegmentReader(ACCESS, segment) as reader:
        assert reader.facts().only_chunks is only_chunks
        assert list(wrong_facts(segment, reader.facts())) == []


@pytest.mark.parametrize("indexes_keys", [True, False])
def test_a_footer_and_a_manifest_say_whether_keys_are_indexed(tmp_path, indexes_keys):
    with every_file_indexed():
        (segment,) = write_segments(tmp_path, "run", a_log("a=1 b=2").records, indexes_keys=indexes_keys)
    assert segment.keys_indexed is indexes_keys
    assert segment_of(data_file(segment)).keys_indexed is indexes_keys
    silent = replace(segment, keys_indexed=False)
    with SegmentReader(ACCESS, segment) as reader:
        assert list(wrong_facts(silent, reader.facts())) == []
        lying = list(wrong_facts(replace(segment, keys_indexed=True), reader.facts()))
    assert [one.message.partition(": ")[2] for one in lying] == (
        [] if indexes_keys else ["keys_indexed is False, but the metadata has True"]
    )


def test_a_manifest_of_an_earlier_version_does_not_say_it_and_is_right(tmp_path):
    """C66: all its whole entries may hide any key, then; a manifest that says too much is found."""
    segment = stored(tmp_path, "□a=x b=1")
    file = data_file(segment)
    file.lower_bounds.pop(13)
    early = segment_of(file)
    assert (early == segment, early.chunks, early.sealed) == (True, 0, 1)
    with SegmentReader(ACCESS, early) as reader:
        assert list(wrong_facts(early, reader.facts())) == []
    sealed = replace(stored(tmp_path / "sealed", "□=x b=1"), only_chunks=True)
    with SegmentReader(ACCESS, sealed) as reader:
        (finding,) = wrong_facts(sealed, reader.facts())
    assert "only_chunks is False, but the metadata has True" in finding.message


def test_a_footer_that_says_too_much_is_found(tmp_path, monkeypatch):
    """C53, C8: `verify` looks at every entry."""
    monkeypatch.setattr("lithify.columnar.segment.writer.has_only_chunks", lambda _: True)
    segment = stored(tmp_path, "□=x b=1 □a=x")
    assert segment.only_chunks
    found = [piece for piece in inspect_segment(ACCESS, segment, [], None) if isinstance(piece, Finding)]
    assert ["it has a whole entry that is not a chunk" in finding.message for finding in found] == [True]


def test_the_keys_of_chunks_as_a_column():
    records = [with_id(r) for r in a_log("□a=x b=1 □=x □·=x □''=x").records]
    assert chunk_keys(segment_table(records, ENVELOPE_SCHEMA)).to_pylist() == [b"a", None, None, None, b""]
    assert chunk_keys(ENVELOPE_SCHEMA.empty_table()).type == pa.binary()
