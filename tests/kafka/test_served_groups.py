"""Consumer groups of clients that nobody here wrote, at one gateway and at two: members share, commit and take over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

import lithify
from kafka import KafkaConsumer
from lithify import Lake, Record
from lithify.kafka_server.groups.ranking import Gateway, heaviest
from lithify.kafka_server.groups.seat import BEAT_S
from support.kafka.broker import QUIET
from support.kafka.served import ServedLake, serving_groups

NAME, GROUP, PARTITIONS, WAIT_S = "shop.orders", "billing", 4, 60.0
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = lithify.open(str(tmp_path / "lake"))
    put(lake.create_topic("shop/orders", PARTITIONS), range(40))
    return lake


@pytest.fixture
def served(lake: Lake) -> Iterator[ServedLake]:
    with serving_groups(lake) as one:
        yield one


def put(topic: Any, numbers: range) -> None:
    topic.append([Record(b"k%d" % n, b"%d" % n, partition=n % PARTITIONS) for n in numbers])


@contextmanager
def member(protocol: str, *gateways: tuple[str, int], **more: Any) -> Iterator[Consumer]:
    addresses = ",".join(f"{host}:{port}" for host, port in gateways)
    begin = {
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "group.id": GROUP,
        "group.protocol": protocol,
    }
    beats = {} if protocol == "consumer" else {"heartbeat.interval.ms": 500}
    consumer = Consumer({"bootstrap.servers": addresses, **begin, **beats, **more, **QUIET})
    try:
        consumer.subscribe([NAME])
        yield consumer
    finally:
        consumer.close()


def read(count: int, *consumers: Consumer) -> list[int]:
    """The values of as many records."""
    values, until_s = list[int](), time.monotonic() + WAIT_S
    while len(values) < count:
        assert time.monotonic() < until_s
        for consumer in consumers:
            found = consumer.poll(0.1)
            if found is not None and found.error() is None:
                values.append(int(found.value()))
    return sorted(values)


def wait_until(happens: Callable[[], bool], *consumers: Consumer) -> None:
    until_s = time.monotonic() + WAIT_S
    while not happens():
        assert time.monotonic() < until_s
        for consumer in consumers:
            consumer.poll(0.1)


def positions(lake: Lake) -> list[int | None]:
    return [one.position for one in lake.group(GROUP).describe()]


@PROTOCOLS
def test_members_share_partitions_and_positions_are_the_lake_s(protocol: str, served: ServedLake, lake: Lake) -> None:
    with member(protocol, served.address) as first:
        assert read(40, first) == [*range(40)]
        first.commit(asynchronous=False)
        assert positions(lake) == [10] * PARTITIONS
        with member(protocol, served.address) as second:
            wait_until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second)
            with pytest.raises(lithify.RefusedError, match="has members that read"):
                lake.group(GROUP).reset("shop/orders", "earliest")
            put(lake.topic("shop/orders"), range(40, 60))
            assert read(20, first, second) == [*range(40, 60)]
        wait_until(lambda: len(first.assignment()) == PARTITIONS, first)


@PROTOCOLS
def test_a_member_that_starts_after_a_truncation_begins_at_the_cut(
    protocol: str, served: ServedLake, lake: Lake
) -> None:
    """Though the log is longer again than what the group has read."""
    with member(protocol, served.address) as first:
        read(40, first)
        first.commit(asynchronous=False)
    topic = lake.topic("shop/orders")
    topic.truncate(0, 6)
    topic.append([Record(b"new", b"%d" % number, partition=0) for number in range(100, 120)])
    with member(protocol, served.address) as second:
        assert read(20, second) == [*range(100, 120)]


def test_members_of_kafka_python_share_partitions_and_positions_are_the_lake_s(served: ServedLake, lake: Lake) -> None:
    first, second = (
        KafkaConsumer(
            NAME,
            bootstrap_servers=served.bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=500,
        )
        for _ in range(2)
    )
    values, until_s = list[int](), time.monotonic() + WAIT_S
    while len(values) < 40 or not len(first.assignment()) == len(second.assignment()) == 2:
        assert time.monotonic() < until_s
        for consumer in (first, second):
            found = [int(one.value) for records in consumer.poll(timeout_ms=100).values() for one in records]
            values += found
            if found:
                consumer.commit()
    assert {*values} == {*range(40)}
    second.close()
    first.close()
    assert positions(lake) == [10] * PARTITIONS


def test_positions_are_reset_once_nobody_reads(served: ServedLake, lake: Lake) -> None:
    with member("classic", served.address) as first:
        read(40, first)
        first.commit(asynchronous=False)
    wait_until(lambda: reset(lake))
    with member("classic", served.address) as second:
        assert read(10, second) == [*range(1, 40, PARTITIONS)]


def reset(lake: Lake) -> bool:
    """Once the gateway has seen that nobody is there any more."""
    try:
        lake.group(GROUP).reset("shop/orders", 0, partition=1)
    except lithify.RefusedError:
        return False
    return True


@PROTOCOLS
def test_another_gateway_takes_a_group_over(protocol: str, lake: Lake) -> None:
    with ExitStack() as first, ExitStack() as second:
        stacks = {
            first.enter_context(serving_groups(lake)).address: first,
            second.enter_context(serving_groups(lake)).address: second,
        }
        time.sleep(2 * BEAT_S)  # until both know that there are two
        with member(protocol, *stacks) as consumer:
            assert read(40, consumer) == [*range(40)]
            consumer.commit(asynchronous=False)
            coordinator = heaviest(f"group {GROUP}", (Gateway(*address) for address in stacks))
            stacks[coordinator.host, coordinator.port].close()
            put(lake.topic("shop/orders"), range(40, 44))
            again = set[int]()  # what it has read and not committed is read twice
            wait_until(lambda: again.update(read(1, consumer)) or again == {*range(40, 44)})
            # A rebalance in between takes the consumer back to what it has committed: it reads that again, and commits.
            wait_until(lambda: commits(consumer) and positions(lake) == [11] * PARTITIONS, consumer)


def commits(consumer: Consumer) -> bool:
    """False while its new coordinator does not know it."""
    try:
        return all(one.error is None for one in consumer.commit(asynchronous=False) or ())
    except KafkaException:
        return False


def test_a_group_that_reads_with_lithify_takes_no_clients(served: ServedLake, lake: Lake) -> None:
    with lake.topic("shop/orders").reader(group=GROUP, follow=True) as reader:
        assert len([*reader.poll()]) > 0
        errors = list[str]()
        with member("classic", served.address, error_cb=lambda error: errors.append(error.name())) as consumer:
            until_s = time.monotonic() + WAIT_S
            while "INCONSISTENT_GROUP_PROTOCOL" not in errors and time.monotonic() < until_s:
                found = consumer.poll(0.2)
                errors += [found.error().name()] if found is not None and found.error() else []
            assert "INCONSISTENT_GROUP_PROTOCOL" in errors


@PROTOCOLS
def test_administrators_see_and_change_groups(protocol: str, served: ServedLake, lake: Lake) -> None:
    admin = AdminClient({"bootstrap.servers": served.bootstrap, **QUIET})
    with member(protocol, served.address) as consumer:
        read(40, consumer)
        consumer.commit(asynchronous=False)
        listed = admin.list_consumer_groups().result(WAIT_S)
        assert [(group.group_id, group.state.name) for group in listed.valid] == [(GROUP, "STABLE")]
        described = admin.describe_consumer_groups([GROUP])[GROUP].result(WAIT_S)
        assert [len(one.assignment.topic_partitions) for one in described.members] == [PARTITIONS]
        with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
            admin.delete_consumer_groups([GROUP])[GROUP].result(WAIT_S)
    moved = ConsumerGroupTopicPartitions(GROUP, [TopicPartition(NAME, 0, 3)])
    wait_until(lambda: _altered(admin, moved))
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])[GROUP].result(WAIT_S)
    assert sorted((one.partition, one.offset) for one in found.topic_partitions) == [(0, 3), (1, 10), (2, 10), (3, 10)]
    admin.delete_consumer_groups([GROUP])[GROUP].result(WAIT_S)
    assert not lake.groups()


def _altered(admin: AdminClient, moved: ConsumerGroupTopicPartitions) -> bool:
    altered = admin.alter_consumer_group_offsets([moved])[GROUP].result(WAIT_S)
    return all(one.error is None for one in altered.topic_partitions)
