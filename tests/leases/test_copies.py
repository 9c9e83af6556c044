"""What every place for positions does with those that are copied to a replica (C68)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from leases.conftest import SHARED, Open
from lithify.coordination.leases import copies_sql
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.groups_sql import SqlGroups
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.model.cursor import Cursor
from lithify.model.groups.copies import CopiedPositions
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName
from lithify.ports.groups import NEVER_COPIED, Groups
from lithify.ports.leases import Lease
from lithify.testing.memory_groups import MemoryGroups
from support.servers.postgres import Postgres

SCOPE = "file:///backup"
ORDERS, CLICKS = TopicName("default", "orders"), TopicName("web", "clicks")


def at(
    offset: int, partition: int = 0, group: str = "g", topic: TopicName = ORDERS, identity: str = "replica"
) -> Position:
    cursor = Cursor(identity, 2, offset, 7)
    return Position(group, LogId(topic, partition), cursor, False, 1_700_000_000_000 + offset)


def lease(position: Position) -> str:
    return GroupTopic(SCOPE, position.group, position.log.topic).partition(position.log.partition)


def committed(groups: Groups, *positions: Position) -> None:
    """As a member does that ends in order."""
    names = [lease(position) for position in positions]
    groups.leases.take([Lease(name, "member", 1) for name in names], {})
    assert groups.commit(positions, "member") == frozenset()
    groups.leases.release("member", names)


def deleted(groups: Groups, position: Position) -> None:
    groups.leases.take([Lease(lease(position), "person", 1)], {})
    assert groups.delete(position.group, [position.log], "person") == frozenset()
    groups.leases.release("person", [lease(position)])


def copied(groups: Groups, *positions: Position, topic: TopicName = ORDERS) -> CopiedPositions:
    return groups.copies.copy(topic, positions, groups.copies.fence(topic))


def test_positions_are_written_moved_either_way_and_removed_as_those_of_the_source(opened: Open) -> None:
    groups = opened(SCOPE)
    assert groups.copies.fence(ORDERS) == 0
    assert copied(groups) == CopiedPositions()
    assert copied(groups, at(5), at(9, partition=1), at(3, group="h")) == CopiedPositions(written=3)
    other = opened(SCOPE)
    assert copied(other, at(5), at(2, partition=1)) == CopiedPositions(same=1, written=1, removed=1)
    assert opened(SCOPE).positions() == (at(5), at(2, partition=1))
    assert copied(groups) == CopiedPositions(removed=2)
    assert opened(SCOPE).positions() == ()


def test_a_first_copy_into_a_new_warehouse_has_read_no_fence(opened: Open) -> None:
    groups = opened(SCOPE)
    assert groups.copies.copy(ORDERS, [at(5)], NEVER_COPIED) == CopiedPositions(written=1)
    assert groups.positions() == (at(5),)


def test_topics_and_warehouses_are_apart(opened: Open) -> None:
    clicks = at(1, topic=CLICKS)
    for groups in (opened(SCOPE), opened("file:///other")):
        copied(groups, at(5))
        copied(groups, clicks, topic=CLICKS)
    assert copied(opened(SCOPE)).removed == 1
    assert opened(SCOPE).positions() == (clicks,)
    assert opened("file:///other").positions() == (at(5), clicks)


def test_what_a_member_has_committed_or_a_person_has_reset_stays(opened: Open) -> None:
    groups = opened(SCOPE)
    committed(groups, at(4, group="mine"))
    copied(groups, at(5), at(7, group="mine"))
    committed(groups, at(2))
    assert copied(groups, at(8), at(9, group="mine")) == CopiedPositions(own=2)
    assert copied(groups) == CopiedPositions(own=1)
    assert groups.positions() == (at(2), at(4, group="mine"))


def test_a_commit_of_the_same_offset_is_the_groups_own_too(opened: Open) -> None:
    groups = opened(SCOPE)
    copied(groups, at(5))
    own = replace(at(5), committed_ms=1_700_000_000_900)
    committed(groups, own)
    assert copied(groups, at(8)).own == 1
    assert groups.positions() == (own,)


def test_a_position_that_is_deleted_follows_the_source_again(opened: Open) -> None:
    groups = opened(SCOPE)
    copied(groups, at(5))
    committed(groups, at(2))
    deleted(groups, at(2))
    assert copied(groups, at(5)) == CopiedPositions(written=1)
    deleted(groups, at(5))
    assert copied(groups, at(6)) == CopiedPositions(written=1)
    assert groups.positions() == (at(6),)


def test_positions_of_an_earlier_topic_stay_unless_copies_wrote_them(opened: Open) -> None:
    groups = opened(SCOPE)
    committed(groups, at(4, group="mine", identity="earlier"))
    copied(groups, at(5, identity="earlier"))
    assert copied(groups, at(6), at(7, group="mine")) == CopiedPositions(written=1, own=1)
    assert groups.positions() == (at(6), at(4, group="mine", identity="earlier"))


def test_a_partition_that_a_member_holds_is_left_until_it_ends(opened: Open) -> None:
    groups = opened(SCOPE)
    copied(groups, at(5), at(6, partition=1), at(7, partition=2))
    groups.leases.take([Lease(lease(at(0, partition=p)), "member", 1) for p in (0, 1)], {})
    done = copied(groups, at(8), at(9, partition=2))
    assert done == CopiedPositions(written=1, held=2) and not done.is_complete
    assert groups.positions() == (at(5), at(6, partition=1), at(9, partition=2))
    groups.leases.release("member", [lease(at(0, partition=p)) for p in (0, 1)])
    assert copied(groups, at(8), at(9, partition=2)) == CopiedPositions(same=1, written=1, removed=1)


def test_a_copy_that_was_frozen_changes_nothing_once_another_one_has_come(opened: Open) -> None:
    frozen, groups = opened(SCOPE), opened(SCOPE)
    copied(groups, at(5))
    fence = frozen.copies.fence(ORDERS)
    copied(groups, at(9))
    late = frozen.copies.copy(ORDERS, [at(7), at(3, group="h")], fence)
    assert late == CopiedPositions(overtaken=True) and not late.is_complete
    assert groups.positions() == (at(9),)
    assert copied(frozen, at(9)).same == 1


def reset(groups: Groups, position: Position) -> None:
    groups.leases.take([Lease(lease(position), "person", 1)], {})
    assert groups.reset([position], "person") == frozenset()
    groups.leases.release("person", [lease(position)])


FENCED: dict[str, Callable[[Groups], object]] = {
    "a deletion": lambda groups: deleted(groups, at(5)),
    "a reset": lambda groups: reset(groups, at(5)),
    "a promotion": lambda groups: groups.copies.raise_fence(ORDERS),
}


@pytest.mark.parametrize("were_copied", [True, False], ids=["after a copy", "before any copy"])
@pytest.mark.parametrize("what", FENCED)
def test_a_copy_that_was_frozen_changes_nothing_after(opened: Open, what: str, were_copied: bool) -> None:
    frozen, groups = opened(SCOPE), opened(SCOPE)
    if were_copied:
        copied(groups, at(5))
        copied(groups, at(1, topic=CLICKS), topic=CLICKS)
    fence, other = frozen.copies.fence(ORDERS), frozen.copies.fence(CLICKS)
    FENCED[what](groups)
    before = groups.positions()
    assert frozen.copies.copy(ORDERS, [at(7)], fence) == CopiedPositions(overtaken=True)
    assert groups.positions() == before
    assert not frozen.copies.copy(CLICKS, [at(9, topic=CLICKS)], other).overtaken, "another topic"


def test_who_may_not_change_a_position_raises_no_fence(opened: Open) -> None:
    groups = opened(SCOPE)
    committed(groups, at(5))
    fence = groups.copies.fence(ORDERS)
    assert groups.delete("g", [at(5).log], "person") == groups.reset([at(6)], "person") == {at(5).log}
    assert groups.copies.fence(ORDERS) == fence


def test_copies_and_those_who_raise_the_fence_never_wait_for_each_other_for_ever(
    server: Postgres, database: str
) -> None:
    """Copies lock the fence, then positions: so do resets and deletions. SQLite locks no rows."""
    partitions = range(4)
    many = [SqlGroups(Transactions(engine_at(server.uri(database))), SCOPE) for _ in range(3)]
    names = [lease(at(0, partition=p)) for p in partitions]
    many[0].leases.take([Lease(name, "person", 1) for name in names], {})
    assert many[0].copies.fence(ORDERS) == 0

    def copies() -> None:
        for offset in range(20):
            copied(many[0], *(at(offset, partition=p) for p in partitions))

    def resets() -> None:
        for offset in range(20):
            assert many[1].reset([at(offset, partition=p) for p in partitions], "person") == frozenset()

    def deletes() -> None:
        for _ in range(20):
            assert many[2].delete("g", [at(0, partition=p).log for p in partitions], "person") == frozenset()

    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(work) for work in (copies, resets, deletes)]:
            future.result()
    assert many[0].copies.fence(ORDERS) >= 40


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_of_copies_at_once_one_is_stored(url: str) -> None:
    many = [SqlGroups(Transactions(engine_at(url)), SCOPE) for _ in range(6)]
    for round_ in range(5):
        fence = many[0].copies.fence(ORDERS)
        with ThreadPoolExecutor(len(many)) as pool:
            futures = [
                pool.submit(g.copies.copy, ORDERS, [at(100 * round_ + n, partition=p) for p in range(5)], fence)
                for n, g in enumerate(many)
            ]
        done = [future.result() for future in futures]
        (stored,) = (n for n, one in enumerate(done) if not one.overtaken)
        assert {position.cursor.offset for position in many[0].positions()} == {100 * round_ + stored}


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_a_commit_during_a_copy_is_never_lost(url: str) -> None:
    """Members commit while copies come one after the other: what was committed last is there at the end."""
    groups, copies = (SqlGroups(Transactions(engine_at(url)), SCOPE) for _ in range(2))
    partitions = range(4)
    copied(copies, *(at(0, partition=p) for p in partitions))

    def commits() -> None:
        for partition in partitions:
            committed(groups, at(1_000 + partition, partition=partition))

    def copying() -> None:
        for offset in range(1, 30):
            copied(copies, *(at(offset, partition=p) for p in partitions))

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(copying), pool.submit(commits)]:
            future.result()
    assert [position.cursor.offset for position in groups.positions()] == [1_000 + p for p in partitions]


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_many_positions_are_copied_in_short_transactions(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies_sql, "PAGE", 7)
    groups = SqlGroups(Transactions(engine_at(url)), SCOPE)
    many = [at(n, partition=n, group=group) for group in "ab" for n in range(20)]
    assert copied(groups, *many) == CopiedPositions(written=40)
    assert groups.copies.fence(ORDERS) == 6
    assert copied(groups, *many[:30]) == CopiedPositions(same=30, removed=10)
    assert groups.positions() == tuple(many[:30])


def test_tokens_change_with_every_change_of_a_position(opened: Open) -> None:
    groups = opened(SCOPE)
    assert groups.tokens() == {}
    seen = []
    for change in (
        lambda: committed(groups, at(5)),
        lambda: committed(groups, at(9)),
        lambda: committed(groups, at(5)),
        lambda: committed(groups, replace(at(5), committed_ms=1)),
        lambda: committed(groups, at(5, group="h")),
        lambda: deleted(groups, at(5)),
        lambda: committed(groups, at(0, partition=1)),
    ):
        change()
        seen.append(groups.tokens()[ORDERS])
        assert groups.tokens()[ORDERS] == seen[-1]
    assert all(before != after for before, after in pairwise(seen))
    committed(groups, at(1, topic=CLICKS))
    assert groups.tokens().keys() == {ORDERS, CLICKS} and groups.tokens()[ORDERS] == seen[-1]


class CopiesMachine(RuleBasedStateMachine):
    """Any order of commits, deletes, leases and copies, also late ones: SQLite does what the memory does."""

    folder: Path
    number = 0

    @initialize()
    def begin(self) -> None:
        CopiesMachine.number += 1
        url = f"sqlite:///{self.folder}/{CopiesMachine.number}.db"
        self.both: tuple[Groups, Groups] = (MemoryGroups(SCOPE), SqlGroups(Transactions(engine_at(url)), SCOPE))
        self.fences = [0]
        self.same(lambda groups: groups.copies.fence(ORDERS))  # as every copy begins
        self.source: tuple[Position, ...] = ()
        self.now = 0

    def same(self, do: Callable[[Groups], object]) -> object:
        first, second = (do(groups) for groups in self.both)
        assert first == second
        return first

    def position(self, group: str, partition: int, offset: int) -> Position:
        self.now += 1
        return replace(at(offset, partition, group), committed_ms=self.now)

    @rule(
        places=st.lists(st.tuples(st.sampled_from("gh"), st.integers(0, 1), st.integers(0, 9)), max_size=4),
    )
    def source_moves(self, places: Collection[tuple[str, int, int]]) -> None:
        found = {(group, partition): self.position(group, partition, offset) for group, partition, offset in places}
        self.source = tuple(found.values())

    @rule(back=st.integers(1, 3))
    def copy(self, back: int) -> None:
        """With the fence of now, or an earlier one."""
        fence = self.fences[-min(back, len(self.fences))]
        before = self.both[0].positions()
        done = self.same(lambda groups: groups.copies.copy(ORDERS, self.source, fence))
        assert isinstance(done, CopiedPositions)
        if done.overtaken:
            assert fence != self.fences[-1] and self.both[0].positions() == before
        self.noted_fence()

    def noted_fence(self) -> None:
        now = self.same(lambda groups: groups.copies.fence(ORDERS))
        if now != self.fences[-1]:
            self.fences.append(int(str(now)))

    @rule(group=st.sampled_from("gh"), partition=st.integers(0, 1), offset=st.integers(0, 9))
    def commits(self, group: str, partition: int, offset: int) -> None:
        own = self.position(group, partition, offset)
        if not self.both[0].leases.leases(lease(own)):
            self.same(lambda groups: committed(groups, own))

    @rule(group=st.sampled_from("gh"), partition=st.integers(0, 1))
    def deletes(self, group: str, partition: int) -> None:
        if not self.both[0].leases.leases(lease(at(0, partition, group))):
            self.same(lambda groups: deleted(groups, at(0, partition, group)))
            self.noted_fence()

    @rule(group=st.sampled_from("gh"), partition=st.integers(0, 1), offset=st.integers(0, 9))
    def resets(self, group: str, partition: int, offset: int) -> None:
        position = self.position(group, partition, offset)
        if not self.both[0].leases.leases(lease(position)):
            self.same(lambda groups: reset(groups, position))
            self.noted_fence()

    @rule(group=st.sampled_from("gh"), partition=st.integers(0, 1), joins=st.booleans())
    def member(self, group: str, partition: int, joins: bool) -> None:
        name = lease(at(0, partition, group))
        if joins:
            self.same(lambda groups: bool(groups.leases.take([Lease(name, "reader", 1)], {}) and False))
        else:
            self.same(lambda groups: groups.leases.release("reader", [name]))

    @invariant()
    def is_the_same(self) -> None:
        if hasattr(self, "both"):
            self.same(lambda groups: groups.positions())


def test_any_order_of_copies_commits_and_members(tmp_path: Path) -> None:
    CopiesMachine.folder = tmp_path
    run_state_machine_as_test(
        CopiesMachine,
        settings=settings(
            max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def test_reading_needs_no_right_to_create_tables(server: Postgres, database: str) -> None:
    groups = SqlGroups(Transactions(engine_at(server.uri(database))), SCOPE)
    groups.copies.raise_fence(ORDERS)
    assert (groups.tokens(), groups.positions(), groups.copies.copy(ORDERS, (), 0)) == ({}, (), CopiedPositions())
    assert server.run("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", database) == []
