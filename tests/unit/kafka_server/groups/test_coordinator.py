"""Coordinators at several gateways: one that was frozen, or has given a group up, changes nothing any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from lithify import Record
from lithify.coordination.groups.empty_group import EmptyGroup, reset
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.errors import CoordinationError
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups import seat
from lithify.kafka_server.groups.classic.joining import Join
from lithify.kafka_server.groups.committed import Commit, Committed
from lithify.kafka_server.groups.consumers import LAYOUT_MS
from lithify.kafka_server.groups.coordinator import Coordinator, Wanted
from lithify.kafka_server.groups.gateways import LEASE_MS
from lithify.kafka_server.groups.modern.beats import Beat
from lithify.kafka_server.groups.ranking import Gateway, heaviest
from lithify.kafka_server.groups.seat import FREE_MS, Shared
from lithify.kafka_server.groups.shares import MOST_BYTES
from lithify.kafka_server.logs.served_topics import LOOK_MS, ServedTopics
from lithify.model.groups.positions import GroupTopic
from lithify.model.names import LogId, TopicName
from lithify.testing import memory_lake
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_groups import MemoryGroups

GROUP, PLACE, LOG = "billing", ("shop.orders", 0), LogId(TopicName("shop", "orders"), 0)
CLASSIC = Join("", None, "client", "/host", 45_000, 60_000, "consumer", (("range", b""),), knows_ids=False)
JOINS = Beat("one", 0, None, None, "client", "/host", 20_000, frozenset({"shop.orders"}), None, frozenset(), None, None)


class Coordinators:
    """Two gateways, the first of which coordinates the group while it is there. `frozen` do not beat."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.lake = memory_lake(self.clock)
        self.lake.create_topic("shop/orders", 2)
        self.groups = MemoryGroups("here")
        shared = Shared(self.groups, MemoryCoordination())
        both = [Gateway("alpha", 9092), Gateway("beta", 9092)]
        first = heaviest(f"group {GROUP}", both)
        both.sort(key=lambda gateway: gateway != first)
        topics = ServedTopics(self.lake.warehouse)
        self.first, self.second = (Coordinator("here", own, shared, topics, self.clock) for own in both)
        self.frozen: set[Coordinator] = set()

    async def wait(self, ms: int) -> None:
        """Time passes, second by second."""
        for _ in range(0, ms, 1_000):
            self.clock.advance(1_000)
            for one in {self.first, self.second} - self.frozen:
                await one._looked()
                for name, room in one._rooms:
                    await one._tidied(name, room)

    @property
    def committed(self) -> int | None:
        return next((position.cursor.offset for position in self.groups.positions(GROUP)), None)


def run(story: Callable[[Coordinators], Coroutine[Any, Any, None]]) -> None:
    async def told() -> None:
        both = Coordinators()
        async with both.first, both.second:
            for task in (*both.first._running, *both.second._running):
                task.cancel()  # what they do once a second of the machine's clock
            await both.wait(2_000)
            await story(both)

    asyncio.run(told())


async def commit(at: Coordinator, offset: int, member_id: str = "one", epoch: int = 1) -> Code:
    return (await at.commit(GROUP, (member_id, None, epoch), {PLACE: Commit(offset)}))[PLACE]


def test_a_gateway_that_was_frozen_knows_no_members_of_before() -> None:
    async def story(both: Coordinators) -> None:
        assert (await both.first.consumer_heartbeat(GROUP, JOINS)).error is Code.NONE
        assert await commit(both.first, 10) is Code.NONE
        both.frozen.add(both.first)
        await both.wait(LEASE_MS + 2_000)
        assert (await both.second.consumer_heartbeat(GROUP, JOINS)).error is Code.NONE
        assert await commit(both.second, 50) is Code.NONE
        leaves = Beat("one", -1, None, None, "client", "/host", 0, None, None, frozenset(), None, None)
        assert (await both.second.consumer_heartbeat(GROUP, leaves)).error is Code.NONE
        await both.wait(FREE_MS + 2_000)
        both.first._tenure.beat()
        assert await commit(both.first, 20) is not Code.NONE
        assert both.committed == 50

    run(story)


