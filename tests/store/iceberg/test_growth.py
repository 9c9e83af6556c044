"""What a commit copies and leaves behind stays bounded, and calls open no more than they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from lithify.columnar.files.access import FileAccess
from lithify.errors import DamagedError
from lithify.model.topic.edit import TopicEdit
from lithify.store.iceberg.layout import METADATA_FILES_KEPT
from lithify.store.iceberg.manifests import adapter
from lithify.store.iceberg.state import log_codec
from lithify.testing.fake_clock import FakeClock
from support.store.builders import NOW_MS, ORDERS, Place, an_iceberg_place, some_records
from support.store.catalogs import NotingFileIO, NotingSource, noted_reads

VERSIONS_KEPT = 4


@pytest.fixture
def noting(tmp_path: Path) -> Place:
    return an_iceberg_place(tmp_path, FakeClock(), NotingSource(str(tmp_path / "warehouse")))


def test_snapshots_tags_and_metadata_stay_few(iceberg: Place) -> None:
    state = iceberg.create(versions_kept=VERSIONS_KEPT)
    sizes = []
    for n in range(90):
        state = iceberg.append(state, some_records(f"{n}"))
        if n % 6 == 5:
            state = iceberg.round(state)
            metadata = Path(state.location.removeprefix("file://")) / "metadata"
            newest = max(metadata.glob("*.metadata.json"))
            sizes.append(newest.stat().st_size)
            text = newest.read_text()
            assert text.count('"manifest-list"') <= VERSIONS_KEPT + 1
            assert text.count('"type":"tag"') <= VERSIONS_KEPT

    assert len(list(metadata.glob("*.metadata.json"))) <= METADATA_FILES_KEPT + 1
    assert sizes[-1] <= sizes[len(sizes) // 2] * 1.05


def test_views_take_a_snapshot_and_a_tag_for_each_version_that_is_kept(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.create(versions_kept=VERSIONS_KEPT)
    for n in range(12):
        state = iceberg.append(state, some_records(f"{n}"))
        state = iceberg.cover(state, share=n % 2 == 0)

    metadata = foreign.load_table(("default", "orders")).metadata
    assert len(metadata.snapshots) == 2 * (VERSIONS_KEPT + 1)
    assert len(metadata.refs) == 2 * (VERSIONS_KEPT + 1)

    state = iceberg.drop_views(state)
    for n in range(VERSIONS_KEPT):
        state = iceberg.round(iceberg.append(state, some_records(f"{n}")))
    metadata = foreign.load_table(("default", "orders")).metadata
    assert len(metadata.snapshots) == len(metadata.refs) == VERSIONS_KEPT + 1


def test_manifests_stay_few_however_many_segments_there_are(noting: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "MANIFESTS_PER_CLASS", 4)
    state = noting.append(noting.create(), some_records("a"))
    (segment,) = noting.store.segments(state)
    opened, by_itself = [], noted_reads(monkeypatch)
    for n in range(1, 80):
        more = replace(segment, path=f"{segment.path}-{n}", base_offset=n, end_offset=n + 1)
        state = noting.store.commit(state, TopicEdit(f"r{n}", NOW_MS, {}, add=(more,)))
        by_itself.clear()
        assert len(noting.store.segments(state)) == n + 1
        opened.append(len(_manifests(by_itself)))

    assert [s.base_offset for s in noting.store.segments(state)] == list(range(80))
    # At most 3 of 1 to 3 files, 3 of up to 15, 3 of up to 63 and one above, and the one just written.
    assert max(opened) <= 11
    assert min(opened[64:]) <= 4


def test_merged_manifests_can_be_taken_apart_again(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.append(iceberg.create(partitions=2), some_records("a"))
    (segment,) = iceberg.store.segments(state)
    all_segments, added = [segment], {segment.path: state.version}
    for n in range(1, 60):
        more = replace(segment, path=f"{segment.path}-{n}", base_offset=n, end_offset=n + 1, partition=n % 2)
        state = iceberg.store.commit(state, TopicEdit(f"r{n}", NOW_MS, {}, add=(more,)))
        all_segments.append(more)
        added[more.path] = state.version

    gone = {n for n in range(60) if n % 7 == 3 or 20 <= n < 40}
    state = iceberg.store.commit(
        state, TopicEdit("round", NOW_MS, {}, remove=tuple(s for s in all_segments if s.base_offset in gone))
    )

    left = sorted(iceberg.store.segments(state), key=lambda s: s.base_offset)
    assert left == [s for s in all_segments if s.base_offset not in gone]
    table = foreign.load_table(("default", "orders"))
    snapshot = table.current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    assert snapshot.summary["total-data-files"] == str(len(left))
    assert snapshot.summary["total-records"] == str(sum(s.records for s in left))
    entries = table.inspect.entries().to_pylist()
    named = [(entry["data_file"]["file_path"], entry["sequence_number"]) for entry in entries if entry["status"] != 2]
    assert sorted(named) == sorted((s.path, added[s.path]) for s in left)  # engines read changes by these
    assert len({entry["snapshot_id"] for entry in entries if entry["status"] != 2}) == len(left)


def test_loading_is_one_metadata_read(noting: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    state = noting.round(noting.append(noting.create(), some_records("a")))
    ((_, token),) = noting.store.change_tokens()
    NotingFileIO.read.clear()
    by_itself = noted_reads(monkeypatch)

    assert noting.store.load(ORDERS) == state

    assert (by_itself, NotingFileIO.read) == ([token], [])


def test_what_was_read_is_not_decoded_again(iceberg: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics of thousands of partitions: a commit reads the states of all logs a few times, and changes few of them."""
    before = iceberg.create(partitions=3)
    after = iceberg.append(before, some_records("a"))
    assert iceberg.store.load(ORDERS) is iceberg.store.load(ORDERS)
    assert [after.log(p) is before.log(p) for p in range(3)] == [False, True, True]
    monkeypatch.setattr(log_codec, "LOG_KEPT_LENGTH", 1)
    again = iceberg.append(after, some_records("b"))
    assert [again.log(p) == after.log(p) for p in range(3)] == [False, True, True]
    assert again.log(2) is not after.log(2)


