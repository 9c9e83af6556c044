"""Cleaners let topics inherit what an interrupted `stream edit` left undone (C43, C50, C56)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lithify.model.names import TopicName, parse_topic
from lithify.model.settings.inheritance import Origin
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.reports.events import EventKind
from lithify.service.change.streams import create_stream
from lithify.service.creation import create_topic
from lithify.service.look.status import topic_info
from support.topics.cleaner_lake import CleanerLake


class Counting:
    """A store that counts its calls."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found):
            return found

        def through(*args: Any, **more: Any) -> Any:
            self.calls[name] += 1
            return found(*args, **more)

        return through


@pytest.fixture
def lake() -> CleanerLake:
    return CleanerLake()


def edited_behind(lake: CleanerLake, **attributes: str) -> None:
    """As an edit leaves it that died before it got to the topics."""
    lake.warehouse.store.change_stream("default", attributes, [])


def topic_of_a_stream(lake: CleanerLake, name: str, **config: object) -> TopicName:
    topic = lake.topic(name, **config)
    lake.append(topic, "a=1 a=2 b=1")
    return topic


def test_a_topic_inherits_and_is_compacted_in_one_pass(lake: CleanerLake) -> None:
    """C56, C43: also where the settings before it made nothing due."""
    lake.warehouse.store.create_stream("default", {"compact": "false"})
    orders = topic_of_a_stream(lake, "orders", cleanup_policy="delete")
    one = lake.cleaner()
    assert one.work() == []  # the policy is its own
    state = lake.state(orders)
    assert "cleanup.policy" in state.own_settings
    kept = topic_of_a_stream(lake, "kept")

    edited_behind(lake, compact="true", deleteretention="5")
    lake.wait()
    events = one.work()

    inherited = [(event.topic, dict(event.facts["settings"])) for event in events if event.kind is EventKind.INHERITED]
    assert inherited == [("orders", {"delete.retention.ms": "5"}), ("kept", {"delete.retention.ms": "5"})]
    assert (lake.text(orders), lake.text(kept)) == ("a=1 a=2 b=1", "a=2 b=1")
    assert topic_info(lake.warehouse, lake.state(kept)).config_from["delete.retention.ms"] == Origin.STREAM


def test_what_is_switched_off_stops_rounds(lake: CleanerLake) -> None:
    """C56: no round runs under settings that the stream no longer has."""
    lake.warehouse.store.create_stream("default", {})
    orders = topic_of_a_stream(lake, "orders")
    edited_behind(lake, compact="false", ttl="0")
    lake.cleaner().work()
    assert (lake.state(orders).settings.cleanup_policy, lake.text(orders)) == ("delete", "a=1 a=2 b=1")


def test_a_look_reads_the_attributes_once_and_nothing_of_idle_topics(lake: CleanerLake) -> None:
    """C56."""
    lake.warehouse.store.create_stream("default", {"compression": "lz4"})
    for name in ("a", "b", "c"):
        lake.topic(name, compression_type="lz4")
    store = Counting(lake.warehouse.store)
    one = lake.cleaner(warehouse=Warehouse(store, lake.warehouse.files, lake.clock))
    one.work()
    store.calls.clear()
    lake.wait()
    one.work()
    assert store.calls["change_tokens"] == store.calls["stream_attributes"] == 1
    assert store.calls["load_at"] == store.calls["load"] == 0


@pytest.mark.parametrize("attributes", [{"compact": "false"}, {"compat": "true"}], ids=["contradiction", "unknown"])
def test_a_topic_that_cannot_inherit_is_reported_and_not_compacted(
    lake: CleanerLake, attributes: dict[str, str]
) -> None:
    """C50, C56: until the stream has attributes that it can inherit; topics of other streams go on."""
    lake.warehouse.store.create_stream("default", {})
    view = topic_of_a_stream(lake, "view", compaction_mode="side-by-side")
    other = TopicName("eu", "other")
    lake.warehouse.store.create_topic(NewTopic(other, "", lake.state(view).settings, 1, 0))
    lake.append(other, "a=1 a=2")
    edited_behind(lake, **attributes)
    one = lake.cleaner()
    one.work()
    (trouble,) = one.told(EventKind.TROUBLE)
    assert trouble.topic == "view"
    assert (lake.state(view).log(0).view, lake.state(other).log(0).view is None) == (None, False)

    lake.warehouse.store.change_stream("default", {}, list(attributes))
    lake.wait()
    one.work()
    assert lake.state(view).log(0).view is not None


def test_a_round_begins_under_what_its_stream_has_then() -> None:
    """C56: between the look and the round an edit stored other attributes, and died before it altered the topic."""
    lake = CleanerLake(now_ms=10**10)
    create_stream(lake.warehouse, "default", {"ttl": "3600", "cleanup.policy": "compact,delete"})
    orders = create_topic(lake.warehouse, parse_topic("orders"), {}, 1).name
    lake.append(orders, "old=1", age_ms=3_000_000)
    lake.append(orders, "a=1 a=2 b=1 b=-")
    one = lake.cleaner()
    one.renew()
    one.cleaner.step()
    lake.warehouse.store.change_stream("default", {"ttl": "0"}, [])
    lake.clock.advance(3_600_000)  # the rounds of other topics took as long
    one.renew()
    while one.cleaner._agenda:
        one.cleaner.step(looks=False)
    assert lake.state(orders).settings.retention_ms == -1
    assert lake.text(orders) == "old=1 a=2 b=-"