def test_leases_are_given_up_whatever_waits_meanwhile() -> None:
    async def story(both: Coordinators) -> None:
        room = await both.first._entered(GROUP, None)
        assert not isinstance(room, Code)
        async with room.lock:
            waits = [asyncio.create_task(commit(both.first, 5, "", -1))]
            waits.append(asyncio.create_task(both.first._hold(GROUP, room, [PLACE])))
            for _ in range(5):
                await asyncio.sleep(0)
            both.first._rooms.drop(GROUP)
            both.first._tenure.give_up(GROUP)
        assert [await one for one in waits] == [Code.NOT_COORDINATOR, False]
        assert both.second._tenure.acquire(GROUP)
        assert not both.second._tenure.hold(GROUP, [LOG])

    run(story)


def test_members_go_on_at_what_was_reset_while_their_gateway_stopped() -> None:
    async def story(both: Coordinators) -> None:
        assert (await both.first.consumer_heartbeat(GROUP, JOINS)).error is Code.NONE
        assert await commit(both.first, 10) is Code.NONE
        both.frozen.add(both.first)  # and it leaves, as when it is stopped
        both.first._tenure.leave()
        both.first._gateways.leave()
        empty = EmptyGroup(both.groups, "person", LEASE_MS, both.clock, lambda _what, _ms: None)
        (position,) = both.groups.positions(GROUP)
        back = replace(position, cursor=replace(position.cursor, offset=3))
        reset(empty, GroupTopic("here", GROUP, LOG.topic), [back])
        await both.wait(2_000)
        assert await commit(both.second, 11) is Code.UNKNOWN_MEMBER_ID
        assert (await both.second.consumer_heartbeat(GROUP, JOINS)).error is Code.NONE
        found = await both.second.fetch({GROUP: Wanted({PLACE})})
        assert found == {GROUP: {PLACE: Committed(3, 0)}}

    run(story)


def test_what_was_committed_is_checked_again_in_later_versions() -> None:
    async def story(both: Coordinators) -> None:
        orders = both.lake.topic("shop/orders")
        orders.alter({"delete.retention.ms": "0"})
        orders.append([Record(b"gone", b"1", 1, partition=0), Record(b"kept", b"2", 1, partition=0)])
        await both.first.consumer_heartbeat(GROUP, JOINS)
        await both.first.fetch({GROUP: Wanted({PLACE})})
        orders.append([Record(b"gone", None, 1, partition=0), Record(b"more", b"3", 1, partition=0)])
        orders.compact()
        assert await commit(both.first, 4) is Code.NONE  # known by a check of the catalog that is older
        assert [position.cursor.is_untold for position in both.groups.positions(GROUP)] == [False]
        await both.first._check_commits()
        assert [position.cursor.is_untold for position in both.groups.positions(GROUP)] == [True]

    run(story)


