"""The branch of the compacted views: read by anyone, moved in one swap with main, missed when it is gone (C8, C33)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from lithify.errors import DamagedError
from lithify.model.record import Record
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.change.alter import uncompact
from lithify.store.iceberg.catalog.embedded import EmbeddedCatalog
from lithify.testing.fake_clock import FakeClock
from support.store.builders import NOW_MS, ORDERS, Place, an_iceberg_place, some_records

ORDERS_TABLE = ("default", "orders")


@pytest.fixture
def state(iceberg: Place) -> TopicState:
    """Offsets 0 to 4 in the backlog, 2 and 3 in the view; two rounds, of which the first kept 0 to 2."""
    state = iceberg.cover(iceberg.append(iceberg.create(), some_records("a", "b", "c")))
    state = iceberg.append(state, some_records("b"))
    state = iceberg.cover(state, keep=lambda record: record.offset in (2, 3))
    return iceberg.append(state, some_records("d"))


def offsets(table: Table, ref: str) -> list[int]:
    rows = table.scan(snapshot_id=table.metadata.refs[ref].snapshot_id).to_arrow()
    return sorted(rows.column("offset").to_pylist())


def test_anyone_reads_the_log_the_view_and_those_of_kept_versions(
    iceberg: Place, foreign: Catalog, state: TopicState
) -> None:
    table = foreign.load_table(ORDERS_TABLE)
    newest, before = (kept.version for kept in iceberg.store.versions(ORDERS))

    assert offsets(table, "main") == [0, 1, 2, 3, 4]
    assert offsets(table, "compacted") == [2, 3]
    assert (offsets(table, f"lithify-{newest}"), offsets(table, f"lithify-{newest}-view")) == ([0, 1, 2, 3], [0, 1, 2])
    assert offsets(table, f"lithify-{before}") == [0, 1, 2]
    assert f"lithify-{before}-view" not in table.metadata.refs


@pytest.mark.engines
def test_duckdb_reads_the_log_and_the_view(iceberg: Place, foreign: Catalog, state: TopicState, in_duckdb: Any) -> None:
    table = foreign.load_table(ORDERS_TABLE)
    snapshots = [table.metadata.refs[ref].snapshot_id for ref in ("main", "compacted")]
    scans = [f"iceberg_scan('{table.metadata_location}', snapshot_from_id={snapshot})" for snapshot in snapshots]

    log, view = in_duckdb([f'SELECT "offset" FROM {scan}' for scan in scans])

    assert (log, view) == ([(0,), (1,), (2,), (3,), (4,)], [(2,), (3,)])


def test_both_snapshots_of_a_commit_have_the_version_for_sequence_number(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.cover(iceberg.append(iceberg.create(), some_records("a")))
    state = iceberg.cover(iceberg.append(state, some_records("b")))

    metadata = foreign.load_table(ORDERS_TABLE).metadata

    main, view = metadata.snapshot_by_name("main"), metadata.snapshot_by_name("compacted")
    assert main is not None and view is not None and view.summary is not None
    assert main.sequence_number == view.sequence_number == metadata.last_sequence_number == state.version
    assert metadata.current_snapshot() == main
    assert view.parent_snapshot_id is None  # only then may it have the number that main's has
    assert (view.summary["total-data-files"], view.summary["total-records"]) == ("1", "2")
    assert view.summary["lithify.run"] == state.log(0).run_ids[-1]


def test_there_is_no_branch_without_a_view(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.append(iceberg.create(), some_records("a"))
    assert set(foreign.load_table(ORDERS_TABLE).metadata.refs) == {"main"}

    state = iceberg.drop_views(iceberg.cover(state))
    assert "compacted" not in foreign.load_table(ORDERS_TABLE).metadata.refs

    state = iceberg.append(state, some_records("b"))
    assert len(foreign.load_table(ORDERS_TABLE).metadata.snapshots) == 4  # main, its two kept versions, the kept view


def remove_branch(table: Table) -> None:
    table.manage_snapshots().remove_branch("compacted").commit()


def set_branch_back(table: Table) -> None:
    kept = max(name for name in table.metadata.refs if name.endswith("-view"))
    snapshot = table.metadata.refs[kept].snapshot_id
    table.manage_snapshots().remove_branch("compacted").create_branch(snapshot, "compacted").commit()


def write_to_branch(table: Table) -> None:
    """A commit on any branch raises the table's sequence number; main, which has the version, stays."""
    table.append(table.scan().to_arrow().slice(0, 1), branch="compacted")


