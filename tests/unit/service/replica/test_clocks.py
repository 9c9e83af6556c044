"""Replicas of a source that a clock which was ahead has written to, once the clock is right again (C46, C64, C67)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.api.topic import Topic
from lithify.errors import ClockError, PolicyError
from lithify.model.record import Record
from lithify.model.topic.edit import Verb
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import Warehouse
from lithify.service.clock_check import trust_clock
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.builders import some_settings
from support.faults.topics import NAME
from support.topics.replicas import Pair, check_same, two_warehouses

DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS


def a_pair(policy: str) -> Pair:
    source, target = two_warehouses("memory", Path("/nowhere"), now_ms=1_000 * DAY_MS)
    settings = some_settings(cleanup_policy=policy, retention_ms=-1, message_timestamp_after_max_ms=10**15)
    source.store.create_topic(NewTopic(NAME, str(NAME), settings, 1, source.clock.now_ms()))
    return Pair(source, target)


def put(pair: Pair, *values: bytes | None) -> None:
    append(pair.source, NAME, [Record(b"k", value, pair.clock.now_ms(), partition=0) for value in values])


def replica(pair: Pair) -> TopicState:
    return pair.target.store.load(NAME)


def round_of(warehouse: Warehouse) -> bool:
    return compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest()).unless_all_failed().changed


@pytest.fixture
def pair() -> Pair:
    """A replica whose source a round by a clock that was a year ahead has compacted; a person has said so there."""
    pair = a_pair("compact")
    put(pair, b"1", b"2")
    pair.mirror()
    round_of(pair.source)
    pair.mirror()
    pair.clock.advance(YEAR_MS)
    put(pair, b"3")
    round_of(pair.source)
    pair.mirror()
    pair.clock.advance(-YEAR_MS)
    trust_clock(pair.source, NAME)
    put(pair, b"4")
    pair.mirror()
    pair.clock.advance(3 * DAY_MS)
    return pair


def test_a_replica_goes_by_the_right_clock_once_a_person_confirms_it(pair: Pair) -> None:
    """C46: as the hint says. Its logs stay those of its source (C63)."""
    orders, before = Topic(pair.target, NAME), replica(pair)
    with pytest.raises(ClockError, match="at its source first, then here with `sweep`"):
        orders.sweep(delete=True)
    assert len(orders.sweep(delete=True, allow_clock_jump=True).expired_versions) == 1
    assert (replica(pair).clock_ms, replica(pair).logs) == (pair.clock.now_ms(), before.logs)
    assert [kept for kept in pair.target.store.versions(NAME) if kept.closed_ms > pair.clock.now_ms()] == []
    check_same(pair.source, pair.target)
    pair.clock.advance(3 * DAY_MS)
    assert len(orders.sweep(delete=True).expired_versions) == 1
    put(pair, b"5")
    pair.mirrored()
    assert replica(pair).clock_ms == pair.clock.now_ms()


def test_the_logs_of_a_replica_stay_those_of_its_source_whatever_times_they_have() -> None:
    """C46, C63: until a person confirms the clock at the source."""
    pair = a_pair("compact")
    put(pair, b"1", None)
    pair.clock.advance(YEAR_MS)
    round_of(pair.source)
    pair.mirror()
    pair.clock.advance(-YEAR_MS)
    before = replica(pair)
    trust_clock(pair.target, NAME)
    assert (replica(pair).clock_ms, replica(pair).logs) == (pair.clock.now_ms(), before.logs)
    trust_clock(pair.source, NAME)
    pair.mirrored()
    assert replica(pair).log(0).steps[0].time_ms == pair.clock.now_ms()


@pytest.mark.parametrize("verb", ["retain", "compact"])
def test_a_verb_that_is_not_done_to_replicas_confirms_no_clock(pair: Pair, verb: str) -> None:
    """C64: the error says that nothing was changed."""
    version = replica(pair).version
    with pytest.raises(PolicyError, match="it is a replica"):
        getattr(Topic(pair.target, NAME), verb)(allow_clock_jump=True)
    assert replica(pair).version == version


def test_a_replica_that_compacts_by_itself_drops_tombstones_again() -> None:
    """C46, C67: its rounds have steps of their own; one that was planned before does not commit (C44)."""
    pair = a_pair("delete")
    put(pair, b"1", b"2")
    pair.mirror(compact=True)
    pair.clock.advance(YEAR_MS)
    put(pair, None)
    pair.mirror(compact=True)
    assert round_of(pair.target)
    pair.clock.advance(-YEAR_MS)
    trust_clock(pair.source, NAME)
    put(pair, b"3", b"4", None)
    pair.mirror(compact=True)
    with pytest.raises(ClockError, match="then here with"):
        round_of(pair.target)
    epoch = replica(pair).log(0).epoch
    trust_clock(pair.target, NAME, Verb.COMPACT)
    assert replica(pair).log(0).epoch == epoch + 1
    check_same(pair.source, pair.target)
    assert round_of(pair.target)
    assert [step.time_ms for step in replica(pair).log(0).steps if step.time_ms > pair.clock.now_ms()] == []
    pair.clock.advance(2 * DAY_MS)
    put(pair, b"5")
    pair.mirror(compact=True)
    check_same(pair.source, pair.target)
    assert round_of(pair.target)
    assert replica(pair).log(0).tombstones == 0
