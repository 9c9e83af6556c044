"""Masks in manifests: every reader of Iceberg leaves out exactly the records that Lithify does (C6).

What a version has is told by PyIceberg's scan of the table, and by the store's segments with their masks, of which
each file is read without either.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFileContent
from pyiceberg.table.snapshots import Operation

from lithify.errors import DamagedError, RunExpiredError
from lithify.model.formats.features import MASKS
from lithify.model.segment import Segment
from lithify.model.stored_file import FileKind
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.sweeping import run_of
from lithify.service.commit import check_written
from lithify.store.iceberg.catalog.embedded import EmbeddedCatalog
from lithify.store.iceberg.manifests import adapter
from lithify.store.iceberg.manifests.mask_entries import MaskEntry, mask_file, mask_of, masked
from lithify.store.iceberg.salvage import IcebergSalvage
from lithify.testing.fake_clock import FakeClock
from support.store.builders import NOW_MS, ORDERS, Place, a_view, an_iceberg_place, some_records
from support.store.catalogs import NotingFileIO, NotingSource, noted_reads
from support.store.masks import no_longer_named, offsets_left, with_mask

TABLE = ("default", "orders")
Segments = tuple[Segment, ...]


def scanned(foreign: Catalog, ref: str = "main") -> list[tuple[int, int]]:
    """Partition and offset of every row that PyIceberg finds."""
    table = foreign.load_table(TABLE)
    scan = table.scan(snapshot_id=table.metadata.refs[ref].snapshot_id, selected_fields=("partition", "offset"))
    return sorted((row["partition"], row["offset"]) for row in scan.to_arrow().to_pylist())


def edited(place: Place, state: TopicState, add: Segments = (), remove: Segments = ()) -> TopicState:
    edit = TopicEdit(place.clock.new_id(), NOW_MS, {}, add=add, remove=remove, verb=Verb.COMPACT)
    return place.store.commit(state, edit)


@pytest.fixture
def state(iceberg: Place) -> TopicState:
    """Three segments of five records each."""
    state = iceberg.create(versions_kept=3)
    for n in range(3):
        state = iceberg.append(state, some_records(*"abcde", value=f"{n}"))
    return state


def live_entries(foreign: Catalog) -> dict[str, tuple[int, int, str]]:
    """By the name of a file, its sequence number, content, and the manifest that has it."""
    table = foreign.load_table(TABLE)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return {
        entry.data_file.file_path: (entry.sequence_number or 0, int(entry.data_file.content), manifest.manifest_path)
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    }


def deleted_entries(foreign: Catalog) -> list[str]:
    """The files that the newest snapshot says it has removed."""
    table = foreign.load_table(TABLE)
    entries = table.inspect.entries().to_pylist()
    newest = table.metadata.current_snapshot_id
    return sorted(e["data_file"]["file_path"] for e in entries if e["status"] == 2 and e["snapshot_id"] == newest)


def totals(foreign: Catalog) -> dict[str, int]:
    snapshot = foreign.load_table(TABLE).current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    said = {name: snapshot.summary[name] for name in snapshot.summary.additional_properties}
    return {name: int(value) for name, value in said.items() if value.isdecimal() and "lithify" not in name}


def test_masks_come_change_and_go_and_segments_stay(iceberg: Place, state: TopicState, foreign: Catalog) -> None:
    old = iceberg.store.segments(state)
    before = live_entries(foreign)

    first = tuple(with_mask(segment, [1, 3]) for segment in old[:2])
    state = edited(iceberg, state, first, old[:2])

    assert iceberg.store.segments(state) == (*first, old[2])
    assert scanned(foreign) == offsets_left((*first, old[2]))
    assert (state.features, state.format_version) == ((MASKS,), 4)
    assert {path: entry for path, entry in live_entries(foreign).items() if entry[1] == 0} == before
    assert no_longer_named(state.location, state.version - 1) == []
    said = totals(foreign)
    assert (said["total-records"], said["total-data-files"], said["total-delete-files"]) == (15, 3, 2)
    assert (said["added-position-deletes"], said["total-position-deletes"], said["added-delete-files"]) == (4, 4, 2)
    assert said["total-files-size"] == sum(
        s.size_bytes + (s.mask.size_bytes if s.mask else 0) for s in (*first, old[2])
    )

    second = (with_mask(first[0], [0, 1, 3]),)
    state = edited(iceberg, state, second, first[:1])

    assert iceberg.store.segments(state) == (*second, first[1], old[2])
    assert scanned(foreign) == offsets_left((*second, first[1], old[2]))
    assert {path: entry for path, entry in live_entries(foreign).items() if entry[1] == 0} == before
    assert no_longer_named(state.location, state.version - 1) == [first[0].id]
    assert deleted_entries(foreign) == [first[0].id]
    said = totals(foreign)
    assert (said["total-position-deletes"], said["added-position-deletes"], said["removed-position-deletes"]) == (
        5,
        3,
        2,
    )
    assert (said["total-delete-files"], said["removed-delete-files"]) == (2, 1)

    state = edited(iceberg, state, (), (first[1],))

    assert iceberg.store.segments(state) == (*second, old[2])
    assert scanned(foreign) == offsets_left((*second, old[2]))
    assert no_longer_named(state.location, state.version - 1) == sorted([first[1].path, first[1].id])
    assert deleted_entries(foreign) == sorted([first[1].path, first[1].id])
    said = totals(foreign)
    assert (said["total-position-deletes"], said["total-delete-files"], said["total-records"]) == (3, 1, 10)
    assert (said["removed-delete-files"], said["deleted-data-files"]) == (1, 1)


def test_the_last_mask_goes(iceberg: Place, state: TopicState, foreign: Catalog) -> None:
    old = iceberg.store.segments(state)
    masks = (with_mask(old[0], [1, 3]),)
    state = edited(iceberg, state, masks, old[:1])

    state = edited(iceberg, state, old[:1], masks)

    assert iceberg.store.segments(state) == old
    assert scanned(foreign) == offsets_left(old)
    assert deleted_entries(foreign) == [masks[0].id]
    assert {name: total for name, total in totals(foreign).items() if name.startswith("total-")} == {
        "total-data-files": 3,
        "total-delete-files": 0,
        "total-equality-deletes": 0,
        "total-files-size": sum(segment.size_bytes for segment in old),
        "total-position-deletes": 0,
        "total-records": 15,
    }
    assert state.features == (MASKS,)  # a kept version has some


def test_a_version_that_is_kept_has_its_masks(iceberg: Place, state: TopicState, foreign: Catalog) -> None:
    segments = iceberg.store.segments(state)
    was = {state.version: segments}
    for dead in ([0], [0, 1], [0, 1, 2]):
        new = (with_mask(segments[0], dead), *segments[1:])
        state = edited(iceberg, state, new[:1], segments[:1])
        segments = was[state.version] = new

    for kept in iceberg.store.versions(ORDERS):
        past = iceberg.store.load_version(ORDERS, kept.version)
        assert iceberg.store.segments(past) == was[kept.version]
        assert scanned(foreign, f"lithify-{kept.version}") == offsets_left(was[kept.version])


def test_what_was_gone_is_added_again_with_its_mask(iceberg: Place, state: TopicState, foreign: Catalog) -> None:
    """As an undo does: Iceberg applies no mask to a segment that was added later."""
    old = iceberg.store.segments(state)
    masks = tuple(with_mask(segment, [2, 4]) for segment in old)
    state = edited(iceberg, state, masks, old)
    state = edited(iceberg, state, (), masks[:2])
    other = with_mask(masks[2], [0, 2, 4])
    state = edited(iceberg, state, (other,), masks[2:])

    state = edited(iceberg, state, masks, (other,))

    assert iceberg.store.segments(state) == masks
    assert scanned(foreign) == offsets_left(masks)
    assert totals(foreign)["total-position-deletes"] == 6
    entries = live_entries(foreign)
    assert all(entries[s.id][0] >= entries[s.path][0] for s in masks)


def test_what_an_edit_removes_and_adds_alike_stays(iceberg: Place, state: TopicState, foreign: Catalog) -> None:
    masks = tuple(with_mask(segment, [2, 4]) for segment in iceberg.store.segments(state))
    state = edited(iceberg, state, masks, iceberg.store.segments(state))
    before = live_entries(foreign)

    state = edited(iceberg, state, masks, masks)

    assert iceberg.store.segments(state) == masks
    assert live_entries(foreign) == before


def test_segments_that_come_with_masks_are_more_than_an_append(iceberg: Place, foreign: Catalog) -> None:
    """As in a replica: a reader of Iceberg that takes the files of appends alone would read masked records."""
    state = iceberg.append(iceberg.create(), some_records(*"abc"))
    old = iceberg.store.segments(state)
    state = iceberg.store.commit(state, TopicEdit("r1", NOW_MS, {}, remove=old))
    masks = (with_mask(old[0], [1]),)
    state = iceberg.store.commit(state, TopicEdit("r2", NOW_MS, {}, add=masks))

    snapshot = foreign.load_table(TABLE).current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    assert snapshot.summary.operation is Operation.OVERWRITE
    assert scanned(foreign) == offsets_left(masks)


def test_any_row_of_edits_is_read_alike(iceberg: Place, foreign: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what merged manifests name, of which an entry goes later."""
    monkeypatch.setattr(adapter, "MANIFESTS_PER_CLASS", 3)
    chance = random.Random(28)
    state = iceberg.create(partitions=2, versions_kept=40)
    history: list[Segments] = [()]
    for n in range(40):
        segments = list(iceberg.store.segments(state))
        if n % 3 == 0:
            records = [record._replace(partition=n % 2) for record in some_records(*"abcdefgh")]
            state = iceberg.append(state, records)
        elif n % 13 == 12:
            back = history[-4]
            gone = {s.id for s in back}
            now = {s.id for s in segments}
            state = edited(
                iceberg,
                state,
                tuple(s for s in back if s.id not in now),
                tuple(s for s in segments if s.id not in gone),
            )
        else:
            changed = tuple(chance.sample(segments, min(len(segments), 3)))
            new = tuple(_other(segment, chance) for segment in changed if chance.random() < 0.9)
            state = edited(iceberg, state, new, changed)
        history.append(iceberg.store.segments(state))
        assert scanned(foreign) == offsets_left(history[-1])
        if n % 8 == 7:
            read = [(p, record.offset) for p in (0, 1) for record in iceberg.records(state, p)]
            assert read == offsets_left(history[-1])
        said = totals(foreign)
        deletes = [s.mask.dead for s in history[-1] if s.mask is not None]
        assert (said["total-delete-files"], said["total-position-deletes"]) == (len(deletes), sum(deletes))
        assert said["total-records"] == sum(s.records_in_file for s in history[-1])

    table = foreign.load_table(TABLE)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    by_content = [m for m in manifests if m.has_existing_files() or m.has_added_files()]
    for manifest in by_content:
        kinds = {entry.data_file.content == DataFileContent.DATA for entry in manifest.fetch_manifest_entry(table.io)}
        assert kinds == {int(manifest.content) == 0}
    assert len(by_content) < 14
    for kept in iceberg.store.versions(ORDERS)[:12]:
        past = iceberg.store.segments(iceberg.store.load_version(ORDERS, kept.version))
        assert past == history[kept.version - 1]
        assert scanned(foreign, f"lithify-{kept.version}") == offsets_left(past)
        assert {s for p in (0, 1) for s in iceberg.store.segments(state, [p])} == set(history[-1])


