"""Commits of the Iceberg store where they could go wrong: lost answers, crashes, two at once (C6)."""

from __future__ import annotations

import errno
import fcntl
import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ServerError
from pyiceberg.table import Table
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
)
from sqlalchemy.exc import OperationalError

from lithify.errors import WarehouseError
from lithify.model.record import Record
from lithify.model.topic.log import RUN_IDS_KEPT
from lithify.ports.store import CommitUnknownError, StaleVersionError, Warehouse
from lithify.service.write.append import append
from support.store.builders import NOW_MS, ORDERS, Place, some_records
from support.store.catalogs import Commit, Faults, lost_answer, lost_request, raising


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_what_is_lost_is_unknown_and_is_there_or_not(place: Place, faults: Faults, lost: Commit) -> None:
    state = place.create()
    faults.to_come = [lost]

    with pytest.raises(CommitUnknownError):
        place.append(state, some_records("a"), run_id="r1")

    newest = place.store.load(ORDERS)
    assert (newest != state) == (lost is lost_answer)
    assert newest.log(0).run_ids == (("r1",) if lost is lost_answer else ())
    assert [r.key for r in place.records(newest)] == ([b"a"] if lost is lost_answer else [])


def test_a_conflict_with_oneself_is_no_conflict(place: Place, faults: Faults) -> None:
    """A proxy sends a commit again whose answer it lost; the catalog refuses the second sending."""
    state = place.create()

    def sent_twice(commit: Commit, *arguments: Any) -> Any:
        commit(*arguments)
        return commit(*arguments)

    faults.to_come = [sent_twice]
    after = place.append(state, some_records("a"))

    assert after == place.store.load(ORDERS)
    assert [r.key for r in place.records(after)] == [b"a"]


def test_what_another_program_changed_just_before_the_swap_is_a_conflict(place: Place, faults: Faults) -> None:
    """A commit is on the metadata that it was decided on, also where only a property is another one since."""
    place.create()
    warehouse = Warehouse(place.store, place.files, place.clock)

    def overtaken(commit: Commit, table: Table, *what: Any) -> Any:
        with table.catalog.load_table(table.name()).transaction() as changed:
            changed.set_properties({"a.stranger": "was here"})
        return commit(table, *what)

    faults.to_come = [overtaken]
    append(warehouse, ORDERS, [Record(b"k", b"v")])

    assert len(faults.sent) == 2
    table = faults.sent[-1][0].refresh()
    assert table.properties["a.stranger"] == "was here"
    assert [r.key for r in place.records(place.store.load(ORDERS))] == [b"k"]


def test_the_new_metadata_is_what_pyiceberg_makes_of_the_updates(place: Place, faults: Faults) -> None:
    made: list[bool] = []

    def compared(commit: Commit, table: Table, *what: Any) -> Any:
        loaded = table.metadata.model_dump_json()
        wanted = SqlCatalog._update_and_stage_table(table.catalog, table, table.name(), *what).metadata  # type: ignore[arg-type]
        answer = commit(table, *what)
        made.append(answer.metadata == wanted and table.metadata.model_dump_json() == loaded)
        return answer

    faults.to_come = [compared] * 3
    state = place.append(place.append(place.create(), some_records("a", "b", "a")), some_records("c"))
    place.round(state)

    assert made == [True] * 3


@pytest.mark.parametrize("conflict", [CommitFailedException("main has moved"), TimeoutError("no answer")], ids=repr)
@pytest.mark.parametrize("landed", [True, False])
def test_what_a_log_no_longer_remembers_is_identified_by_its_files(
    place: Place, faults: Faults, conflict: Exception, landed: bool
) -> None:
    """C6: so many others commit before the outcome is checked that the run is forgotten. It is there once."""
    place.create()
    warehouse = Warehouse(place.store, place.files, place.clock)

    def overtaken(commit: Commit, *arguments: Any) -> Any:
        if landed:
            commit(*arguments)
        for n in range(RUN_IDS_KEPT + 1):
            place.append(place.store.load(ORDERS), some_records("other"), run_id=f"other{n}")
        raise conflict

    append(warehouse, ORDERS, [Record(b"before", b"")])
    faults.to_come = [overtaken]
    (told,) = append(warehouse, ORDERS, [Record(b"k", b"v")]).ranges

    found = [r.offset for r in place.records(place.store.load(ORDERS)) if r.key == b"k"]
    assert found == [told.start_offset]


