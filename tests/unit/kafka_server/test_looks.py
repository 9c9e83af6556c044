"""Which topics clients of Kafka see, how new they are, and what that costs the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import Any

import pytest

from lithify.errors import DamagedError, WarehouseError
from lithify.kafka_server.logs.served_topics import LOOK_MS, PAUSE, UNKNOWN_IDS_MS, ServedTopics
from lithify.model.names import TopicName, parse_topic
from lithify.model.record import Record
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.service.write.append import append
from support.builders import some_settings
from support.topics.memory_topic import a_warehouse

ORDERS, CLICKS = (parse_topic(name).name for name in ("shop/orders", "clicks"))


@pytest.fixture
def lake() -> Warehouse:
    return a_warehouse(ORDERS, CLICKS)


@pytest.fixture
def served(lake: Warehouse) -> Iterator[ServedTopics]:
    topics = ServedTopics(lake)
    yield topics
    topics.close()


@pytest.fixture
def calls(lake: Warehouse, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The looks, and the topics that were loaded."""
    told: list[str] = []
    change_tokens, load_at = lake.store.change_tokens, lake.store.load_at

    def looked() -> Any:
        told.append("look")
        return change_tokens()

    def loaded(name: TopicName, token: str | None) -> Any:
        told.append(name.topic)
        return load_at(name, token)

    monkeypatch.setattr(lake.store, "change_tokens", looked)
    monkeypatch.setattr(lake.store, "load_at", loaded)
    return told


def add(lake: Warehouse, name: TopicName) -> None:
    append(lake, name, [Record(b"k", b"v", 0)])


def create(lake: Warehouse, name: TopicName) -> None:
    lake.store.create_topic(NewTopic(name, str(name), some_settings(), 1, 0))


def test_topics_by_name_and_id(served: ServedTopics) -> None:
    assert served.listed() == {"clicks": CLICKS, "shop.orders": ORDERS}
    topic = served.topic("shop.orders")
    assert topic is not None and (topic.name, topic.kafka_name, [*topic.partitions]) == (ORDERS, "shop.orders", [0])
    assert served.topic(topic.topic_id) is topic
    assert served.topic("shop/orders") is served.topic(bytes(16)) is None


def test_many_questions_are_one_look_and_one_load(served: ServedTopics, calls: list[str]) -> None:
    for _ in range(5):
        served.topic("clicks")
        served.names()
    assert calls == ["look", "clicks"]


def test_a_topic_is_loaded_once_it_has_changed(served: ServedTopics, lake: Warehouse, calls: list[str]) -> None:
    served.load(["clicks", "shop.orders", "others"])
    before = served.topic("clicks")
    add(lake, CLICKS)
    assert served.topic("clicks") is before and served.is_current(before)
    calls.clear()
    lake.clock.advance(LOOK_MS)
    after = served.topic("clicks")
    assert calls == ["look", "clicks"]
    assert after.log(0).end == before.log(0).end + 1 and not served.is_current(before)
    served.topic("shop.orders")
    assert calls == ["look", "clicks"]


def test_a_look_that_begins_now(served: ServedTopics, lake: Warehouse, calls: list[str]) -> None:
    served.topic("clicks")
    add(lake, CLICKS)
    assert served.topic("clicks", after=served.begun).log(0).end == 1
    assert served.topic("clicks").log(0).end == 1
    assert calls == ["look", "clicks", "look", "clicks"]


def test_all_who_ask_after_the_same_look_share_the_next_one(served: ServedTopics, calls: list[str]) -> None:
    served.load(["clicks", "shop.orders"])
    begun = served.begun
    for name in ("clicks", "shop.orders", "nothing", "clicks"):
        served.topic(name, after=begun)
    assert calls.count("look") == 2 and served.begun == begun + 1


def test_looks_that_clients_ask_for_take_half_of_the_time_at_most(lake: Warehouse, monkeypatch) -> None:
    tokens = lake.store.change_tokens

    def slowly() -> Any:
        lake.clock.advance(300)
        return tokens()

    monkeypatch.setattr(lake.store, "change_tokens", slowly)
    served, begun_ms = ServedTopics(lake), lake.clock.monotonic_ms()
    for _ in range(10):
        served.topic("clicks", after=served.begun)
    assert served.begun == 10 and lake.clock.monotonic_ms() - begun_ms == 10 * 300 + 9 * 300