def test_nothing_is_counted_of_groups_that_were_given_up() -> None:
    async def story(both: Coordinators) -> None:
        assert (await both.first.consumer_heartbeat(GROUP, replace(JOINS, token="alice"))).error is Code.NONE
        assert (await both.first.consumer_heartbeat(GROUP, replace(JOINS, member_id="two"))).error is Code.NONE
        assert not both.first._rooms.shares.takes({"alice": MOST_BYTES - MOST_BYTES // 4})
        room = both.first._rooms.get(GROUP)
        assert room is not None
        await both.first._give_up(GROUP)
        both.first._rooms.put(room, room.consumers)  # by who has still had it
        assert both.first._rooms.shares.takes({"alice": MOST_BYTES - MOST_BYTES // 4})
        assert both.first._rooms.shares.takes({None: MOST_BYTES})

    run(story)


def test_a_beat_leaves_what_a_request_has_given_up_or_begun_anew_meanwhile() -> None:
    """A beat has a list of groups, and waits for the database with each: an error would end all beats."""

    async def story(both: Coordinators) -> None:
        assert (await both.first.consumer_heartbeat(GROUP, JOINS)).error is Code.NONE
        room = both.first._rooms.get(GROUP)
        assert room is not None
        await both.first._give_up(GROUP)
        both.clock.advance(FREE_MS)
        await both.first._tidied(GROUP, room)
        assert (await both.first.consumer_heartbeat(GROUP, JOINS)).error is Code.NONE
        await both.first._tidied(GROUP, room)
        assert both.first._rooms.get(GROUP) not in (None, room)

    run(story)


def test_nothing_stays_in_memory_of_the_topics_of_a_member_that_is_refused() -> None:
    async def story(both: Coordinators) -> None:
        both.first._rooms.shares.add({None: MOST_BYTES})
        assert (await both.first.consumer_heartbeat(GROUP, JOINS)).error is Code.GROUP_MAX_SIZE_REACHED
        room = both.first._rooms.get(GROUP)
        assert room is not None and (room.layout, room.layout_bytes) == ({}, 0)

    run(story)


def test_members_of_both_protocols_that_come_at_once_do_not_share_a_group(monkeypatch) -> None:
    async def story(both: Coordinators) -> None:
        looked_up, joining = both.first._looked_up, list[asyncio.Task[Any]]()

        async def meanwhile(*given: Any) -> Any:
            joining.append(asyncio.create_task(both.first.join(GROUP, CLASSIC)))
            while both.first._rooms.get(GROUP).group.is_unused:  # type: ignore[union-attr]
                await asyncio.sleep(0)
            return await looked_up(*given)

        monkeypatch.setattr(both.first, "_looked_up", meanwhile)
        assert (await both.first.consumer_heartbeat(GROUP, JOINS)).error is Code.GROUP_ID_NOT_FOUND
        joining[0].cancel()

    run(story)


def test_a_member_that_comes_during_a_check_of_the_topics_keeps_its_own(monkeypatch) -> None:
    async def story(both: Coordinators) -> None:
        both.lake.create_topic("shop/late", 1)
        both.clock.advance(LOOK_MS)
        assert (await both.first.consumer_heartbeat(GROUP, JOINS)).error is Code.NONE
        room, asked, times = both.first._rooms.get(GROUP), both.first._asked, count(1)
        assert room is not None

        async def meanwhile(does: Callable[[], Any]) -> Any:
            found = await asked(does)
            if next(times) == 2:  # patterns, then topics
                monkeypatch.undo()
                late = replace(JOINS, member_id="two", topics=frozenset({"shop.late"}))
                assert (await both.first.consumer_heartbeat(GROUP, late)).error is Code.NONE
            return found

        monkeypatch.setattr(both.first, "_asked", meanwhile)
        both.clock.advance(LAYOUT_MS)
        await both.first._refreshed(room)
        assert next(times) == 3
        assert [number for _, number in room.consumers.target["two"]] == [0]

    run(story)


def test_a_position_that_members_of_the_log_need_is_not_deleted_as_the_views() -> None:
    async def story(both: Coordinators) -> None:
        both.lake.topic("shop/orders").alter({"compaction.mode": "side-by-side"})
        both.clock.advance(LOOK_MS)
        assert (await both.first.consumer_heartbeat(GROUP, JOINS)).error is Code.NONE
        assert await commit(both.first, 10) is Code.NONE
        view = ("shop.orders.compacted", 0)
        assert await both.first.delete(GROUP, [view]) == {view: Code.GROUP_SUBSCRIBED_TO_TOPIC}
        assert both.committed == 10

    run(story)


def test_an_outage_of_the_leases_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A beat comes each second."""

    def away() -> None:
        raise CoordinationError("the lease database is away")

    def told() -> int:
        return sum("cannot be renewed" in record.message for record in caplog.records)

    async def story(both: Coordinators) -> None:
        for times in (1, 2):
            with monkeypatch.context() as patch:
                patch.setattr(type(both.first._gateways), "look", lambda _: away())
                both.frozen = {both.second}
                await both.wait(5_000)
            assert told() == times
            await both.wait(1_000)

    run(story)


def test_a_defect_ends_one_turn_of_what_is_done_each_second(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(both: Coordinators) -> None:
        turns: list[int] = []

        async def turn() -> None:
            turns.append(len(turns))
            if len(turns) < 3:
                raise KeyError("nobody knows why")

        monkeypatch.setattr(seat, "BEAT_S", 0)
        done = asyncio.create_task(both.first._each_second(turn))
        while len(turns) < 5:
            await asyncio.sleep(0)
        done.cancel()
        assert [record.message.count("KeyError") for record in caplog.records if "KeyError" in record.message] == [1]

    run(story)