def test_metadata_that_was_replaced_is_noticed_though_it_was_read_before(iceberg: Place) -> None:
    iceberg.append(iceberg.create(), some_records("a"))
    assert iceberg.store.load(ORDERS).log(0).log_end_offset == 1
    ((_, token),) = iceberg.store.change_tokens()
    file = Path(str(token).removeprefix("file://"))
    whole = file.read_bytes()
    file.write_bytes(whole.replace(rb"{\"end\":1,", rb"{\"end\":7,"))
    with pytest.raises(DamagedError, match="not as the last commit left them"):
        iceberg.store.load(ORDERS)
    file.write_bytes(whole)
    assert iceberg.store.load(ORDERS).log(0).log_end_offset == 1


def test_without_what_a_metadata_file_needs_it_is_read_by_pyiceberg(noting: Place) -> None:
    state = noting.append(noting.create(), some_records("a"))
    ((_, token),) = noting.store.change_tokens()
    Path(str(token).removeprefix("file://")).write_text("{}")
    NotingFileIO.read.clear()

    with pytest.raises(DamagedError, match="metadata cannot be read"):
        noting.store.load(state.name)

    assert NotingFileIO.read == [token]


def test_an_append_opens_no_data_and_no_manifest(noting: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    state = noting.append(noting.append(noting.create(), some_records("a")), some_records("b"))
    state = noting.cover(state)
    monkeypatch.setattr(FileAccess, "open", lambda *_: pytest.fail("an append opened a data file"))
    NotingFileIO.read.clear()
    NotingFileIO.written.clear()

    noting.append(state, some_records("c"))

    assert _manifests_opened() == []
    assert not [path for path in NotingFileIO.read if path.endswith(".parquet")]
    kinds = sorted(Path(path).name.partition("-")[0] == "snap" for path in NotingFileIO.written if ".avro" in path)
    assert kinds == [False, True]  # one manifest, one manifest list
    assert len([path for path in NotingFileIO.read if path.endswith(".metadata.json")]) == 1


def test_listing_what_may_go_reads_each_file_of_metadata_once(noting: Place) -> None:
    state = noting.create()
    for n in range(4):
        state = noting.cover(noting.append(state, some_records(f"{n}")), share=n < 2)
    NotingFileIO.read.clear()

    noting.store.named_files(ORDERS)
    stored = tuple(noting.store.stored_files(state))
    noting.store.closings(state, stored, NOW_MS)

    assert len(NotingFileIO.read) == len(set(NotingFileIO.read))
    assert len([path for path in NotingFileIO.read if path.endswith(".metadata.json")]) == 1


def _manifests_opened() -> list[str]:
    return _manifests(NotingFileIO.read)


def _manifests(read: Sequence[str]) -> list[str]:
    return [path for path in read if path.endswith(".avro") and "/snap-" not in path]
