"""Offsets of groups in a topic whose compacted data stands beside its log: one position, under two names (C33)."""

from __future__ import annotations

import pytest

import lithify
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.committed import Commit, Committed
from lithify.kafka_server.groups.offsets import Offsets
from lithify.kafka_server.groups.tenure import Tenure
from lithify.kafka_server.logs.served_topics import LOOK_MS, ServedTopics
from lithify.rules.reading.continuation import MissedDeletes, continuation
from lithify.testing import memory_lake
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_groups import MemoryGroups

GROUP = "billing"
LOG, COMPACTED = ("states", 0), ("states.compacted", 0)
BESIDE = {"compaction.mode": "side-by-side", "delete.retention.ms": "0"}


class Setting:
    """A group, and a topic; those of `settings` that say how it is compacted."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.clock, self.groups = FakeClock(), MemoryGroups("here")
        self.lake = memory_lake(self.clock)
        self.topic = self.lake.create_topic("states", 1, config=settings)
        tenure = Tenure(self.groups, "alpha", self.clock)
        self.offsets = Offsets(self.groups, ServedTopics(self.lake.warehouse), tenure, self.clock)
        assert tenure.acquire(GROUP)

    def put(self, *keys: str) -> None:
        """A record of each key; a key in capitals is deleted."""
        rows = [
            lithify.Record(key=key.lower().encode(), value=None if key.isupper() else b"v", timestamp=1, partition=0)
            for key in keys
        ]
        self.topic.append(rows)

    def commit(self, commits: dict[tuple[str, int], int]) -> list[Code]:
        given = {place: Commit(offset) for place, offset in commits.items()}
        return [*self.offsets.commit(GROUP, given, refusal=Code.UNKNOWN_MEMBER_ID).values()]

    def fetched(self, places: list[tuple[str, int]] | None = None) -> dict[tuple[str, int], Committed] | Code:
        return self.offsets.fetch({GROUP: places})[GROUP]


@pytest.fixture
def beside() -> Setting:
    setting = Setting(BESIDE)
    setting.put("a", "b", "a")
    setting.topic.compact()
    return setting


@pytest.mark.parametrize("place", [LOG, COMPACTED])
def test_an_offset_is_the_same_under_both_names(beside: Setting, place: tuple[str, int]) -> None:
    assert beside.commit({place: 2}) == [Code.NONE]
    assert beside.fetched() == {place: Committed(2, 0)}
    assert beside.fetched([LOG, COMPACTED]) == {LOG: Committed(2, 0), COMPACTED: Committed(2, 0)}
    assert [position.compacted for position in beside.groups.positions(GROUP)] == [place is COMPACTED]
    assert beside.offsets.topics(GROUP) == {"states"}
    assert beside.offsets.delete(GROUP, [place]) is Code.NONE and beside.fetched() == {}


def test_a_group_that_reads_both_is_refused(beside: Setting) -> None:
    assert beside.commit({LOG: 1, COMPACTED: 2}) == [Code.INVALID_REQUEST, Code.INVALID_REQUEST]
    assert beside.fetched() == {}


def test_a_topic_that_is_compacted_in_place_has_one_name() -> None:
    setting = Setting({})
    setting.put("a", "b")
    assert setting.commit({COMPACTED: 1}) == [Code.UNKNOWN_TOPIC_OR_PARTITION]
    assert setting.commit({LOG: 1}) == [Code.NONE]
    (position,) = setting.groups.positions(GROUP)
    setting.groups.commit([position.__class__(GROUP, position.log, position.cursor, True, 1)], "alpha")
    assert setting.fetched() == setting.fetched([LOG, COMPACTED]) == {LOG: Committed(1, 0)}


@pytest.mark.parametrize("place, misses", [(LOG, False), (COMPACTED, True)])
def test_only_who_reads_the_view_misses_its_deletes(beside: Setting, place: tuple[str, int], misses: bool) -> None:
    assert beside.commit({place: 2}) == [Code.NONE]
    beside.put("B", "c")
    beside.topic.compact()
    beside.clock.advance(LOOK_MS)
    (position,) = beside.groups.positions(GROUP)
    state = beside.topic.state()
    told = continuation(position.cursor, state, state.log(0), compacted=position.compacted)
    assert isinstance(told, MissedDeletes) is misses
    assert beside.commit({place: 4}) == [Code.NONE]
    (position,) = beside.groups.positions(GROUP)
    assert position.cursor.is_untold is misses


def test_members_of_a_topic_whose_name_is_the_views_now_move_no_position(beside: Setting) -> None:
    topic = beside.lake.create_topic("states.compacted", 1)
    topic.append([lithify.Record(key=b"k", value=b"v")] * 3)
    beside.clock.advance(LOOK_MS)
    assert beside.offsets.hold(GROUP, [LOG, COMPACTED]) and beside.fetched([LOG, COMPACTED]) == {}
    assert beside.commit({LOG: 1, COMPACTED: 2}) == [Code.NONE, Code.NONE]
    beside.lake.delete_topic("states.compacted")
    beside.clock.advance(LOOK_MS)
    assert beside.commit({COMPACTED: 3}) == [Code.UNKNOWN_TOPIC_OR_PARTITION]
    assert beside.fetched() == {LOG: Committed(1, 0)}
    beside.fetched([COMPACTED])  # of members that have found out
    assert beside.commit({COMPACTED: 2}) == [Code.NONE]


def test_members_of_a_view_whose_name_is_a_topics_now_commit_nothing_for_it(beside: Setting) -> None:
    assert beside.offsets.hold(GROUP, [COMPACTED]) and beside.fetched([COMPACTED]) == {}
    assert beside.commit({COMPACTED: 2}) == [Code.NONE]
    beside.lake.create_topic("states.compacted", 1).append([lithify.Record(key=b"k", value=b"v")] * 3)
    beside.clock.advance(LOOK_MS)
    assert beside.commit({COMPACTED: 3}) == [Code.UNKNOWN_TOPIC_OR_PARTITION]


def test_members_that_start_after_a_cut_begin_there(beside: Setting) -> None:
    assert beside.commit({COMPACTED: 3}) == [Code.NONE]
    beside.topic.truncate(0, 1, below_compacted=True)
    beside.put(*"cdef")
    beside.clock.advance(LOOK_MS)
    assert beside.fetched([LOG, COMPACTED]) == {LOG: Committed(1, 0), COMPACTED: Committed(1, 0)}
