"""Names and ids of topics for clients of Kafka: legal, the same for every gateway, and never of two topics."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.kafka_server.logs.kafka_names import Clash, kafka_name, listed
from lithify.kafka_server.logs.topic_ids import topic_id
from lithify.model.names import MAX_NAME_LENGTH, TopicName, parse_topic

parts = st.text("ab.-_%", min_size=1, max_size=4) | st.just("a" * MAX_NAME_LENGTH) | st.just("b.a" * 80)
names = st.builds(TopicName, parts | st.just("default"), parts)


@pytest.mark.parametrize(
    "topic, to_clients",
    [
        ("orders", "orders"),
        ("shop/orders", "shop.orders"),
        ("persistent://public/default/orders", "pulsar.public.default.orders"),
        ("persistent://public/eu/a b", "pulsar.public.eu.a_20b"),
        ("/var/shop:orders", "mapr._2Fvar_2Fshop.orders"),
    ],
)
def test_names(topic: str, to_clients: str) -> None:
    assert kafka_name(parse_topic(topic).name) == to_clients


@given(st.lists(names))
def test_every_topic_has_a_name_of_its_own_or_none(topics: list[TopicName]) -> None:
    listing = listed(topics)
    shown, hidden = listing.topics.values(), [topic for clash in listing.clashes for topic in clash.topics]
    assert sorted([*shown, *hidden]) == sorted(set(topics))
    assert all(len(clash.topics) > 1 for clash in listing.clashes)
    assert not listing.topics.keys() & {clash.kafka_name for clash in listing.clashes}
    for name, topic in listing.topics.items():
        assert re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) and name == kafka_name(topic)


@given(st.lists(names), st.randoms(use_true_random=False))
def test_the_order_of_topics_does_not_matter(topics: list[TopicName], random) -> None:
    others = [*topics, *topics[:1]]
    random.shuffle(others)
    assert listed(others) == listed(topics)


def test_a_clash_is_told_of_both() -> None:
    topics = [parse_topic(name).name for name in ("shop/orders", "shop.orders", "clicks")]
    listing = listed(topics)
    assert [*listing.topics] == ["clicks"]
    assert listing.clashes == (Clash("shop.orders", (topics[1], topics[0])),)
    assert str(listing.clashes[0]) == ("shop.orders and shop/orders: both would be shop.orders to clients of Kafka")


@given(st.text(), st.text())
def test_ids(identity: str, other: str) -> None:
    made = topic_id(identity)
    assert len(made) == 16 and made == topic_id(identity)
    assert int.from_bytes(made) > 1  # Kafka has reserved these two
    assert made[6] >> 4 == 8 and made[8] >> 6 == 2
    assert made[0] >> 2 != 62  # its text would begin with '-'
    assert (topic_id(other) == made) == (other == identity)


def test_what_is_compacted_side_by_side_has_a_name_that_is_not_listed() -> None:
    orders, clicks, other = (parse_topic(name).name for name in ("shop/orders", "clicks", "clicks.compacted"))
    listing = listed([orders, clicks, other])
    assert [*listing.topics] == ["clicks", "clicks.compacted", "shop.orders"]
    assert listing.nameable["shop.orders.compacted"] == orders and listing.is_compacted("shop.orders.compacted")
    assert listing.nameable["clicks.compacted"] == other and not listing.is_compacted("clicks.compacted")
    assert not listing.is_compacted("shop.orders") and not listing.is_compacted("nothing.compacted")


@given(st.lists(names))
def test_every_name_by_which_clients_ask_means_one_topic(topics: list[TopicName]) -> None:
    listing = listed(topics)
    for name, topic in listing.nameable.items():
        assert re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name)
        assert name == kafka_name(topic, compacted=listing.is_compacted(name))
    assert not listing.nameable.keys() & {clash.kafka_name for clash in listing.clashes}
