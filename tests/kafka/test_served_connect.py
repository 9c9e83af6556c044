"""Connect copies topics of a lake: by its file sink, and by MirrorMaker's connector into a broker.

    lake ──► FileStreamSink          one worker, which keeps its offsets where a program of its own would:
    lake ──► MirrorSource ──► broker the sink's in a group of the lake, the mirror's in a file

What comes is what the file sink takes of a broker, and what librdkafka gets there. A worker that was stopped goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

import lithify
from lithify import Record
from support.engines.kernel import compact_without_spark
from support.kafka.broker import KafkaBroker
from support.kafka.readers import Row, by_confluent, rows_of, some_records
from support.kafka.served import ServedLake, serving_groups
from support.kafka.tools import KafkaJvm
from support.servers.tcp_proxy import wait_until

CONNECT = "org.apache.kafka.connect"
IN_FULL = {f"{what}.converter": f"{CONNECT}.converters.ByteArrayConverter" for what in ("key", "value", "header")}
AS_TEXT = {f"{what}.converter": f"{CONNECT}.storage.StringConverter" for what in ("key", "value")}
MIRRORED = "shop.mirrored"
PAGE = Path(__file__).parents[2] / "docs" / "data-out" / "kafka-clients.md"
COPIED_S = 60.0
LATER = [Record(b"later", b"%d" % n, timestamp=1_700_000_000_000, partition=n % 2) for n in range(20)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    lake = lithify.open(str(tmp_path_factory.mktemp("connect") / "lake"))
    config = {"cleanup.policy": "compact,delete", "retention.ms": -1, "min.cleanable.dirty.ratio": 0}
    lake.create_topic("shop/orders", 2, config={**config, "null.key": "drop"}).append(some_records())
    mirrored = lake.create_topic("shop/mirrored", 2, config=config)
    mirrored.append([record for record in some_records() if record.key is not None])
    compact_without_spark(mirrored, some_records()[0].timestamp)  # so that offsets have gaps
    with serving_groups(lake) as one:
        yield one


@contextmanager
def a_worker(kafka: KafkaJvm, broker: KafkaBroker, folder: Path, *connectors: Mapping[str, str]) -> Iterator[Any]:
    """Of Connect, standalone; stopped in order at the end."""
    settings = {
        "bootstrap.servers": broker.address,
        "listeners": "http://127.0.0.1:0",
        "offset.storage.file.filename": str(folder / "offsets"),
        "offset.flush.interval.ms": "200",
        "plugin.discovery": "service_load",
        **IN_FULL,
    }
    started = kafka.jvm.org.apache.kafka.connect.cli.ConnectStandalone(kafka.texts()).startConnect(settings)
    try:
        for config in connectors:
            done = kafka.jvm.org.apache.kafka.connect.util.FutureCallback()
            started.herder().putConnectorConfig(config["name"], config, False, done)
            done.get()
        yield started.herder()
    finally:
        started.stop()
        started.awaitStop()


def a_file_sink(source: str, file: Path) -> dict[str, str]:
    return {
        "name": file.name,
        "connector.class": f"{CONNECT}.file.FileStreamSinkConnector",
        "topics": "shop.orders",
        "file": str(file),
        "consumer.override.bootstrap.servers": source,
        "consumer.override.auto.offset.reset": "earliest",
        **AS_TEXT,
    }


def a_mirror(jvm: Any, source: str, target: str) -> dict[str, str]:
    """As MirrorMaker makes its connector of the settings on the page."""
    (block,) = re.findall(r"```properties\n(clusters.*?)```", PAGE.read_text(), re.DOTALL)
    settings = jvm.java.util.Properties()
    settings.load(jvm.java.io.StringReader(block.replace("127.0.0.1:9092", source).replace("broker:9092", target)))
    for name in ("replication.factor", "offset-syncs.topic.replication.factor"):  # of a cluster of one broker
        settings.put(name, "1")
    mirror = jvm.org.apache.kafka.connect.mirror
    direction = mirror.SourceAndTarget("lake", "kafka")
    kind = jvm.java.lang.Class.forName(f"{CONNECT}.mirror.MirrorSourceConnector")
    made = mirror.MirrorMakerConfig(settings).connectorBaseConfig(direction, kind)
    return {**made, "name": "mirror", "topics": made["topics"].replace(".*", "mirrored")}


def lines(file: Path) -> list[str]:
    return sorted(file.read_text().splitlines()) if file.exists() else []


def mirrored(broker: KafkaBroker) -> list[Row]:
    there = MIRRORED in broker.admin().list_topics(timeout=30).topics
    return by_confluent(broker.address, MIRRORED) if there else []


def test_what_connect_copies_is_what_a_broker_would_give(served, broker, in_kafka, kafka_jvm, tmp_path):
    lake, kafka = tmp_path / "of-the-lake", tmp_path / "of-kafka"
    sinks = a_file_sink(served.bootstrap, lake), a_file_sink(broker.address, kafka)
    mirror = a_mirror(kafka_jvm.jvm, served.bootstrap, broker.address)
    before = [*served.lake.topic("shop/mirrored").reader()]
    assert 0 < len(before) < 100
    with a_worker(kafka_jvm, broker, tmp_path, *sinks, mirror) as herder:
        wait_until(lambda: len(lines(lake)) == len(lines(kafka)) == len(in_kafka), "the sinks do not end", COPIED_S)
        wait_until(lambda: len(mirrored(broker)) == len(before), "the mirror does not end", COPIED_S)
        states = [task.state() for name in (lake.name, "mirror") for task in herder.connectorStatus(name).tasks()]
        assert states == ["RUNNING"] * 2
    assert lines(lake) == lines(kafka)
    assert mirrored(broker) == rows_of(before)
    resource = ConfigResource(ResourceType.TOPIC, MIRRORED)
    config = broker.admin().describe_configs([resource])[resource].result(timeout=30)
    assert (config["cleanup.policy"].value, config["retention.ms"].value) == ("compact,delete", "-1")
    for name in ("orders", "mirrored"):
        served.lake.topic(f"shop/{name}").append(LATER)
    with a_worker(kafka_jvm, broker, tmp_path, sinks[0], mirror):
        wait_until(lambda: len(lines(lake)) >= len(in_kafka) + len(LATER), "the sink does not go on", COPIED_S)
        wait_until(lambda: len(mirrored(broker)) >= len(before) + len(LATER), "the mirror does not go on", COPIED_S)
    assert lines(lake) == sorted(lines(kafka) + [f"{n}" for n in range(len(LATER))])
    assert mirrored(broker) == rows_of(before + LATER)
    positions = served.lake.group(f"connect-{lake.name}").describe()
    assert [(one.position, one.lag) for one in positions] == [(110, 0), (110, 0)]