def test_a_look_that_began_before_is_none_that_begins_now(served: ServedTopics, lake: Warehouse, monkeypatch) -> None:
    """While one thread has read the tokens, and has not told yet, another one asks for what is there now."""
    assert served.topic("clicks") is not None
    lake.clock.advance(LOOK_MS)
    change_tokens, was_read, goes_on = lake.store.change_tokens, Event(), Event()

    def held() -> Any:
        tokens = [*change_tokens()]
        was_read.set()
        assert goes_on.wait(10)
        return tokens

    monkeypatch.setattr(lake.store, "change_tokens", held)
    with ThreadPoolExecutor(2) as pool:
        early = pool.submit(served.names)
        assert was_read.wait(10)
        add(lake, CLICKS)
        late = pool.submit(served.topic, "clicks", after=served.begun)
        wait([late], 0.2)
        goes_on.set()
        assert early.result() and late.result().log(0).end == 1


def test_catalogs_without_tokens(served: ServedTopics, lake: Warehouse, calls: list[str], monkeypatch) -> None:
    """Only a load tells whether a topic has changed: once a look."""
    names = lake.store.topics()
    monkeypatch.setattr(lake.store, "change_tokens", lambda: ((name, None) for name in names))
    before = served.topic("clicks")
    assert served.topic("clicks") is before
    lake.clock.advance(LOOK_MS)
    assert served.topic("clicks") is before
    assert calls == ["clicks", "clicks"]


def test_looks_at_a_slow_catalog_are_few(served: ServedTopics, lake: Warehouse, calls: list[str], monkeypatch) -> None:
    change_tokens = lake.store.change_tokens

    def slow() -> Any:
        lake.clock.advance(100)
        return change_tokens()

    monkeypatch.setattr(lake.store, "change_tokens", slow)
    served.names()
    lake.clock.advance(PAUSE * 100 - 1)
    served.names()
    assert calls == ["look"]
    lake.clock.advance(1)
    served.names()
    assert calls == ["look", "look"]


def test_a_recreated_topic_has_another_id(served: ServedTopics, lake: Warehouse) -> None:
    before = served.topic("clicks")
    lake.store.drop_topic(CLICKS)
    lake.clock.advance(LOOK_MS)
    assert served.topic("clicks") is served.topic(before.topic_id) is None
    create(lake, CLICKS)
    lake.clock.advance(LOOK_MS)
    after = served.topic("clicks")
    assert after.topic_id != before.topic_id and served.topic(before.topic_id) is None
    assert served.topic(after.topic_id) is after


def test_nothing_is_kept_of_topics_that_are_gone(served: ServedTopics, lake: Warehouse) -> None:
    def known() -> tuple[int, ...]:
        kept = served._known, served._loading, served._names_by_id, served._shared._states
        return tuple(map(len, kept))

    served.load(served.names())
    before = known()
    for number in range(5):
        name = TopicName("shop", f"t{number}")
        for _ in range(2):
            create(lake, name)
            lake.clock.advance(LOOK_MS)
            assert served.topic(f"shop.t{number}") is not None
            lake.store.drop_topic(name)
    lake.clock.advance(LOOK_MS)
    assert "shop.t4" not in served.names()
    assert known() == before


def test_topics_that_come_to_one_name_are_not_served(served: ServedTopics, lake: Warehouse) -> None:
    topic = served.topic("shop.orders")
    create(lake, TopicName("default", "shop.orders"))
    lake.clock.advance(LOOK_MS)
    assert [*served.listed()] == ["clicks"] and [clash.kafka_name for clash in served.clashes()] == ["shop.orders"]
    assert served.topic("shop.orders") is served.topic(topic.topic_id) is None


def test_unknown_ids_load_all_topics_seldom(served: ServedTopics, lake: Warehouse, calls: list[str]) -> None:
    for _ in range(3):
        assert served.topic(b"x" * 16) is None
    assert sorted(calls) == ["clicks", "look", "orders"]
    create(lake, TopicName("default", "new"))
    lake.clock.advance(UNKNOWN_IDS_MS)
    assert served.topic(b"x" * 16) is None
    assert sorted(calls) == ["clicks", "look", "look", "new", "orders"]


