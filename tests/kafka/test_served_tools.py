"""Kafka's own programs print of a lake what they print of a broker with the same records."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import lithify
from support.kafka.broker import KafkaBroker
from support.kafka.readers import SINCE_MS, Row, some_records
from support.kafka.served import ServedLake, serving_groups
from support.kafka.tools import KafkaJvm

TOOLS = "org.apache.kafka.tools"
NAME, LATE_MS = "shop.orders", "20000000000000"
Prints = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    lake = lithify.open(str(tmp_path_factory.mktemp("tools") / "lake"))
    config = {"cleanup.policy": "delete", "retention.ms": -1}
    lake.create_topic("shop/orders", 2, config=config).append(some_records())
    with serving_groups(lake) as one:
        yield one


@pytest.fixture(scope="module")
def prints(served: ServedLake, broker: KafkaBroker, in_kafka: list[Row], kafka_jvm: KafkaJvm) -> Prints:
    """The lines that a program prints of the lake, and of the broker: sorted, without columns' spaces."""

    def lines(address: str, program: str, *arguments: str) -> list[str]:
        printed = kafka_jvm.run(program, "--bootstrap-server", address, *arguments)
        return sorted(" ".join(line.split()) for line in printed.splitlines() if line.strip())

    def both(program: str, *arguments: str) -> tuple[list[str], list[str]]:
        return lines(served.bootstrap, program, *arguments), lines(broker.address, program, *arguments)

    return both


@pytest.mark.parametrize("time", ["-1", "-2", "-3", str(SINCE_MS), LATE_MS])
def test_get_offsets(prints, time):
    lake, kafka = prints(f"{TOOLS}.GetOffsetShell", "--topic", NAME, "--time", time)
    assert lake == kafka
    assert len(lake) == (0 if time == LATE_MS else 2)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_consumer_and_consumer_groups(prints, protocol):
    shown = [
        f"--formatter-property=print.{what}=true" for what in ("key", "offset", "partition", "timestamp", "headers")
    ]
    of_group = ("--group", protocol)
    lake, kafka = prints(
        f"{TOOLS}.consumer.ConsoleConsumer", "--topic", NAME, "--max-messages", "200", *shown, *of_group,
        "--command-property", f"group.protocol={protocol}", "--command-property", "auto.offset.reset=earliest",
    )  # fmt: skip
    assert lake == kafka
    assert len(lake) == 200
    for verb in (
        ("--describe", *of_group),
        ("--reset-offsets", "--shift-by", "-30", "--topic", NAME, "--execute", *of_group),
        ("--describe", *of_group),
        ("--reset-offsets", "--to-datetime", "2023-11-14T22:13:20.050", "--all-topics", "--dry-run", *of_group),
        ("--delete-offsets", "--topic", f"{NAME}:1", *of_group),
        ("--describe", "--offsets", *of_group),
        ("--list",),
        ("--delete", *of_group),
        ("--list",),
    ):
        lake, kafka = prints(f"{TOOLS}.consumer.group.ConsumerGroupCommand", *verb)
        if verb == ("--list",):  # groups of other tests too
            lake, kafka = ([one for one in found if one == protocol] for found in (lake, kafka))
        assert lake == kafka, verb


def test_topics_and_configs(prints):
    assert NAME in prints(f"{TOOLS}.TopicCommand", "--list")[0]
    (*partitions, topic), (*_, of_kafka) = prints(f"{TOOLS}.TopicCommand", "--describe", "--topic", NAME)
    assert [line.split(" Leader")[0] for line in partitions] == [f"Topic: {NAME} Partition: {n}" for n in (0, 1)]
    for told in ("PartitionCount: 2 ReplicationFactor: 1 Configs:", "retention.ms=-1"):
        assert told in topic
        assert told in of_kafka
    both = prints("kafka.admin.ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", NAME)
    lake, kafka = ([line.split(" synonyms")[0] for line in lines] for lines in both)
    assert lake == kafka


def test_consumer_perf_test(prints):
    lake, kafka = prints(f"{TOOLS}.ConsumerPerformance", "--topic", NAME, "--num-records", "200", "--group", "perf")
    figures, of_kafka = (lines[0].split(", ") for lines in (lake, kafka))
    assert (figures[2], figures[4]) == (of_kafka[2], of_kafka[4])  # MB and records
    assert figures[4] == "200"
