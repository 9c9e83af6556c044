"""Every port call of copies into replicas is struck in turn, on both sides, or others work right before it.

Whatever becomes of a copy, the replica is what its source was at one version (C63), nothing else is overwritten
(C64), and the next copy gets through, with what the one before has left (C65).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faults.history import pairs_again
from lithify.errors import ConflictError, LithifyError, PolicyError
from lithify.model.names import TopicName
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.model.sources.ends import KnownEnds, SourceEnd
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import LogStore, Warehouse
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.documents import put_source, put_source_ends, source_ends_of, source_of
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import lag, mirror
from lithify.service.replica.promote import promote
from lithify.service.replica.verify import verify_replica
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import LONG_MS, CrashError, Freezer, Kind, faulty
from support.faults.struck import strikes
from support.faults.topics import NAME, PARTITIONS, SIDE_BY_SIDE, picture, records
from support.topics.replicas import SOURCE, Pair, a_pair, check_same

MOST_CALLS = 120
HOUR_MS = 3_600_000

ENDS = {0: KnownEnds((SourceEnd(2, 5, 7),), ((4, 9),))}


def a_late_pair(kind: str, folder: Path) -> Pair:
    """A replica that is behind: since it was copied its source has had appends and a round."""
    pair = a_pair(kind, folder, SIDE_BY_SIDE)
    put_source(pair.source.store, pair.source.store.load(NAME), CopiedTopic("orders", "7"))
    put_source_ends(pair.source.store, pair.source.store.load(NAME), ENDS)
    pair.mirror()
    append(pair.source, NAME, records(range(60, 80), keys=7))
    compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())
    return pair


def struck(pair: Pair, striker: object, of_source: bool) -> Pair:
    """The same pair, one side behind ports that can be struck."""
    side = "source" if of_source else "target"
    return replace(pair, **{side: faulty(getattr(pair, side), striker)})  # type: ignore[arg-type]


def a_replica(folder: Path) -> None:
    """All that is done with replicas, once."""
    pair = a_late_pair("memory", folder)
    lag(pair.source, pair.target, NAME, SOURCE)
    pair.mirror()
    verify_replica(pair.source, pair.target, NAME)
    promote(pair.target, NAME)


KINDS = [("memory", kind) for kind in Kind] + [("iceberg", Kind.CRASHES_AFTER), ("iceberg", Kind.LOSES_ANSWER)]


@pytest.mark.parametrize("of_source", [True, False], ids=["source", "target"])
@pytest.mark.parametrize(("store", "kind"), KINDS)
def test_a_struck_copy_is_there_whole_or_not_at_all_c63(store, kind, of_source, tmp_path):
    anew = pairs_again(a_late_pair, store, tmp_path)
    before, wanted = picture(anew().target), picture(anew().source)
    for injector in strikes(kind, store):
        pair = anew()
        report = None
        with suppress(LithifyError, CrashError):
            report = struck(pair, injector, of_source).mirror()
        assert picture(pair.target) in ([wanted] if report is not None else [before, wanted]), injector
        assert verify_replica(pair.source, pair.target, NAME).clean
        pair.mirrored()
        assert source_of(pair.target.store, pair.target.store.load(NAME)) == CopiedTopic("orders", "7")
        assert source_ends_of(pair.target.store, pair.target.store.load(NAME)) == ENDS
        assert report is not None or injector.struck


@pytest.mark.parametrize("kind", Kind)
def test_a_struck_first_copy_leaves_an_empty_replica_or_a_whole_one_c63(kind, tmp_path):
    for injector in strikes(kind):
        pair = a_pair("memory", tmp_path)
        with suppress(LithifyError, CrashError):
            struck(pair, injector, of_source=False).mirror()
        if NAME in pair.target.store.topics():
            state = pair.target.store.load(NAME)
            assert state.replica is not None
            assert state.replica.version or not any(log.log_end_offset for log in state.logs)
        pair.mirrored()


@pytest.mark.parametrize("kind", Kind)
def test_a_struck_promotion_is_one_or_none_c64(kind, tmp_path):
    anew = pairs_again(a_late_pair, "memory", tmp_path)
    before = picture(anew().target)
    for injector in strikes(kind):
        pair = anew()
        report = None
        with suppress(LithifyError, CrashError):
            report = promote(faulty(pair.target, injector), NAME)
        state = pair.target.store.load(NAME)
        assert picture(pair.target) == before
        assert report is None or state.replica is None
        if state.replica is not None:
            pair.mirrored()


@pytest.mark.parametrize("of_source", [True, False], ids=["source", "target"])
@pytest.mark.parametrize(
    "look",
    [
        lambda pair: lag(pair.source, pair.target, NAME, SOURCE),
        lambda pair: replace(verify_replica(pair.source, pair.target, NAME), duration_ms=0),
    ],
    ids=["lag", "verify"],
)
def test_a_struck_look_says_the_truth_or_fails_c63(look, of_source, tmp_path):
    pair = a_late_pair("memory", tmp_path)
    wanted = look(pair)
    for injector in strikes(Kind.FAILS):
        with suppress(LithifyError):
            assert look(struck(pair, injector, of_source)) == wanted


def another_copy(pair: Pair) -> None:
    append(pair.source, NAME, records(range(80, 90), keys=7))
    pair.mirror()


def swept(warehouse: Warehouse) -> None:
    if NAME in warehouse.store.topics():
        expire_versions(warehouse, NAME)
        sweep(warehouse, NAME, delete=True, allow_unusual=True)


def source_round(pair: Pair) -> None:
    append(pair.source, NAME, records(range(80, 90), keys=7))
    compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())
    pair.clock.advance(LONG_MS)
    swept(pair.source)


def recreated(pair: Pair) -> None:
    settings = pair.source.store.load(NAME).settings
    pair.source.store.drop_topic(NAME)
    pair.source.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, pair.clock.now_ms()))


def removed(pair: Pair) -> None:
    with suppress(LithifyError):
        pair.target.store.drop_topic(NAME)


def promoted(pair: Pair) -> None:
    with suppress(PolicyError):
        promote(pair.target, NAME)
        append(pair.target, NAME, records(range(3), keys=3))


OTHERS: dict[str, Callable[[Pair], None]] = {
    "another copy": another_copy,
    "a sweep of the replica": lambda pair: swept(pair.target),
    "a round and a sweep of the source": source_round,
    "the source recreated": recreated,
    "the replica removed": removed,
    "the replica promoted": promoted,
}


def a_stopped_pair(kind: str, folder: Path) -> Pair:
    """A first copy was stopped, and has left files that the next one uses."""
    pair = a_pair(kind, folder, SIDE_BY_SIDE)
    pieces: list[int] = []
    assert pair.mirror(acquire=pieces.append, stops=lambda: len(pieces) > 2).stopped
    return pair


@pytest.mark.parametrize("prepared", [a_pair, a_late_pair, a_stopped_pair], ids=lambda prepared: prepared.__name__)
@pytest.mark.parametrize("of_source", [True, False], ids=["source", "target"])
@pytest.mark.parametrize("others", OTHERS)
def test_a_frozen_copy_overwrites_nothing_c64(others, of_source, prepared, tmp_path):
    anew = pairs_again(prepared, "memory", tmp_path)
    for at in range(1, MOST_CALLS):
        pair = anew()

        def meanwhile(pair: Pair = pair) -> None:
            pair.clock.advance(LONG_MS)
            OTHERS[others](pair)

        freezer = Freezer(at, meanwhile)
        with suppress(LithifyError):
            struck(pair, freezer, of_source).mirror()
        if not freezer.reached:
            assert at > 5
            return
        _check_after(pair, others)
    raise AssertionError(f"more than {MOST_CALLS} calls")


class Earlier:
    """A store that another copy has read before its topic came to its newest version."""

    def __init__(self, real: LogStore, state: TopicState) -> None:
        self._real = real
        self._state = state

    def load(self, name: TopicName) -> TopicState:
        return self._state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def test_a_copy_starts_over_after_one_of_an_earlier_version_c64(tmp_path):
    for at in range(1, MOST_CALLS):
        pair = a_pair("memory", tmp_path, SIDE_BY_SIDE)
        pair.mirror()
        append(pair.source, NAME, records(range(60, 80), keys=7))
        store: Any = Earlier(pair.source.store, pair.source.store.load(NAME))
        compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())
        earlier = replace(pair, source=replace(pair.source, store=store))
        freezer = Freezer(at, earlier.mirror)
        with suppress(ConflictError):  # where the other comes last, its source has gone back
            assert struck(pair, freezer, of_source=False).mirror().changed
            check_same(pair.source, pair.target)
        if not freezer.reached:
            return
    raise AssertionError(f"more than {MOST_CALLS} calls")


@pytest.mark.parametrize("store", ["memory", "iceberg"])
def test_a_file_that_was_named_once_is_not_named_again_c65(store, tmp_path):
    """Sweeps delete such files without a commit that would fence them (C45): after an `undo` they are copied anew."""
    pair = a_late_pair(store, tmp_path)
    were_named = named(pair.target)
    pair.mirror()
    stay = named(pair.target)
    undo(pair.source, NAME)
    pair.clock.advance(LONG_MS)
    assert expire_versions(pair.target, NAME) is not None
    assert were_named - stay <= {file.path for file in pair.target.store.stored_files(pair.target.store.load(NAME))}
    pair.mirrored()
    assert not named(pair.target) & (were_named - stay)


def named(warehouse: Warehouse) -> set[str]:
    state = warehouse.store.load(NAME)
    return {segment.path for segment in (*warehouse.store.segments(state), *warehouse.store.view(state))}


def _check_after(pair: Pair, others: str) -> None:
    """What `others` did is as they left it, and the next copy gets through where it may."""
    ours = pair.target.store.load(NAME) if NAME in pair.target.store.topics() else None
    theirs = pair.source.store.load(NAME)
    if others == "the replica promoted" and ours is not None and ours.replica is None:
        assert ours.log(0).log_end_offset > 0
        with pytest.raises(PolicyError):
            pair.mirror()
    elif others == "the source recreated" and ours is not None and ours.replica.identity != theirs.identity:
        with pytest.raises(PolicyError):
            pair.mirror()
    else:
        pair.mirrored()
    if NAME in pair.target.store.topics():
        state = pair.target.store.load(NAME)
        pair.clock.advance(LONG_MS)
        swept(pair.target)
        if state.replica is not None and state.replica.identity == theirs.identity:
            check_same(pair.source, pair.target)


def test_files_of_a_copy_that_takes_long_stay_c65(tmp_path):
    """Its heartbeats keep them from sweeps, also those of an earlier copy that it uses again (C45)."""
    pair = a_pair("memory", tmp_path)
    seen: list[int] = []
    assert pair.mirror(acquire=seen.append, stops=lambda: len(seen) > 2).stopped
    pair.clock.advance(LONG_MS)  # what it has left is old enough to be swept

    def slow(_bytes: int) -> None:
        for _ in range(9):
            pair.clock.advance(HOUR_MS)
        swept(pair.target)

    report = mirror(pair.source, pair.target, NAME, MirrorRequest(SOURCE, acquire=slow))
    assert report.files_reused > 0
    check_same(pair.source, pair.target)