def _other(segment: Segment, chance: random.Random) -> Segment:
    """The same with another mask, or with none."""
    if segment.mask is not None and chance.random() < 0.2:
        return segment.unmasked
    return with_mask(segment, chance.sample(range(segment.records_in_file), chance.randint(1, 7)))


def test_a_view_masks_what_the_log_does_not(iceberg: Place, state: TopicState, foreign: Catalog) -> None:
    old = iceberg.store.segments(state)

    def covered(state: TopicState, add: Segments, remove: Segments, view: Segments) -> TopicState:
        log = replace(state.log(0), first_dirty_offset=15, view=a_view(view)).with_run(run := iceberg.clock.new_id())
        edit = TopicEdit(run, NOW_MS, {0: log}, view_add=add, view_remove=remove, verb=Verb.COMPACT)
        return iceberg.store.commit(state, edit)

    view = (with_mask(old[0], [0, 1]), *old[1:])
    state = covered(state, view, (), view)
    assert (iceberg.store.segments(state), iceberg.store.view(state)) == (old, view)
    assert (scanned(foreign), scanned(foreign, "compacted")) == (offsets_left(old), offsets_left(view))

    after = (with_mask(old[0], [0, 1, 2]), with_mask(old[1], [3]), old[2])
    state = covered(state, after[:2], view[:2], after)
    assert (iceberg.store.segments(state), iceberg.store.view(state)) == (old, after)
    assert scanned(foreign, "compacted") == offsets_left(after)
    assert no_longer_named(state.location, state.version - 1) == [view[0].id]

    state = iceberg.drop(state, old[:1])
    assert no_longer_named(state.location, state.version - 1) == []  # the view has it

    state = covered(state, (), after[:1], after[1:])
    assert no_longer_named(state.location, state.version - 1) == sorted([after[0].path, after[0].id])