def test_a_turn_that_cannot_be_ended_does_not_fail_what_was_committed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network disks: an error would say that nothing was appended."""
    place.create()
    flock, failures = fcntl.flock, [OSError(errno.EIO, "Input/output error")]

    def failing_once(descriptor: int, operation: int) -> None:
        if operation == fcntl.LOCK_UN and failures:
            raise failures.pop()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", failing_once)
    warehouse = Warehouse(place.store, place.files, place.clock)
    for n in range(2):
        assert append(warehouse, ORDERS, [Record(b"k", b"v")]).ranges[0].start_offset == n
    assert not failures


def test_a_topic_deleted_while_a_commit_is_on_its_way(place: Place, faults: Faults) -> None:
    state = place.create()

    def drop_first(commit: Commit, *arguments: Any) -> Any:
        place.store.drop_topic(ORDERS)
        return commit(*arguments)

    faults.to_come = [drop_first]
    with pytest.raises(StaleVersionError):
        place.append(state, some_records("a"))

    assert place.store.topics() == ()


def test_appends_with_lost_answers_and_requests_lose_and_double_nothing(place: Place, faults: Faults) -> None:
    place.create()
    warehouse = Warehouse(place.store, place.files, place.clock)
    kinds = [lost_answer, lost_request, raising(CommitFailedException("moved")), raising(ServerError("5xx"))]

    for n in range(12):
        faults.to_come = [kinds[n % 4], kinds[n // 4]]
        result = append(warehouse, ORDERS, [Record(b"k", b"%d" % n)])
        assert [(r.start_offset, r.end_offset) for r in result.ranges] == [(n, n + 1)]

    records = place.records(place.store.load(ORDERS))
    assert [(r.offset, r.value) for r in records] == [(n, b"%d" % n) for n in range(12)]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CommitFailedException("Requirement failed: branch main has changed"), StaleVersionError),
        (ValueError("Cannot add snapshot with sequence number 3 older than last"), StaleVersionError),
        (ValueError("anything else"), CommitUnknownError),
        (CommitStateUnknownException("504"), CommitUnknownError),
        (ConnectionResetError(errno.ECONNRESET, "reset"), CommitUnknownError),
        (OperationalError(None, None, Exception("connection lost")), CommitUnknownError),  # of the COMMIT itself
        (OperationalError("UPDATE iceberg_tables ...", None, Exception("connection lost")), WarehouseError),
        (OSError(errno.ENOSPC, "No space left on device"), WarehouseError),
        (PermissionError(errno.EACCES, "Permission denied"), WarehouseError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else type(value).__name__,
)
def test_only_what_certainly_came_before_the_swap_is_a_plain_failure(
    place: Place, faults: Faults, error: Exception, expected: type[Exception]
) -> None:
    state = place.create()
    faults.to_come = [raising(error)]

    with pytest.raises(expected):
        place.append(state, some_records("a"))

    assert place.store.load(ORDERS) == state


def test_every_commit_asserts_the_table_and_main_and_adds_a_snapshot(place: Place, faults: Faults) -> None:
    state = place.create()
    state = place.append(state, some_records("a"))
    state = place.change(state, generation=1)
    state = place.round(place.append(state, some_records("b")))
    state = place.cover(place.cover(state), share=True)
    place.drop_views(state)

    assert len(faults.sent) == 7
    for table, requirements, updates in faults.sent:
        main = table.metadata.refs["main"].snapshot_id
        assert AssertTableUUID(uuid=table.metadata.table_uuid) in requirements
        assert AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": main}) in requirements
        assert isinstance(updates[0], AddSnapshotUpdate)
        assert updates[0].snapshot.parent_snapshot_id == main
        assert sum(isinstance(update, SetPropertiesUpdate) for update in updates) == 1


def test_a_view_moves_in_the_swap_that_moves_main(place: Place, faults: Faults) -> None:
    state = place.cover(place.append(place.create(), some_records("a")))
    faults.sent.clear()

    place.cover(place.append(state, some_records("b")))

    (_, _, appended), (_, _, covered) = faults.sent
    assert [u.ref_name for u in appended if isinstance(u, SetSnapshotRefUpdate)] == ["main"]
    moved = [u.ref_name for u in covered if isinstance(u, SetSnapshotRefUpdate)]
    assert moved[:2] == ["main", "compacted"]
    assert sorted(moved[2:]) == [f"lithify-{state.version + 1}", f"lithify-{state.version + 1}-view"]


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_a_round_beside_the_backlog_whose_answer_is_lost_is_there_or_not(
    place: Place, faults: Faults, lost: Commit
) -> None:
    state = place.append(place.cover(place.append(place.create(), some_records("a"))), some_records("b"))
    faults.to_come = [lost]

    with pytest.raises(CommitUnknownError):
        place.cover(state, keep=lambda record: record.key == b"b")

    newest = place.store.load(ORDERS)
    landed = newest != state
    assert landed == (lost is lost_answer)
    assert newest.log(0).first_dirty_offset == (2 if landed else 1)
    assert [r.key for r in place.view(newest)] == [b"b" if landed else b"a"]


def test_an_append_that_overtakes_a_round_keeps_the_view_as_it_was(place: Place, faults: Faults) -> None:
    state = place.cover(place.append(place.create(), some_records("a")))
    newest = place.append(state, some_records("b"))

    def be_overtaken(commit: Commit, *arguments: Any) -> Any:
        place.append(newest, some_records("c"))
        return commit(*arguments)

    faults.to_come = [be_overtaken]
    with pytest.raises(StaleVersionError):
        place.cover(newest, keep=lambda record: record.key == b"b")

    newest = place.store.load(ORDERS)
    assert [r.key for r in place.records(newest)] == [b"a", b"b", b"c"]
    assert [r.key for r in place.view(newest)] == [b"a"]
    assert len(place.store.versions(ORDERS)) == 1


@pytest.mark.parametrize("landed", [False, True], ids=["before the swap", "after the swap"])
def test_a_process_that_dies_in_a_round_leaves_it_whole_or_undone(place: Place, faults: Faults, landed: bool) -> None:
    state = place.append(place.append(place.create(), some_records("a", "b")), some_records("a"))
    before = place.records(state)

    def die(commit: Commit, *arguments: Any) -> Any:
        if landed:
            commit(*arguments)
        raise KeyboardInterrupt

    faults.to_come = [die]
    with pytest.raises(KeyboardInterrupt):
        place.round(state, keep=lambda record: record.offset != 0)

    newest = place.store.load(ORDERS)
    if not landed:
        assert newest == state
        assert place.store.versions(ORDERS) == ()
        newest = place.round(newest, keep=lambda record: record.offset != 0)
    assert [r.offset for r in place.records(newest)] == [1, 2]
    (kept,) = place.store.versions(ORDERS)
    assert place.records(place.store.load_version(ORDERS, kept.version)) == before


def test_of_two_that_close_one_version_the_record_of_the_winner_counts(place: Place, faults: Faults) -> None:
    state = place.append(place.create(partitions=2), [Record(b"k", b"v", partition=p) for p in (0, 1)])
    overtakers = []

    def be_overtaken(commit: Commit, *arguments: Any) -> Any:
        overtakers.append(place.round(state, 1, closed_ms=NOW_MS + 7))
        return commit(*arguments)

    faults.to_come = [be_overtaken]
    with pytest.raises(StaleVersionError):
        place.round(state, 0, closed_ms=NOW_MS + 1)

    (winner,) = overtakers
    assert place.store.load(ORDERS) == winner
    (kept,) = place.store.versions(ORDERS)
    assert (kept.version, kept.closed_ms, kept.closed_by) == (state.version, NOW_MS + 7, winner.log(1).run_ids[-1])
    assert place.store.load_version(ORDERS, kept.version) == state
    records = [json.loads(path.read_text()) for path in _folder(winner.location, "lithify/versions").iterdir()]
    assert sorted((r["closed_ms"], _partitions(r["no_longer_named"])) for r in records) == [
        (NOW_MS + 1, {0}),
        (NOW_MS + 7, {1}),
    ]


def test_the_record_of_a_closed_version_tells_what_is_not_named_any_more(place: Place) -> None:
    state = place.append(place.append(place.create(), some_records("a")), some_records("b"))
    segments = place.store.segments(state)
    after = place.round(state, closed_ms=NOW_MS + 3)

    (path,) = _folder(state.location, "lithify/versions").iterdir()

    record = json.loads(path.read_text())
    assert record["no_longer_named"] == [segment.path for segment in segments]
    assert (record["version"], record["closed_ms"]) == (state.version, NOW_MS + 3)
    assert record["closed_by"] == after.log(0).run_ids[-1]


def _folder(location: str, below: str) -> Path:
    return Path(location.removeprefix("file://")) / below


def _partitions(paths: list[str]) -> set[int]:
    return {int(path.split("partition=")[1][0]) for path in paths}
