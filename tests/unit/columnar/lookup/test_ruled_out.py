"""Segments that an index of keys rules out: without parsing a footer, and never one that may have the key (C8, C12)."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keyindex.layout import ENTRY, named_in
from lithify.columnar.lookup.latest import latest_of_key
from lithify.columnar.lookup.ruled_out import is_ruled_out
from lithify.columnar.parquet.footer import read_footer
from lithify.columnar.segment.checked_file import OWN_PATH
from lithify.columnar.segment.convert import to_records
from lithify.errors import DamagedError
from lithify.model.record import Record
from lithify.model.replicas.file_names import copied_name
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState
from lithify.rules.compaction.survivor_rules import table_rules
from support.generated.indexed_files import indexed_segment
from support.topics.stored_topics import ACCESS

COUNT = 3_000
RECORDS = [Record(b"k%04d" % n, b"v%d" % n, n, (("h", b"x"),) if n % 7 == 0 else (), 0, n) for n in range(COUNT)]
ABSENT = b"k1000-"
"""Between two others, so that bounds do not rule it out."""


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    return indexed_segment(tmp_path / "orders", [RECORDS[:2_000], RECORDS[2_000:]])


def found(segment: Segment, key: bytes) -> list[Record]:
    rules = table_rules(LogState(0, log_end_offset=COUNT), TopicSettings())
    table = latest_of_key(ACCESS, [segment], rules, key)
    return [] if table is None else list(to_records(table))


@pytest.fixture
def no_footer_is_parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr("lithify.columnar.segment.checked_file.read_footer", lambda _: pytest.fail("a footer is parsed"))
        yield


@pytest.mark.usefixtures("no_footer_is_parsed")
def test_a_segment_without_the_key_is_ruled_out(segment: Segment) -> None:
    assert is_ruled_out(ACCESS, segment, ABSENT)
    assert found(segment, ABSENT) == []


def test_a_segment_with_the_key_is_not(segment: Segment) -> None:
    for record in (RECORDS[0], RECORDS[1_023], RECORDS[1_024], RECORDS[2_000], RECORDS[-1]):
        assert record.key is not None
        assert not is_ruled_out(ACCESS, segment, record.key)
        assert found(segment, record.key) == [record]


def test_a_segment_that_was_written_to_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files there are Python's to Arrow, which then counts by itself where its next page begins."""

    def create(_: FileAccess, path: str) -> BinaryIO:
        Path(path).parent.mkdir(parents=True)
        return Path(path).open("wb")

    monkeypatch.setattr(FileAccess, "create", create)
    segment = indexed_segment(tmp_path / "orders", [RECORDS[:2_000], RECORDS[2_000:]])
    assert is_ruled_out(ACCESS, segment, ABSENT)
    assert found(segment, b"k1500") == [RECORDS[1_500]]


def test_a_segment_without_an_index_is_not(tmp_path: Path) -> None:
    segment = indexed_segment(tmp_path / "orders", [RECORDS], indexes_keys=False)
    assert not is_ruled_out(ACCESS, segment, ABSENT)
    assert found(segment, ABSENT) == []


def test_a_segment_without_an_index_is_not_asked_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its manifest says that it has none: the footer is read once, by who reads its keys."""
    segment, opened = indexed_segment(tmp_path / "orders", [RECORDS], indexes_keys=False), []
    really = FileAccess.open
    monkeypatch.setattr(FileAccess, "open", lambda self, path: (opened.append(path), really(self, path))[1])
    assert found(segment, b"k1500") == [RECORDS[1_500]]
    assert opened == [segment.path]


def test_a_copy_in_a_replica_is_ruled_out_as_its_source_is(segment: Segment, tmp_path: Path) -> None:
    """C65: the file names the path that it was written to first."""
    path = tmp_path / "copied" / "data" / "partition=0" / copied_name(segment.path, "copy")
    path.parent.mkdir(parents=True)
    shutil.copy(segment.path, path)
    copy = replace(segment, path=str(path))
    assert is_ruled_out(ACCESS, copy, ABSENT)
    assert not is_ruled_out(ACCESS, copy, b"k0001")


def test_another_file_in_its_place_rules_out_nothing(segment: Segment, tmp_path: Path) -> None:
    others = [record._replace(key=b"x" + (record.key or b"")) for record in RECORDS]
    other = indexed_segment(tmp_path / "others", [others[:2_000], others[2_000:]])
    shutil.copy(other.path, segment.path)
    size = Path(other.path).stat().st_size
    in_its_place = replace(segment, size_bytes=size)
    for key in (b"k0001", ABSENT):
        assert not is_ruled_out(ACCESS, in_its_place, key)
        with pytest.raises(DamagedError, match="is a copy of"):
            found(in_its_place, key)


@pytest.mark.parametrize("changed", [{"size_bytes": 7}, {"records": COUNT - 1}])
def test_a_file_of_another_size_than_the_metadata_says_is_named(segment: Segment, changed: dict[str, int]) -> None:
    with pytest.raises(DamagedError, match="but the metadata has"):
        found(replace(segment, **changed), ABSENT)  # type: ignore[arg-type]


def test_what_a_producer_writes_into_keys_is_no_index(tmp_path: Path) -> None:
    """Bounds of keys are in the footer: here with all that names an index, of a file of another topic."""
    other = indexed_segment(tmp_path / "others", [RECORDS])
    with ACCESS.open(other.path) as source:
        named = named_in(read_footer(source))
    assert named is not None
    own = str(Path(other.path).relative_to(tmp_path))
    entries = [(ENTRY, named.entry()), (OWN_PATH.encode(), own.encode())]
    forged = b"".join(b"\x18%c%s\x18%c%s\x00" % (len(name), name, len(text), text) for name, text in entries)
    given = [Record(b"a" + forged, b"v", 1, (), 0, 0), Record(b"b" + forged, b"v", 1, (), 0, 1)]
    segment = indexed_segment(tmp_path / "orders", [given], indexes_keys=False)
    assert forged in Path(segment.path).read_bytes()[-4_000:]
    assert not is_ruled_out(ACCESS, segment, b"a" + forged)
    assert found(segment, b"a" + forged) == given[:1]


@pytest.mark.long
def test_a_wrong_byte_is_named_or_changes_nothing(segment: Segment) -> None:
    """C8: in the index, in the lists of pages and in the footer, where most of what a lookup reads lies."""
    path, chance = Path(segment.path), random.Random(1)
    content = path.read_bytes()
    with ACCESS.open(segment.path) as source:
        named = named_in(read_footer(source))
    assert named is not None
    outcomes = {"right": 0, "damaged": 0}
    for place in chance.choices(range(named.start, len(content)), k=400):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :])
        record = RECORDS[chance.choice([0, 1_500, 2_500])]
        try:
            assert found(segment, record.key or b"") == [record]
            assert found(segment, ABSENT) == []
            outcomes["right"] += 1
        except DamagedError as error:
            assert path.name in str(error)
            outcomes["damaged"] += 1
    assert min(outcomes.values()) > 20, outcomes