@pytest.mark.parametrize("wrong", ["no mask", "another mask", "a mask"])
def test_only_the_segment_that_is_there_is_removed(iceberg: Place, state: TopicState, wrong: str) -> None:
    old = iceberg.store.segments(state)
    if wrong != "a mask":
        state = edited(iceberg, state, (with_mask(old[0], [1]),), old[:1])
    absent = old[0] if wrong == "no mask" else with_mask(old[0], [2])

    with pytest.raises(ValueError, match=absent.id):
        edited(iceberg, state, (), (absent,))

    assert iceberg.store.load(ORDERS) == state


def test_masks_are_one_manifest_more_and_an_append_opens_none(tmp_path: Path) -> None:
    place = an_iceberg_place(tmp_path, FakeClock(), NotingSource(str(tmp_path / "warehouse")))
    state = place.create(partitions=2)
    for partition in (0, 1):
        state = place.append(state, [r._replace(partition=partition) for r in some_records("a", "b")])
    old = place.store.segments(state)
    opened = _opened(lambda: place.store.segments(state))

    masked_state = edited(place, state, (with_mask(old[0], [1]),), old[:1])

    assert _opened(lambda: place.store.segments(masked_state)) == opened + 1
    assert _opened(lambda: place.store.segments(masked_state, [1])) == opened - 1
    assert _opened(lambda: place.append(masked_state, some_records("f"))) == 1  # the list alone


