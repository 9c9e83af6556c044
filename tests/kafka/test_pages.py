"""The commands and programs of pages about Kafka run in their order, on a real broker."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from lithify.model.record import Record
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import connector_jars
from support.kafka.lake import send
from support.pages.lists import KAFKA
from support.pages.shell import Shell, a_shell
from support.pages.walk import Walk

TOPICS = ("orders", "orders-compacted")
"""That the pages make. Each begins without them."""


@pytest.fixture(scope="module")
def shell(broker: KafkaBroker) -> Iterator[Shell]:
    """With what these pages use of Kafka's own tools, as starting a JVM for each takes seconds."""

    def topics(arguments: Sequence[str]) -> int:
        broker.make_topic(name=value_of("--topic", arguments), cleanup_policy="compact")
        return 0

    def configs(arguments: Sequence[str]) -> int:
        added = [pair.partition("=") for pair in value_of("--add-config", arguments).split(",")]
        broker.alter_topic(
            value_of("--topic", arguments), **{name.replace(".", "_"): value for name, _, value in added}
        )
        return 0

    def producer(arguments: Sequence[str]) -> int:
        pairs = [line.rstrip("\n").split(":") for line in sys.stdin]
        client = broker.producer()
        send(client, value_of("--topic", arguments), [Record(key.encode(), value.encode()) for key, value in pairs])
        return int(client.flush(30))

    tools = {"kafka-topics.sh": topics, "kafka-configs.sh": configs, "kafka-console-producer.sh": producer}
    with a_shell(tools) as shell:
        yield shell


@pytest.mark.parametrize("page", KAFKA)
def test_a_page_runs_in_its_order(
    page: str,
    shell: Shell,
    broker: KafkaBroker,
    session: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for topic in TOPICS:
        with suppress(KafkaException):  # it is not there
            broker.delete_topic(topic)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITHIFY_JARS", str(connector_jars()))
    places = {f"{host}:9092": broker.address for host in ("broker", "localhost")}
    assert Walk(page, shell, places, ("Kafka",)).run()


def value_of(option: str, arguments: Sequence[str]) -> str:
    return arguments[arguments.index(option) + 1]
