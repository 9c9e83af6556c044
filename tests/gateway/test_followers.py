"""Those who follow a gateway: what they are told after a break, when they read slowly, and while the catalog hangs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import sleep
from typing import Any

import pytest
from starlette.requests import Request

import lithify
from lithify.api.lake import Lake
from lithify.daemons.cleaner.cleaner_options import RoundProgress
from lithify.gateway.access.callers import LOCAL, put_caller
from lithify.gateway.server.live import watched as watching
from lithify.gateway.server.live.events import KEPT, Events
from lithify.gateway.server.live.stream import Live
from lithify.gateway.server.live.watched import Watched
from lithify.reports.events import CleanerEvent, EventKind
from lithify.service.look.overview import StatusWatch
from lithify.testing import FakeClock, memory_lake

ENOUGH_S = 20.0


def live_of(lake: Lake) -> Live:
    events = Events()
    return Live("g1", "r1", "p1", events, Watched(lake, events))


async def following(live: Live, query: str = "") -> AsyncIterator[str]:
    """The texts of the events that a follower gets."""
    scope: dict[str, Any] = {"type": "http", "query_string": query.encode(), "headers": []}
    put_caller(scope, LOCAL)
    answer: Any = await live.answer(Request(scope))
    async for text in answer.body_iterator:
        yield text


async def next_of(told: AsyncIterator[str]) -> tuple[int, str]:
    """The number and the kind of the next event."""
    number, kind = (await asyncio.wait_for(anext(told), ENOUGH_S)).splitlines()[:2]
    return int(number.removeprefix("id: ")), kind.removeprefix("event: ")


def ran(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def stopped(events: Events, times: int) -> None:
    for number in range(times):
        events.told(CleanerEvent(EventKind.STOPPED, number, "c", None, {"reason": "x"}))


def a_round(*, ended: bool = False) -> RoundProgress:
    return RoundProgress("w", ("t",), 1, ended=ended)


def test_who_comes_back_too_late_for_what_is_kept_begins_anew():
    live = live_of(memory_lake())
    live.events.proceeded(a_round())
    live.events.proceeded(a_round(ended=True))
    stopped(live.events, KEPT - 1)

    async def come_back() -> None:
        assert await next_of(following(live, "run=r1&after=1")) == (1, "hello")
        stopped(live.events, 1)  # in the place of the end of that round
        assert await next_of(following(live, "run=r1&after=1")) == (0, "hello")
        assert await next_of(following(live, "run=r1&after=2")) == (2, "hello")

    ran(come_back())


def test_who_reads_too_slowly_for_what_is_kept_begins_anew():
    live = live_of(memory_lake())

    async def read_slowly() -> None:
        told = following(live)
        assert await next_of(told) == (0, "hello")
        live.events.proceeded(a_round())
        assert await next_of(told) == (1, "round")
        live.events.proceeded(a_round(ended=True))
        stopped(live.events, KEPT)
        assert await next_of(told) == (0, "hello")
        assert [await next_of(told) for _ in range(KEPT)] == [(number, "cleaner") for number in range(3, 3 + KEPT)]

    ran(read_slowly())


def test_who_cannot_be_told_of_all_topics_that_are_gone_begins_anew(monkeypatch):
    monkeypatch.setattr(watching, "GONE_KEPT", 2)
    lake = memory_lake()
    live = live_of(lake)
    for name in "abcd":
        lake.create_topic(name)
    live.watched.overview()

    async def follow() -> None:
        told = following(live)
        assert await next_of(told) == (0, "hello")
        for name in "abc":
            lake.delete_topic(name)
        live.watched.overview()
        assert await next_of(told) == (0, "hello")
        lake.delete_topic("d")
        live.watched.overview()
        assert await next_of(told) == (0, "topics")

    ran(follow())


def test_events_come_while_the_catalog_does_not_answer(monkeypatch):
    lake = memory_lake()
    live = live_of(lake)
    asked, answers = Event(), Event()
    real = type(lake.warehouse.store).change_tokens

    def hangs(store: Any) -> Any:
        asked.set()
        assert answers.wait(ENOUGH_S)
        return real(store)

    monkeypatch.setattr(type(lake.warehouse.store), "change_tokens", hangs)

    async def follow() -> None:
        told = following(live)
        assert await next_of(told) == (0, "hello")
        coming = asyncio.ensure_future(next_of(told))
        await asyncio.to_thread(asked.wait, ENOUGH_S)
        stopped(live.events, 1)
        try:
            assert await asyncio.wait_for(coming, ENOUGH_S / 4) == (1, "cleaner")
        finally:
            answers.set()

    ran(follow())


def test_all_topics_are_no_news_at_the_first_look():
    lake = memory_lake()
    lake.create_topic("a")
    watched = Watched(lake)
    watched.try_look()
    assert watched.since(0).rows == ()
    lake.create_topic("b")
    watched.try_look()
    assert [row.topic for row in watched.since(0).rows] == ["b"]


def test_all_topics_of_a_catalog_without_any_at_first_are_news():
    lake = memory_lake()
    watched = Watched(lake)
    watched.try_look()
    lake.create_topic("a")
    watched.try_look()
    assert [row.topic for row in watched.since(0).rows] == ["a"]


def test_who_is_told_late_is_told_for_how_long_a_topic_is_overdue_by_then():
    clock = FakeClock(1_700_000_000_000)
    lake = memory_lake(clock)
    late = lake.create_topic("late", config={"max.compaction.lag.ms": 1_000})
    late.append([lithify.Record(b"a", b"1")])
    watched = Watched(lake)
    watched.overview()
    number = watched.number
    clock.advance(5_000)
    watched.overview()
    clock.advance(60_000)
    lake.create_topic("other")
    shown = {row.topic: row.overdue_ms for row in watched.overview().topics}
    assert shown["late"] > 60_000
    assert {row.topic: row.overdue_ms for row in watched.since(number).rows} == shown


def test_those_who_wait_for_a_look_share_the_next_one(monkeypatch):
    lake = memory_lake()
    watched = Watched(lake)
    begun, may_end = Event(), Event()
    looks = 0
    real = StatusWatch.overview

    def slow(watch: StatusWatch) -> Any:
        nonlocal looks
        looks += 1
        begun.set()
        assert may_end.wait(ENOUGH_S)
        return real(watch)

    monkeypatch.setattr(StatusWatch, "overview", slow)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(watched.overview)
        assert begun.wait(ENOUGH_S)
        others = [pool.submit(watched.overview) for _ in range(7)]
        sleep(0.3)  # all of them wait by then
        lake.create_topic("later")
        may_end.set()
        assert all([row.topic for row in other.result().topics] == ["later"] for other in others)
        first.result()
    assert looks == 2


def test_a_list_is_of_one_time_though_another_is_made_meanwhile(monkeypatch):
    lake = memory_lake()
    for name in ("bad", "good"):
        lake.create_topic(name)
    real = type(lake.warehouse.store).load_at

    def load_at(store: Any, name: Any, token: str | None) -> Any:
        if name.topic == "bad":
            raise lithify.errors.DamagedError("bad: it cannot be read")
        return real(store, name, token)

    monkeypatch.setattr(type(lake.warehouse.store), "load_at", load_at)
    watched = Watched(lake)

    def meanwhile(_name: str, _error: Exception) -> None:
        lake.create_topic("later")
        watched.listed(lambda _name, _error: None)

    assert [info.topic for info in watched.listed(meanwhile)] == ["good"]


@pytest.mark.parametrize("error", [KeyError("x"), lithify.errors.WarehouseError("x")])
def test_a_look_that_fails_in_any_way_is_told(monkeypatch, error):
    watched = Watched(memory_lake())

    def fails(_watch: StatusWatch) -> Any:
        raise error

    monkeypatch.setattr(StatusWatch, "overview", fails)
    watched.try_look()
    assert watched.error is not None
    monkeypatch.undo()
    watched.try_look()
    assert watched.error is None