def _opened(call: Callable[[], object]) -> int:
    NotingFileIO.read.clear()
    with pytest.MonkeyPatch.context() as patched:
        by_itself = noted_reads(patched)
        call()
    return len([path for path in (*NotingFileIO.read, *by_itself) if path.endswith(".avro")])


@pytest.mark.engines
def test_duckdb_reads_the_same(
    iceberg: Place, state: TopicState, foreign: Catalog, in_duckdb: Callable[..., Any]
) -> None:
    old = iceberg.store.segments(state)
    masks = tuple(with_mask(segment, [0, 4]) for segment in old)
    state = edited(iceberg, state, masks, old)
    state = edited(iceberg, state, (with_mask(masks[0], [0, 1, 4]),), masks[:2])
    state = edited(iceberg, state, masks[1:2])

    where = foreign.load_table(TABLE).metadata_location
    (rows,) = in_duckdb([f"SELECT partition, \"offset\" FROM iceberg_scan('{where}')"])
    assert rows == offsets_left(iceberg.store.segments(state)) == scanned(foreign)


def test_two_masks_of_a_segment_are_damage(iceberg: Place, state: TopicState) -> None:
    old = iceberg.store.segments(state)
    state = edited(iceberg, state, (with_mask(old[0], [1]),), old[:1])
    state = edited(iceberg, state, (with_mask(old[0], [2]),))

    with pytest.raises(DamagedError, match="second mask"):
        iceberg.store.segments(state)


