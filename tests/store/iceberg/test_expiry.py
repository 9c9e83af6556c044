"""Expiry of kept versions in the table: tags and snapshots go, and a lost answer is settled (C6)."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException

from lithify.ports.store import Warehouse
from lithify.service.change.expire import expire_versions
from lithify.testing.fake_clock import FakeClock
from support.store.builders import ORDERS, Place, some_records
from support.store.catalogs import Commit, Faults, lost_answer, lost_request, raising

RETENTION_MS = 1_000


def rounds(place: Place, *closed_ms: int) -> None:
    state = place.create(versions_retention_ms=RETENTION_MS)
    for n, ms in enumerate(closed_ms):
        state = place.cover(place.append(state, some_records(f"{n}")), closed_ms=ms)


def test_tags_and_snapshots_go_with_the_versions(iceberg: Place, foreign: Catalog) -> None:
    rounds(iceberg, 10, 20, 30)
    before = foreign.load_table(("default", "orders")).metadata
    assert len(before.refs) == 2 + 3 + 2  # the first version has no view

    expire_versions(Warehouse(iceberg.store, iceberg.files, FakeClock(20 + RETENTION_MS)), ORDERS)

    after = foreign.load_table(("default", "orders")).metadata
    (kept,) = iceberg.store.versions(ORDERS)
    assert set(after.refs) == {"main", "compacted", f"lithify-{kept.version}", f"lithify-{kept.version}-view"}
    assert {snapshot.snapshot_id for snapshot in after.snapshots} == {ref.snapshot_id for ref in after.refs.values()}
    assert (after.refs["compacted"], after.current_snapshot_id) == (
        before.refs["compacted"],
        after.refs["main"].snapshot_id,
    )


OVERTAKEN = raising(CommitFailedException("main has moved"))


@pytest.mark.parametrize(
    ("strikes", "sent"),
    [
        ([lost_answer], 1),
        ([lost_request], 2),
        ([lost_request, lost_answer], 2),
        ([lost_request, OVERTAKEN, lost_request], 4),
    ],
    ids=["answer", "request", "both", "requests and a conflict"],
)
def test_whatever_is_lost_they_expire_once(place: Place, faults: Faults, strikes: list[Commit], sent: int) -> None:
    """No log remembers the run, so it decides anew, on what there is."""
    rounds(place, 10, 20, 30)
    before, kept = place.store.load(ORDERS), place.store.versions(ORDERS)
    faults.sent.clear()
    faults.to_come = [*strikes]

    report = expire_versions(Warehouse(place.store, place.files, FakeClock(20 + RETENTION_MS)), ORDERS)

    assert report is not None
    assert report.expired == (kept[1].version, kept[2].version)
    assert place.store.versions(ORDERS) == kept[:1]
    assert report.version == place.store.load(ORDERS).version == before.version + 1
    assert len(faults.sent) == sent


def test_a_round_that_overtakes_it_is_kept(place: Place, faults: Faults) -> None:
    rounds(place, 10, 20)
    newest = place.append(place.store.load(ORDERS), some_records("b"))

    def be_overtaken(commit: Commit, *arguments: Any) -> Any:
        place.cover(newest, closed_ms=900)
        return commit(*arguments)

    faults.to_come = [be_overtaken]
    expire_versions(Warehouse(place.store, place.files, FakeClock(20 + RETENTION_MS)), ORDERS)

    assert [kept.version for kept in place.store.versions(ORDERS)] == [newest.version]
    assert place.store.load_version(ORDERS, newest.version).logs == newest.logs