def test_errors(served: ServedTopics, lake: Warehouse, monkeypatch) -> None:
    """Of one topic, and of the catalog, which is not asked again at once."""
    load_at, change_tokens = lake.store.load_at, lake.store.change_tokens

    def damaged(name: TopicName, token: str | None) -> Any:
        if name == CLICKS:
            raise DamagedError("clicks is damaged")
        return load_at(name, token)

    monkeypatch.setattr(lake.store, "load_at", damaged)
    with pytest.raises(DamagedError, match="clicks"):
        served.topic("clicks")
    assert served.topic("shop.orders") is not None

    def away() -> Any:
        raise WarehouseError("the catalog is away")

    monkeypatch.setattr(lake.store, "change_tokens", away)
    lake.clock.advance(LOOK_MS)
    with pytest.raises(WarehouseError):
        served.names()
    monkeypatch.setattr(lake.store, "change_tokens", change_tokens)
    with pytest.raises(WarehouseError):
        served.names()
    lake.clock.advance(LOOK_MS)
    assert served.names() and served.topic("shop.orders") is not None


def test_who_waits_is_told_once(served: ServedTopics, lake: Warehouse) -> None:
    told, others = Event(), Event()
    topic = served.topic("clicks")
    served.subscribe([served.topic("shop.orders")], others.set)
    served.subscribe([topic], told.set)
    add(lake, CLICKS)
    assert not told.wait(0.3)  # the clock stands, so that the last look is new
    lake.clock.advance(LOOK_MS)
    assert told.wait(10) and not others.is_set()
    assert served.topic("clicks").log(0).end == 1
    late = Event()
    served.subscribe([topic], late.set)
    assert late.is_set()


def test_who_cannot_be_told_keeps_no_one_from_being_told(served: ServedTopics, lake: Warehouse) -> None:
    told, topic = Event(), served.topic("clicks")

    def closed() -> None:
        raise RuntimeError("Event loop is closed")

    served.subscribe([topic], closed)
    served.subscribe([topic], told.set)
    add(lake, CLICKS)
    lake.clock.advance(LOOK_MS)
    assert served.topic("clicks").log(0).end == 1 and told.is_set()


def test_many_wait_for_one_topic_without_being_asked_at_each_look(served: ServedTopics, lake: Warehouse, monkeypatch):
    """Nor when others begin to wait, or end that."""
    asked, topic, told = list[None](), served.topic("clicks"), list[int]()
    is_current = served.is_current
    monkeypatch.setattr(ServedTopics, "is_current", lambda _served, one: (asked.append(None), is_current(one))[1])
    ends = [served.subscribe([topic], lambda number=number: told.append(number)) for number in range(1000)]
    ends[7]()
    served.look_for([CLICKS])
    assert len(asked) < 1100 and told == []
    add(lake, CLICKS)
    lake.clock.advance(LOOK_MS)
    served.look_for([CLICKS])
    assert told == [number for number in range(1000) if number != 7]


def test_who_waits_for_several_topics_is_told_of_each(served: ServedTopics, lake: Warehouse) -> None:
    told = list[None]()
    topics = [served.topic("clicks"), served.topic("shop.orders")]
    unsubscribe = served.subscribe(topics, lambda: told.append(None))
    add(lake, ORDERS)
    lake.clock.advance(LOOK_MS)
    served.load(["clicks", "shop.orders"])
    assert len(told) == 1
    unsubscribe()
    add(lake, CLICKS)
    lake.clock.advance(LOOK_MS)
    served.load(["clicks", "shop.orders"])
    assert len(told) == 1


def test_who_waits_is_told_of_a_topic_that_is_gone(served: ServedTopics, lake: Warehouse) -> None:
    told = Event()
    served.subscribe([served.topic("clicks")], told.set)
    lake.store.drop_topic(CLICKS)
    lake.clock.advance(LOOK_MS)
    assert told.wait(10) and served.topic("clicks") is None


def test_nobody_looks_when_nobody_waits(served: ServedTopics, lake: Warehouse, calls: list[str]) -> None:
    told = Event()
    unsubscribe = served.subscribe([served.topic("clicks")], told.set)
    unsubscribe()
    unsubscribe()
    add(lake, CLICKS)
    lake.clock.advance(LOOK_MS)
    assert not told.wait(0.5) and calls == ["look", "clicks"]


def test_a_look_that_fails_does_not_end_the_wait(served: ServedTopics, lake: Warehouse, monkeypatch) -> None:
    told, failed = Event(), Event()
    change_tokens = lake.store.change_tokens

    def away() -> Any:
        failed.set()
        raise WarehouseError("the catalog is away")

    served.subscribe([served.topic("clicks")], told.set)
    monkeypatch.setattr(lake.store, "change_tokens", away)
    add(lake, CLICKS)
    lake.clock.advance(LOOK_MS)
    assert failed.wait(10) and not told.wait(0.3)
    monkeypatch.setattr(lake.store, "change_tokens", change_tokens)
    lake.clock.advance(LOOK_MS)
    assert told.wait(10)