def test_a_mask_of_no_segment_and_what_other_programs_delete_are_damage(iceberg: Place, state: TopicState) -> None:
    old = iceberg.store.segments(state)
    segment = with_mask(old[0], [1])
    assert segment.mask is not None
    file = mask_file(segment, segment.mask)
    assert mask_of(file) == MaskEntry(segment.path, segment.mask)
    assert masked(old, [mask_of(file)]) == [segment, *old[1:]]
    with pytest.raises(DamagedError, match="does not reference"):
        masked(old[1:], [mask_of(file)])

    for changes in ({0: DataFileContent.EQUALITY_DELETES}, {10: {2147483546: b"z"}}, {9: None, 10: None}):
        other = mask_file(segment, segment.mask)
        for at, value in changes.items():
            other[at] = value
        with pytest.raises(DamagedError, match=f"{segment.mask.path}: it deletes rows in another way"):
            mask_of(other)


def test_a_commit_checks_the_mask_that_it_writes(iceberg: Place, state: TopicState) -> None:
    """C45: not that the run which wrote the segment may still commit, as it did long ago."""
    warehouse = Warehouse(iceberg.store, iceberg.files, iceberg.clock)
    old = iceberg.store.segments(state)
    new = with_mask(old[0], [1], "mine")
    edit = TopicEdit("mine", NOW_MS, {}, add=(new,), remove=old[:1], written=(new,))
    check_written(warehouse, replace(state, abandoned=(run_of(old[0].path),)), edit)
    with pytest.raises(RunExpiredError, match="mine"):
        check_written(warehouse, replace(state, abandoned=("mine",)), edit)

    Path(new.id.removeprefix("file://")).unlink()
    with pytest.raises(DamagedError, match=new.id):
        check_written(warehouse, state, edit)


def test_sweeps_know_masks_by_name_and_by_record(iceberg: Place, state: TopicState) -> None:
    old = iceberg.store.segments(state)
    first, second = with_mask(old[0], [1], "run1"), with_mask(old[0], [1, 2], "run2")
    state = edited(iceberg, state, (first,), old[:1])
    state = edited(iceberg, state, (second,), (first,))

    stored = {file.path: file for file in iceberg.store.stored_files(state)}
    named = iceberg.store.named_files(ORDERS)

    for segment, run in ((first, "run1"), (second, "run2")):
        assert (stored[segment.id].kind, stored[segment.id].run_id) == (FileKind.OUTPUT, run)
        assert segment.id in named.needed  # one of them by a version that is kept
    closings = iceberg.store.closings(state, tuple(stored.values()), NOW_MS)
    assert closings[first.id].was_named and second.id not in closings
    assert iceberg.store.versions(ORDERS)[0].no_longer_named_bytes == first.mask.size_bytes  # type: ignore[union-attr]
    iceberg.store.delete_files(state, [first.id])
    assert not Path(first.id.removeprefix("file://")).exists()


def test_what_is_left_of_a_topic_has_its_masks(iceberg: Place, state: TopicState, foreign: Catalog) -> None:
    """One that is lost gives its segment all records back; none is taken for a segment of its own."""
    source = EmbeddedCatalog(str(Path(state.location.removeprefix("file://")).parents[1]))
    old = iceberg.store.segments(state)
    masks = tuple(with_mask(segment, [1]) for segment in old)
    state = edited(iceberg, state, masks, old)
    for segment in (masks[0].id, masks[1].path):
        Path(segment.removeprefix("file://")).unlink()
    foreign.drop_table(TABLE)

    left = IcebergSalvage(source).remains(ORDERS, None, None)

    assert left.named == (old[0], masks[2])
    assert sorted(left.missing) == sorted([masks[0].id, masks[1].path])
    assert (left.unnamed, left.unreadable) == ((), ())

    IcebergSalvage(source).rebuild(state, left.named, left.identities, left.current)

    again = iceberg.store.load(ORDERS)
    assert (again.features, again.format_version) == ((MASKS,), 4)
    assert iceberg.store.segments(again) == left.named
    assert scanned(foreign) == offsets_left(left.named)
