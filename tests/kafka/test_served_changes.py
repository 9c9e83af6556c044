"""Topics that change under consumers of librdkafka and of Java: rounds, cuts, a recreation, a promotion.

What each gets is what docs/data-out/kafka-clients.md says under "When a log changes under a reader".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from confluent_kafka import Consumer, TopicPartition
from py4j.protocol import Py4JJavaError

import lithify
from lithify import Record
from lithify.api.lake import Lake
from lithify.api.topic import Topic
from support.engines.kernel import compact_without_spark
from support.kafka.broker import QUIET, KafkaBroker, closed
from support.kafka.readers import WAIT_S, java_consumer, polled
from support.kafka.served import ServedLake, serving_kafka
from support.servers.tcp_proxy import wait_until

LATE_MS = 20_000_000_000_000
Read = tuple[int, bytes | None]
"""Offset and value."""


class Reading(Protocol):
    """A consumer in the middle of partition 0 of a topic."""

    def poll(self) -> list[Read]:
        """What comes within a second. Raises what the client tells its program."""

    def seek(self, offset: int) -> None: ...
    def pause(self) -> None:
        """It asks for nothing from then on."""

    def resume(self) -> None: ...
    def close(self) -> None: ...


class OfLibrdkafka:
    NO_POLICY = "error"

    def __init__(self, jvm: Callable[[], Any], address: str, topic: str, reset: str) -> None:
        self.topic = topic
        self.consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "readers",
                "auto.offset.reset": reset,
                "fetch.wait.max.ms": 100,
                "enable.auto.commit": False,  # this server has no groups
                **QUIET,
            }
        )
        self.consumer.assign([TopicPartition(topic, 0, 0)])

    def poll(self) -> list[Read]:
        read = self.consumer.poll(1)
        if read is not None and read.error() is not None and reset_is_off(read.error()):
            raise LookupError(read.error().str())
        return [] if read is None or read.error() else [(read.offset(), read.value())]

    def seek(self, offset: int) -> None:
        self.consumer.seek(TopicPartition(self.topic, 0, offset))

    def pause(self) -> None:
        self.consumer.pause([TopicPartition(self.topic, 0)])
        assert self.poll() == []

    def resume(self) -> None:
        self.consumer.resume([TopicPartition(self.topic, 0)])

    def close(self) -> None:
        self.consumer.close()


def reset_is_off(error: Any) -> bool:
    return bool(error.name() == "_AUTO_OFFSET_RESET")


class OfJava:
    NO_POLICY = "none"

    def __init__(self, jvm: Callable[[], Any], address: str, topic: str, reset: str) -> None:
        self.jvm = jvm()
        settings = {"auto.offset.reset": reset, "fetch.max.wait.ms": "100", "metadata.max.age.ms": "1000"}
        self.consumer = java_consumer(self.jvm, address, **settings)
        self.partition = self.jvm.org.apache.kafka.common.TopicPartition(topic, 0)
        self.consumer.assign(self.jvm.java.util.List.of(self.partition))
        self.seek(0)

    def poll(self) -> list[Read]:
        try:
            return [(one[1], one[3]) for one in polled(self.jvm, self.consumer)]
        except Py4JJavaError as error:
            raise LookupError(error.java_exception.toString()) from None

    def seek(self, offset: int) -> None:
        self.consumer.seek(self.partition, offset)

    def pause(self) -> None:
        self.consumer.pause(self.jvm.java.util.List.of(self.partition))
        assert self.poll() == []

    def resume(self) -> None:
        self.consumer.resume(self.jvm.java.util.List.of(self.partition))

    def close(self) -> None:
        self.consumer.close()


def until(reader: Reading, last: bytes) -> list[Read]:
    """What it gets up to that value."""
    found, until_s = list[Read](), time.monotonic() + WAIT_S
    while time.monotonic() < until_s:
        found += reader.poll()
        if found and found[-1][1] == last:
            return found
    raise AssertionError(f"{found} has no such record")


@dataclass(frozen=True, slots=True)
class World:
    """A lake that is served."""

    served: ServedLake
    opened: Callable[[str, str, str], Reading]
    """A consumer at an address, of a topic, with its policy for lost offsets."""
    no_policy: str
    """The policy of those that want to be told."""

    @property
    def lake(self) -> Lake:
        return self.served.lake

    def begun(self, name: str, reset: str = "earliest") -> tuple[Topic, Reading]:
        """A topic of its own with ten records, and a consumer that has read them."""
        topic = created(self.lake, name, 10)
        reader = self.opened(self.served.bootstrap, f"shop.{name}", reset)
        assert len(until(reader, b"v9")) == 10
        return topic, reader


def created(lake: Lake, name: str, records: int, value: str = "v") -> Topic:
    config = {"delete.retention.ms": 0, "min.cleanable.dirty.ratio": 0}
    topic = lake.create_topic(f"shop/{name}", 1, config=config)
    topic.append([Record(b"k%d" % (n % 3), f"{value}{n}".encode(), timestamp=5) for n in range(records)])
    return topic


def appended(topic: Topic, value: bytes) -> None:
    topic.append([Record(key=b"new", value=value, timestamp=6)])


def start_of(address: str, topic: str) -> int:
    with closed(Consumer({"bootstrap.servers": address, "group.id": "none", **QUIET})) as consumer:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S)[0])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    with serving_kafka(lithify.open(str(tmp_path_factory.mktemp("changes") / "lake"))) as one:
        yield one


@pytest.fixture(params=[OfLibrdkafka, OfJava])
def world(served: ServedLake, request: pytest.FixtureRequest) -> Iterator[World]:
    readers = list[Reading]()

    def opened(address: str, topic: str, reset: str) -> Reading:
        readers.append(request.param(lambda: request.getfixturevalue("kafka_jvm").jvm, address, topic, reset))
        return readers[-1]

    yield World(served, opened, request.param.NO_POLICY)
    for reader in readers:
        reader.close()
    for name in [str(info.name) for info in served.lake.topics()]:
        served.lake.delete_topic(name)


def test_a_round_is_not_noticed(world):
    topic, reader = world.begun("round")
    compact_without_spark(topic, LATE_MS)
    assert topic.info().records == 3
    appended(topic, b"next")
    assert until(reader, b"next") == [(10, b"next")]


def test_a_truncation_takes_a_consumer_back(world):
    topic, reader = world.begun("truncated")
    topic.truncate(0, 6)
    appended(topic, b"other")
    assert until(reader, b"other")[-1] == (6, b"other")


def test_a_truncation_below_what_it_has_read_is_noticed_though_the_log_is_longer_again(world):
    topic, reader = world.begun("longer")
    topic.truncate(0, 6)
    topic.append([Record(b"new", b"w%d" % n, timestamp=6) for n in range(6, 20)])
    assert until(reader, b"w19") == [(n, b"w%d" % n) for n in range(6, 20)]


def test_a_consumer_without_a_policy_is_told_of_a_truncation(world):
    topic, reader = world.begun("told", world.no_policy)
    topic.truncate(0, 6)
    appended(topic, b"other")
    with pytest.raises(LookupError, match=r"[Tt]runcat"):
        until(reader, b"other")


def test_a_reader_below_a_later_start_goes_on_there(world):
    topic, reader = world.begun("started")
    topic.delete_records(0, 5)
    wait_until(lambda: start_of(world.served.bootstrap, "shop.started") == 5, "the start is not seen")
    reader.seek(2)
    assert until(reader, b"v9") == [(n, b"v%d" % n) for n in range(5, 10)]


@pytest.mark.parametrize("place", ["lake", "broker"])
@pytest.mark.parametrize(("records", "begins"), [(3, 0), (20, 10)])
def test_a_recreated_topic_is_read_on_where_it_has_the_offset_and_else_from_its_beginning(
    place, records, begins, world, request
):
    """As a broker's is."""
    if place == "lake":
        _, reader = world.begun(f"again{records}")
        reader.pause()
        world.lake.delete_topic(f"shop/again{records}")
        created(world.lake, f"again{records}", records, "w")
    else:
        broker = request.getfixturevalue("broker")
        topic = produced(broker, None, 10, "v")
        reader = world.opened(broker.address, topic, "earliest")
        assert len(until(reader, b"v9")) == 10
        reader.pause()
        broker.delete_topic(topic)
        produced(broker, topic, records, "w")
    reader.resume()  # in between the new topic was shorter
    assert until(reader, b"w%d" % (records - 1)) == [(n, b"w%d" % n) for n in range(begins, records)]


def produced(broker: KafkaBroker, name: str | None, records: int, value: str) -> str:
    topic, producer = broker.make_topic(1, name), broker.producer(enable_idempotence=True)
    for n in range(records):
        producer.produce(topic, f"{value}{n}", b"k")
    assert producer.flush(WAIT_S) == 0
    return topic


def test_a_promotion_is_not_noticed(world, tmp_path: Path):
    lake = lithify.open(str(tmp_path / "source"))
    source = created(lake, "moved", 5)
    lake.replicas().add("shop/moved", str(tmp_path / "backup"), name="backup")
    assert lake.replicas().daemon().run(once=True)
    backup = lithify.open(str(tmp_path / "backup"))
    with serving_kafka(backup) as served:
        reader = world.opened(served.bootstrap, "shop.moved", "earliest")
        assert until(reader, b"v4") == [(n, b"v%d" % n) for n in range(5)]
        appended(source, b"copied")
        assert lake.replicas().daemon().run(once=True)
        assert until(reader, b"copied") == [(5, b"copied")]
        backup.replicas().promote("shop/moved")
        appended(backup.topic("shop/moved"), b"promoted")
        assert until(reader, b"promoted") == [(6, b"promoted")]
