"""Positions of Kafka's clients say what these were not told of, as far as a gateway can know it (C49)."""

from __future__ import annotations

import pytest

import lithify
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.committed import Commit
from lithify.kafka_server.groups.offsets import Offsets
from lithify.kafka_server.groups.tenure import Tenure
from lithify.rules.reading.continuation import Continuation, Continues, MissedDeletes, Truncated, Untold, continuation
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_groups import MemoryGroups
from support.kafka.group_servers import FIRST, GROUP, SECOND, OneTopic, Server


class Story:
    """A gateway that coordinates a group, and the topic that its members read."""

    def __init__(self) -> None:
        self.topics, self.groups, clock = OneTopic(), MemoryGroups("here"), FakeClock()
        self.topics.made.alter({"delete.retention.ms": "0"})
        tenure = Tenure(self.groups, "alpha", clock)
        self.server = Server(tenure, Offsets(self.groups, self.topics, tenure, clock))
        assert tenure.acquire(GROUP)
        assert self.server.offsets.hold(GROUP, [FIRST, SECOND])

    def put(self, *values: bytes | None, key: bytes | None = None) -> None:
        self.topics.made.append([lithify.Record(key or value, value, 1, partition=0) for value in values])

    def round_that_drops_a_delete(self) -> None:
        """Below offset 4; the log ends at 5."""
        self.put(b"old", b"gone", b"kept")
        self.put(None, key=b"gone")
        self.put(b"more")
        self.topics.made.compact()

    def check(self) -> None:
        for group, began in self.server.tenure.take_unchecked().items():
            self.server.offsets.check(group, began, self.server.offsets.look_anew([*began]))

    def committed(self, offset: int) -> Continuation:
        """What a reader of the lake is told that goes on after this commit."""
        assert self.server.commit(offset) == [Code.NONE]
        return self.told()

    def told(self) -> Continuation:
        state = self.topics.state
        (position,) = self.groups.positions(GROUP)
        return continuation(position.cursor, state, state.log(0), compacted=False)


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_round_between_the_start_and_the_first_commit(story: Story) -> None:
    assert story.server.fetched({FIRST}) == {}
    story.round_that_drops_a_delete()
    assert story.committed(5) == Untold()


def test_a_round_before_the_start_is_nothing_that_was_missed(story: Story) -> None:
    story.round_that_drops_a_delete()
    assert story.server.fetched({FIRST}) == {}
    assert story.committed(5) == Continues()
    story.check()
    assert story.told() == Continues()


def test_the_first_start_counts_until_there_is_a_commit(story: Story) -> None:
    assert story.server.fetched({FIRST}) == {}
    story.round_that_drops_a_delete()
    assert story.server.fetched({FIRST}) == {}
    assert story.committed(5) == Untold()


def test_who_starts_at_the_log_start_has_missed_no_earlier_round(story: Story) -> None:
    assert story.committed(0) == Continues()
    story.round_that_drops_a_delete()
    assert [*story.server.fetched({FIRST})] == [FIRST]
    assert story.committed(5) == Continues()


def test_what_administrators_ask_for_is_no_start(story: Story) -> None:
    assert story.server.fetched(None) == {}
    story.round_that_drops_a_delete()
    assert story.server.fetched({FIRST}) == {}
    assert story.committed(5) == Continues()


def test_a_round_and_its_undo_between_two_commits(story: Story) -> None:
    story.put(b"old", b"gone", b"kept")
    assert story.committed(2) == Continues()
    story.put(None, key=b"gone")
    story.put(b"more")
    story.topics.made.compact()
    story.topics.made.undo()
    assert story.committed(5) == Untold()


def test_an_undo_before_two_commits_is_nothing_that_was_missed(story: Story) -> None:
    story.round_that_drops_a_delete()
    story.topics.made.undo()
    assert story.committed(2) == Continues()
    assert story.committed(5) == Continues()


def test_a_round_that_this_gateway_did_not_know_at_the_commit(story: Story) -> None:
    story.put(b"old", b"gone", b"kept")
    assert story.committed(2) == Continues()
    story.put(None, key=b"gone")
    story.put(b"more")
    story.topics.old = story.topics.state
    story.topics.made.compact()
    assert story.server.commit(5) == [Code.NONE]
    assert story.server.commit(5) == [Code.NONE]
    assert story.topics.old is not None
    story.check()
    assert story.topics.old is None
    assert story.told() == Untold()
    assert story.server.committed() == [5]
    assert story.committed(5) == Untold()
    assert story.server.tenure.take_unchecked() == {}


def test_a_check_changes_nothing_if_nothing_was_missed(story: Story) -> None:
    story.put(b"old", b"gone", b"kept")
    assert story.committed(2) == Continues()
    assert story.committed(3) == Continues()
    story.put(None, key=b"gone")
    story.put(b"more")
    story.check()
    story.topics.made.compact()
    story.check()
    assert story.told() == MissedDeletes(4)


def test_members_of_a_topic_that_was_recreated_commit_nothing_for_the_next(story: Story) -> None:
    assert story.server.fetched({FIRST}) == {}
    story.put(b"old", b"gone", b"kept")
    assert story.committed(2) == Continues()
    story.topics.lake.delete_topic("shop/orders")
    story.topics.made = story.topics.lake.create_topic("shop/orders", 2)
    assert story.server.commit(3) == [Code.UNKNOWN_TOPIC_OR_PARTITION]
    assert story.server.fetched(None) == {}
    assert story.server.fetched({FIRST}) == {}
    assert story.server.commit(0) == [Code.NONE]
    assert story.server.committed() == [0]


def test_who_is_no_member_commits_after_a_topic_was_recreated(story: Story) -> None:
    assert story.committed(2)
    story.topics.lake.delete_topic("shop/orders")
    story.topics.made = story.topics.lake.create_topic("shop/orders", 2)
    commits = {FIRST: Commit(3)}
    assert story.server.offsets.commit(GROUP, commits, refusal=Code.UNKNOWN_MEMBER_ID) == {FIRST: Code.NONE}


@pytest.mark.parametrize(
    "commit, told",
    [(Commit(8), Untold()), (Commit(9, 1), Continues()), (Commit(6), Continues()), (Commit(8, 0), Truncated(9))],
)
def test_a_truncation_below_what_was_read(story: Story, commit: Commit, told: Continuation) -> None:
    """Only a client with an epoch notices it; one that commits less has gone back."""
    story.put(*[b"old"] * 8)
    assert story.committed(8) == Continues()
    story.topics.made.truncate(0, 5)
    story.put(*[b"new"] * 4)
    assert story.told() == Truncated(9)
    codes = story.server.offsets.commit(GROUP, {FIRST: commit}, refusal=Code.UNKNOWN_MEMBER_ID)
    assert codes == {FIRST: Code.NONE}
    assert story.told() == told