@pytest.mark.parametrize("damage", [remove_branch, set_branch_back, write_to_branch])
def test_a_branch_that_a_stranger_moved_is_missed_by_name(
    iceberg: Place, foreign: Catalog, state: TopicState, tmp_path: Path, damage: Callable[[Table], None]
) -> None:
    """Plain readers and appends go on; no round creates another view of the same name (C8)."""
    table = foreign.load_table(ORDERS_TABLE)
    there = table.metadata.refs["compacted"].snapshot_id
    table.manage_snapshots().create_tag(there, "mine").commit()
    damage(table)
    place = an_iceberg_place(tmp_path / "warehouse", iceberg.clock)

    for _ in range(3):
        newest = place.store.load(ORDERS)
        for look in (lambda: place.store.view(newest), lambda: place.cover(newest)):  # noqa: B023 - called at once
            with pytest.raises(DamagedError, match=r"orders: the compacted view .* is lost.*branch compacted"):
                look()
        newest = place.append(newest, some_records("e"))
        assert place.records(newest)[-1].offset == newest.log(0).log_end_offset - 1
    with pytest.raises(DamagedError):
        iceberg.store.view(newest)
    edit = TopicEdit("r", NOW_MS, {}, view_add=place.store.segments(newest)[-1:], verb=Verb.COMPACT)
    if damage is remove_branch:
        with pytest.raises(DamagedError, match="branch compacted"):
            place.store.commit(newest, edit)

    table.refresh()
    change = table.manage_snapshots()
    if "compacted" in table.metadata.refs:
        change.remove_branch("compacted")
    change.create_branch(there, "compacted").commit()
    mended = an_iceberg_place(tmp_path / "warehouse", iceberg.clock)
    assert [r.offset for r in mended.view(mended.store.load(ORDERS))] == [2, 3]


def test_a_view_that_is_gone_can_be_given_up(iceberg: Place, foreign: Catalog, state: TopicState) -> None:
    remove_branch(foreign.load_table(ORDERS_TABLE))
    log = replace(state.log(0), view=None, first_dirty_offset=0)

    state = iceberg.store.commit(state, TopicEdit("u", NOW_MS, {0: log}, verb=Verb.UNCOMPACT))
    state = iceberg.cover(state)

    assert [r.offset for r in iceberg.view(state)] == [0, 1, 2, 3, 4]


def test_uncompact_drops_a_view_that_is_gone_if_what_it_alone_had_may_be_lost(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.create(compaction_mode="side-by-side")
    state = iceberg.cover(iceberg.append(state, some_records("a")))
    remove_branch(foreign.load_table(ORDERS_TABLE))
    warehouse = Warehouse(iceberg.store, iceberg.files, iceberg.clock)

    with pytest.raises(DamagedError, match=r"branch compacted .*lose_trimmed=True"):
        uncompact(warehouse, ORDERS)
    uncompact(warehouse, ORDERS, lose_trimmed=True)

    closed, state = state.version, iceberg.store.load(ORDERS)
    assert next((v.version, v.verb) for v in iceberg.store.versions(ORDERS)) == (closed, Verb.UNCOMPACT)
    assert (state.log(0).view, state.log(0).first_dirty_offset) == (None, 0)
    assert [r.offset for r in iceberg.view(iceberg.cover(state))] == [0]


def test_a_branch_of_that_name_from_before_the_first_view_is_no_view(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.append(iceberg.create(), some_records("a", "b"))
    table = foreign.load_table(ORDERS_TABLE)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "compacted").commit()

    state = iceberg.cover(state, keep=lambda record: record.key == b"b")

    assert [r.offset for r in iceberg.view(state)] == [1]


@pytest.mark.parametrize("kind", ["list", "manifest", "data file"])
def test_a_file_of_the_view_that_is_missing_is_named(
    iceberg: Place, foreign: Catalog, state: TopicState, kind: str
) -> None:
    table = foreign.load_table(ORDERS_TABLE)
    snapshot = table.metadata.snapshot_by_name("compacted")
    assert snapshot is not None
    paths = {
        "list": snapshot.manifest_list,
        "manifest": snapshot.manifests(table.io)[0].manifest_path,
        "data file": iceberg.store.view(state)[0].path,
    }
    Path(paths[kind].removeprefix("file://")).unlink()
    iceberg.store.clear_file_cache()

    for look in (iceberg.view, iceberg.cover):
        with pytest.raises(DamagedError) as error:
            look(state)
        assert paths[kind] in str(error.value)

    assert [r.offset for r in iceberg.records(state)] == [0, 1, 2, 3, 4]
    assert iceberg.append(state, some_records("e")).log(0).log_end_offset == 6


def test_a_kept_view_that_is_gone_is_missed_and_the_newest_one_is_there(
    iceberg: Place, foreign: Catalog, state: TopicState, tmp_path: Path
) -> None:
    kept = iceberg.store.versions(ORDERS)[0].version
    foreign.load_table(ORDERS_TABLE).manage_snapshots().remove_tag(f"lithify-{kept}-view").commit()
    place = an_iceberg_place(tmp_path / "warehouse", iceberg.clock)
    past = place.store.load_version(ORDERS, kept)

    with pytest.raises(DamagedError, match=f"compacted view of version {kept} is lost"):
        place.store.view(past)

    assert [r.offset for r in place.records(past)] == [0, 1, 2, 3]
    assert [r.offset for r in place.view(place.store.load(ORDERS))] == [2, 3]


def test_a_table_keeps_its_views_over_two_logs_and_many_rounds(tmp_path: Path) -> None:
    place = an_iceberg_place(tmp_path, FakeClock(NOW_MS), EmbeddedCatalog(str(tmp_path / "warehouse")))
    state = place.create(partitions=2, versions_kept=2)
    for n in range(20):
        state = place.append(state, [Record(b"%d" % n, b"v", NOW_MS, partition=p) for p in (0, 1)])
        state = place.cover(state, n % 2, share=n % 3 == 0)

    assert [[r.offset for r in place.view(state, p)] for p in (0, 1)] == [list(range(19)), list(range(20))]
