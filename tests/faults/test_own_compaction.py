"""Copies and rounds of a replica that compacts by itself, each right before every port call of the other, or struck.

Whichever comes first, the replica's log is its source's at one version, and the table that its view gives is that of
its log, no matter what a round had read before the copy (C44, C63, C67).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from faults.history import pairs_again
from lithify.errors import LithifyError, PolicyError
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.rules.reading.pieces import Reading
from lithify.service.change.alter import alter
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.sweep import sweep
from lithify.service.read.fetch import open_log
from lithify.service.replica.verify import verify_replica
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import CrashError, FaultyEngine, Freezer, Injector, Kind, faulty
from support.faults.struck import strikes
from support.faults.topics import NAME, PARTITIONS, records
from support.topics.replicas import Pair, check_same, two_warehouses

MOST_CALLS = 150
Table = dict[bytes | None, bytes | None]


def own_round(pair: Pair, striker: Injector | Freezer | None = None) -> None:
    engine = OracleEngine(pair.target.files)
    if striker is None:
        compact(pair.target, engine, NAME, RunRequest()).unless_all_failed()
    else:
        compact(faulty(pair.target, striker), FaultyEngine(engine, striker), NAME, RunRequest())


def a_pair(kind: str, folder: Path) -> Pair:
    """A source that is not compacted, its replica with a round behind it and dirty records, and more at the source."""
    source, target = two_warehouses(kind, folder)
    made = settings_of({"cleanup.policy": "delete", "retention.bytes": 1, "delete.retention.ms": 0, "retention.ms": -1})
    source.store.create_topic(NewTopic(NAME, "orders", made, PARTITIONS, source.clock.now_ms()))
    pair = Pair(source, target)
    append(source, NAME, records(range(0, 20), keys=6))
    append(source, NAME, records(range(20, 40), keys=7))
    pair.mirror(compact=True)
    own_round(pair)
    append(source, NAME, records(range(40, 60), keys=6))
    pair.mirror(compact=True)
    append(source, NAME, records(range(60, 70), keys=6))
    return pair


def source_compacts(pair: Pair) -> None:
    alter(pair.source, NAME, {"cleanup.policy": "compact"})
    compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())


DONE: dict[str, Callable[[Pair], object]] = {
    "appends": lambda pair: append(pair.source, NAME, records(range(70, 90), keys=7)),
    "a truncation below D": lambda pair: truncate(pair.source, NAME, 0, 15),
    "a truncation above D": lambda pair: truncate(pair.source, NAME, 0, 25),
    "records deleted below D": lambda pair: delete_records(pair.source, NAME, 0, 15),
    "records deleted above D": lambda pair: delete_records(pair.source, NAME, 0, 25),
    "retention": lambda pair: retain(pair.source, NAME),
    "a setting": lambda pair: alter(pair.source, NAME, {"min.cleanable.dirty.ratio": 0.1}),
    "compaction": source_compacts,
    "nothing": lambda _: None,
}


def changed(done: str) -> Callable[[str, Path], Pair]:
    """Makes pairs with whose source this is done."""

    def a_changed_pair(kind: str, folder: Path) -> Pair:
        pair = a_pair(kind, folder)
        DONE[done](pair)
        return pair

    return a_changed_pair


CASES = [*((done, True) for done in DONE), ("appends", False), ("nothing", False)]
"""What is done, and whether the replica is still to compact by itself."""


def table(warehouse: Warehouse, partition: int, *, compacted: bool) -> Table:
    """What a reader of a log knows of each key at the end."""
    state = warehouse.store.load(NAME)
    return {r.key: r.value for r in open_log(warehouse, state, partition, "earliest", Reading(compacted=compacted))}


def check(pair: Pair) -> None:
    """The replica as it is: what its log says of a key, its view says too."""
    assert verify_replica(None, pair.target, NAME).clean
    for partition in range(PARTITIONS):
        view = table(pair.target, partition, compacted=True)
        for key, value in table(pair.target, partition, compacted=False).items():
            assert view.get(key) == value, (partition, key)


def check_after(pair: Pair, done: str, *, wanted: bool) -> None:
    """And it goes on: the next copy and the next round get through, also once all that was replaced is swept."""
    check(pair)
    pair.mirror(compact=wanted)
    check_same(pair.source, pair.target)
    check(pair)
    replica = pair.target.store.load(NAME).replica
    assert replica is not None
    assert replica.compacts == (wanted and done != "compaction")
    if replica.compacts:
        own_round(pair)
        check(pair)
    else:
        assert not pair.target.store.view(pair.target.store.load(NAME))
    for warehouse in (pair.source, pair.target):
        expire_versions(warehouse, NAME)
        sweep(warehouse, NAME, delete=True, allow_unusual=True)
    check_same(pair.source, pair.target)
    assert verify_replica(pair.source, pair.target, NAME).clean


@pytest.mark.parametrize(("done", "wanted"), CASES)
def test_a_round_is_not_laid_over_a_copy_that_it_does_not_fit_c44_c67(done, wanted, tmp_path):
    anew = pairs_again(a_pair, "memory", tmp_path)
    for at in range(1, MOST_CALLS):
        pair = anew()

        def meanwhile(pair: Pair = pair) -> None:
            DONE[done](pair)
            pair.mirror(compact=wanted)

        freezer = Freezer(at, meanwhile)
        with suppress(LithifyError):
            own_round(pair, freezer)
        if not freezer.reached:
            assert at > 5
            return
        check_after(pair, done, wanted=wanted)
    raise AssertionError(f"more than {MOST_CALLS} calls")


@pytest.mark.parametrize(("done", "wanted"), CASES)
@pytest.mark.parametrize("of_source", [True, False], ids=["source", "target"])
def test_a_copy_is_not_laid_over_a_round_that_it_has_not_seen_c67(done, of_source, wanted, tmp_path):
    anew = pairs_again(changed(done), "memory", tmp_path)
    for at in range(1, MOST_CALLS):
        pair = anew()

        def meanwhile(pair: Pair = pair) -> None:
            with suppress(PolicyError):  # where the copy has landed, with which it no longer compacts
                own_round(pair)

        freezer = Freezer(at, meanwhile)
        side = "source" if of_source else "target"
        struck = replace(pair, **{side: faulty(getattr(pair, side), freezer)})
        struck.mirror(compact=wanted)
        check_same(pair.source, pair.target)
        if not freezer.reached:
            assert at > 5
            return
        check_after(pair, done, wanted=wanted)
    raise AssertionError(f"more than {MOST_CALLS} calls")


CHANGES = ("appends", "a truncation below D", "retention", "compaction")


@pytest.mark.parametrize(
    ("store", "kind", "done"),
    [
        *(("memory", kind, done) for kind in Kind for done in CHANGES),
        ("iceberg", Kind.LOSES_ANSWER, "appends"),
        ("iceberg", Kind.CRASHES_AFTER, "compaction"),
    ],
)
def test_a_struck_copy_leaves_view_and_log_whole_c67(store, kind, done, tmp_path):
    anew = pairs_again(changed(done), store, tmp_path)
    for injector in strikes(kind, store):
        pair = anew()
        with suppress(LithifyError, CrashError):
            replace(pair, target=faulty(pair.target, injector)).mirror(compact=True)
        check_after(pair, done, wanted=True)


@pytest.mark.parametrize("kind", Kind)
def test_a_struck_round_leaves_view_and_log_whole_c67(kind, tmp_path):
    anew = pairs_again(a_pair, "memory", tmp_path)
    for injector in strikes(kind):
        pair = anew()
        with suppress(LithifyError, CrashError):
            own_round(pair, injector)
        check_after(pair, "appends", wanted=True)


def test_a_first_copy_of_a_source_that_is_not_compacted_takes_rounds_at_once_c67(tmp_path):
    pair = a_pair("iceberg", tmp_path)
    state = pair.target.store.load(NAME)
    assert state.settings.cleanup_policy == "compact,delete"
    assert state.settings.side_by_side
    assert {log.view is not None for log in state.logs} == {True}
    assert sum(log.view.volume.records for log in state.logs if log.view) < sum(log.clean.records for log in state.logs)
    check_after(pair, "nothing", wanted=True)
