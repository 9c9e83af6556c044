"""Every call of a copy of positions is struck, on both sides, or others work right before it (C68).

Whatever becomes of it, the replica has each position as it was before or as it is at the source, none that is ahead of
the replica, and what a member there commits stays; and the next copy gets through.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.groups_sql import SqlGroups
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.errors import LithifyError
from lithify.model.cursor import Cursor
from lithify.model.groups.copies import CopiedPositions, at_replica
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName
from lithify.model.record import Record
from lithify.model.topic.state import TopicState
from lithify.ports.leases import Lease
from lithify.ports.store import LogStore, Warehouse
from lithify.rules.reading.continuation import BeyondEnd, Continues, Restored, continuation
from lithify.service.replica.promote import promote
from lithify.service.replica.replica_positions import ReadPositions, load_between, read_positions, store_positions
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.memory_groups import MemoryCopies, MemoryGroups
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import CrashError, FaultyPort, Freezer, Injector, Kind, faulty
from support.faults.struck import strikes
from support.faults.topics import NAME, PARTITIONS, records
from support.topics.replicas import Pair, a_pair

MOST_CALLS = 200


@dataclass(frozen=True)
class Groups:
    """The groups of a pair."""

    source: MemoryGroups
    target: MemoryGroups


def committed(warehouse: Warehouse, groups: MemoryGroups, group: str, ms: int) -> None:
    """A member has read all logs to their ends."""
    state = warehouse.store.load(NAME)
    logs = {LogId(NAME, log.partition): Cursor.of(state, log, log.log_end_offset) for log in state.logs}
    leases = [GroupTopic(groups.scope, group, NAME).partition(log.partition) for log in logs]
    groups.leases.take([Lease(name, "member", ms) for name in leases], {})
    assert not groups.commit([Position(group, log, cursor, True, ms) for log, cursor in logs.items()], "member")
    groups.leases.release("member", leases)


def a_read_pair(folder: Path) -> tuple[Pair, Groups]:
    """Positions were copied once; since then the source has had records and a round, and its groups have read on."""
    pair, groups = a_pair("memory", folder), Groups(MemoryGroups("source"), MemoryGroups("target"))
    committed(pair.source, groups.source, "g", 1)
    committed(pair.source, groups.source, "gone", 2)
    copy(pair, groups)
    moved(pair, groups, 3)
    for partition in range(PARTITIONS):
        groups.source._positions.pop(("gone", LogId(NAME, partition)))
    return pair, groups


def moved(pair: Pair, groups: Groups, ms: int) -> None:
    append(pair.source, NAME, records(range(60, 80), keys=7))
    compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())
    committed(pair.source, groups.source, "g", ms)
    committed(pair.source, groups.source, "new", ms)


def copy(pair: Pair, groups: Groups, striker: Injector | Freezer | None = None) -> CopiedPositions:
    """As a pass does it; all of it may be struck."""
    source, target, here, there = pair.source, pair.target, groups.source, groups.target
    if striker is not None:
        source, target = faulty(source, striker), faulty(target, striker)
        here, there = FaultyPort(here, striker), FaultyPort(there, striker)  # type: ignore[assignment]
        there._real.copies = FaultyPort(groups.target.copies, striker)  # type: ignore[attr-defined]
    read: list[ReadPositions] = []

    def load(store: LogStore, name: TopicName) -> TopicState:
        state, found = load_between(store, store.load(name), lambda: read_positions(here, there, NAME))
        read[:] = [found]
        return state

    try:
        replace(pair, source=source, target=target).mirror(load=load)
        return store_positions(read[0], target, there)
    finally:
        if striker is not None:
            groups.target.copies = groups.target.copies._real  # type: ignore[attr-defined]


def wanted(pair: Pair, groups: Groups) -> tuple[Position, ...]:
    here, there = pair.source.store.load(NAME).identity, pair.target.store.load(NAME)
    return tuple(at_replica(position, here, there) for position in groups.source.positions())


def check_none_is_ahead(pair: Pair, groups: Groups) -> None:
    state = pair.target.store.load(NAME)
    for position in groups.target.positions():
        found = continuation(position.cursor, state, state.log(position.log.partition), compacted=True)
        assert not isinstance(found, BeyondEnd | Restored), position


@pytest.mark.parametrize("kind", Kind)
def test_a_struck_copy_of_positions_leaves_those_before_or_those_of_the_source_c68(kind, tmp_path):
    for injector in strikes(kind):
        pair, groups = a_read_pair(tmp_path)
        before, after = groups.target.positions(), wanted(pair, groups)
        done = None
        with suppress(LithifyError, CrashError):
            done = copy(pair, groups, injector)
        assert groups.target.positions() in ([after] if done is not None else [before, after]), injector
        check_none_is_ahead(pair, groups)
        assert copy(pair, groups).is_complete
        assert groups.target.positions() == after
        assert done is not None or injector.struck


def reads_there(pair: Pair, groups: Groups) -> None:
    if NAME in pair.target.store.topics():
        committed(pair.target, groups.target, "g", 50)


def promoted(pair: Pair, groups: Groups) -> None:
    with suppress(LithifyError):
        promote(pair.target, NAME, real(groups.target.copies))
        reads_there(pair, groups)


def promoted_and_deleted(pair: Pair, groups: Groups) -> None:
    """The group that a person deletes there is to begin again at the earliest offset."""
    with suppress(LithifyError):
        promote(pair.target, NAME, real(groups.target.copies))
    deleted(pair, groups)


def deleted(pair: Pair, groups: Groups) -> None:
    logs = [LogId(NAME, partition) for partition in range(PARTITIONS)]
    by_person(groups, lambda: groups.target.delete("g", logs, "person"))


def reset(pair: Pair, groups: Groups) -> None:
    """To where the last copy had left it, and at the same time: nothing but the fence tells the two from each other."""
    found = list(groups.target.positions("g"))
    by_person(groups, lambda: groups.target.reset(found, "person"))


def by_person(groups: Groups, do: Callable[[], frozenset[LogId]]) -> None:
    leases = [GroupTopic(groups.target.scope, "g", NAME).partition(partition) for partition in range(PARTITIONS)]
    copies, groups.target.copies = groups.target.copies, real(groups.target.copies)
    groups.target.leases.take([Lease(name, "person", 1) for name in leases], {})
    assert do() == frozenset()
    groups.target.leases.release("person", leases)
    groups.target.copies = copies


def real(copies: MemoryCopies) -> MemoryCopies:
    """Those behind the port that is struck."""
    found: MemoryCopies = getattr(copies, "_real", copies)
    return found


def overtakes(pair: Pair, groups: Groups) -> None:
    moved(pair, groups, 40)
    copies, groups.target.copies = groups.target.copies, real(groups.target.copies)
    copy(pair, groups)
    groups.target.copies = copies


OTHERS: dict[str, Callable[[Pair, Groups], None]] = {
    "the source moves on": lambda pair, groups: moved(pair, groups, 40),
    "another copy": overtakes,
    "a member at the replica": reads_there,
    "the replica promoted": promoted,
    "the replica promoted, a group deleted": promoted_and_deleted,
    "a group deleted": deleted,
    "a group reset": reset,
}


@pytest.mark.parametrize("others", OTHERS)
def test_a_frozen_copy_of_positions_sets_none_back_and_takes_none_from_a_member_c68(others, tmp_path):
    for at in range(1, MOST_CALLS):
        pair, groups = a_read_pair(tmp_path)
        freezer = Freezer(at, lambda pair=pair, groups=groups: OTHERS[others](pair, groups))
        with suppress(LithifyError):
            copy(pair, groups, freezer)
        if not freezer.reached:
            assert at > 5
            return
        check_none_is_ahead(pair, groups)
        found = {(p.group, p.log): p for p in groups.target.positions()}
        if others == "another copy":
            assert groups.target.positions() == wanted(pair, groups), at
        elif others in ("a member at the replica", "the replica promoted"):
            assert {p.committed_ms for (group, _), p in found.items() if group == "g"} == {50}, at
        if pair.target.store.load(NAME).replica is not None:
            copy(pair, groups)
            own = {"g"} if others == "a member at the replica" else set()
            assert [p for p in groups.target.positions() if p.group not in own] == [
                p for p in wanted(pair, groups) if p.group not in own
            ]
    raise AssertionError(f"more than {MOST_CALLS} calls")


def copied_positions(folder: Path) -> None:
    """All that is done with copies of positions, once."""
    assert copy(*a_read_pair(folder)).is_complete


@pytest.mark.parametrize("others", ["the replica promoted, a group deleted", "a group deleted", "a group reset"])
def test_a_copy_that_was_frozen_before_a_person_acts_writes_nothing_afterwards_c68(others, tmp_path):
    """Right before each call from the fence on; those before it belong to a copy that begins afterwards."""
    seen = 0
    for at in range(1, MOST_CALLS):
        pair, groups = a_read_pair(tmp_path)
        left: list[tuple[Position, ...]] = []

        def act(pair: Pair = pair, groups: Groups = groups, left: list[tuple[Position, ...]] = left) -> None:
            OTHERS[others](pair, groups)
            left.append(groups.target.positions())

        freezer = Freezer(at, act)
        with suppress(LithifyError):
            copy(pair, groups, freezer)
        if not freezer.reached:
            assert seen > 5
            return
        if "fence" in freezer.calls[: at - 1] and at < len(freezer.calls) + 1:
            seen += 1
            assert groups.target.positions() == left[0], (at, freezer.calls)
    raise AssertionError(f"more than {MOST_CALLS} calls")


@pytest.mark.parametrize("fenced", ["promoted", "deleted"])
def test_a_first_copy_that_was_frozen_writes_nothing_after_a_person_has_acted_c68(fenced, tmp_path):
    """It has begun while the target was no warehouse yet: there was no fence that a person could raise."""
    for at in range(1, MOST_CALLS):
        pair, here = a_pair("memory", tmp_path), MemoryGroups("source")
        committed(pair.source, here, "g", 1)
        there = SqlGroups(Transactions(engine_at(f"sqlite:///{tmp_path}/{at}.db")), "target")
        read = read_positions(here, None, NAME)
        pair.mirror()
        left: list[tuple[Position, ...]] = []

        def act(pair: Pair = pair, there: SqlGroups = there, left: list[tuple[Position, ...]] = left) -> None:
            if fenced == "promoted":
                promote(pair.target, NAME, there.copies)
            else:
                logs = [LogId(NAME, partition) for partition in range(PARTITIONS)]
                leases = [GroupTopic("target", "g", NAME).partition(log.partition) for log in logs]
                there.leases.take([Lease(name, "person", 1) for name in leases], {})
                assert there.delete("g", logs, "person") == frozenset()
                there.leases.release("person", leases)
            left.append(there.positions())

        freezer = Freezer(at, act)
        groups: Any = SimpleNamespace(copies=FaultyPort(there.copies, freezer))
        store_positions(read, faulty(pair.target, freezer), groups)
        if not freezer.reached:
            assert at > 2
            return
        if fenced == "promoted" or at > 1:
            assert there.positions() == left[0], (at, freezer.calls)
    raise AssertionError(f"more than {MOST_CALLS} calls")


def test_a_promotion_that_dies_at_any_call_leaves_no_frozen_copy_behind_c68(tmp_path):
    for injector in strikes(Kind.CRASHES_AFTER):
        pair, groups = a_read_pair(tmp_path)
        read = read_positions(groups.source, groups.target, NAME)
        pair.mirror()
        with suppress(LithifyError, CrashError):
            promote(faulty(pair.target, injector), NAME, FaultyPort(groups.target.copies, injector))
        state = pair.target.store.load(NAME)
        before = groups.target.positions()
        if state.replica is None:
            wanted_there = [at_replica(p, read.positions[0].cursor.identity, state) for p in read.positions]
            assert groups.target.copies.copy(NAME, wanted_there, read.fence).overtaken
            assert groups.target.positions() == before


def drops(pair: Pair, groups: Groups) -> None:
    """The group reads deletes, which the next round then drops, as it has waited for no other (C61)."""
    keyed = [Record(r.key, None, r.timestamp, (), r.partition) for r in records(range(80, 90), keys=5)]
    append(pair.source, NAME, keyed)
    compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())
    committed(pair.source, groups.source, "g", 60)
    pair.clock.advance(1_000)
    compact(pair.source, OracleEngine(pair.source.files), NAME, RunRequest())
    assert any(log.dropped for log in pair.source.store.load(NAME).logs)


def test_a_group_that_has_read_in_time_goes_on_at_the_replica_after_any_copy_c61_c68(tmp_path):
    """The source is lost right after a copy, during which its group has read what a round then dropped."""
    config: dict[str, object] = {"delete.retention.ms": 0, "tombstone.hold.groups": "g"}
    for at in range(1, MOST_CALLS):
        groups = Groups(MemoryGroups("source"), MemoryGroups("target"))
        bare = a_pair("memory", tmp_path, config)
        pair = Pair(replace(bare.source, groups=groups.source), bare.target)
        committed(pair.source, groups.source, "g", 1)
        copy(pair, groups)
        append(pair.source, NAME, records(range(60, 80), keys=7))
        committed(pair.source, groups.source, "g", 2)
        freezer = Freezer(at, lambda pair=pair, groups=groups: drops(pair, groups))
        copy(pair, groups, freezer)
        state = pair.target.store.load(NAME)
        for position in groups.target.positions("g"):
            found = continuation(position.cursor, state, state.log(position.log.partition), compacted=True)
            assert isinstance(found, Continues), (at, freezer.calls, position, found)
        if not freezer.reached:
            assert at > 5
            return
    raise AssertionError(f"more than {MOST_CALLS} calls")
