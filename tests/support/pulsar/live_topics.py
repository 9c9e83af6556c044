"""Topics of a real Pulsar that rounds compact: messages of all kinds in, raw entries of views out."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pulsar
from lithify.api.pulsar import LiveTopic
from lithify.api.wiring import BookKeeperChoice, pulsar_ports
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.model.message import MessageId
from lithify.ports.engine import silent
from lithify.ports.pulsar.pulsar_cluster import TopicLook
from lithify.pulsar import compact_entries
from lithify.pulsar.client import ClientConfig, TopicReader
from lithify.pulsar.client.patience import retried
from lithify.pulsar.format.batch import value_of
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import unframed
from lithify.pulsar.live.live_cluster import LiveCluster
from lithify.pulsar.rounds.small_views import SmallViews
from lithify.reports.pulsar.rounds import TopicRoundReport
from lithify.service.pulsar.rounds import RoundRequest, compact_topic
from support.pulsar.bookies import a_writer
from support.pulsar.clients import a_client
from support.pulsar.jars import pulsar_jars
from support.pulsar.server import PulsarServer

END = MessageId(1 << 40, 0)
LOOK_S = 20.0


def config_of(server: PulsarServer, **how: Any) -> ClientConfig:
    return ClientConfig(server.service_url, server.admin_url, **how)


def reference(entries: list[RawEntry]) -> list[RawEntry]:
    """What a view of these entries has."""
    return [unframed(data) for *_, data in compact_entries(entries)]


def produce(server: PulsarServer, topic: str, seed: int, messages: int, *, keys: int = 40) -> None:
    """Batches of several sizes and codecs, single messages, keyless ones and deletes."""
    chance = random.Random(seed)
    codecs = [pulsar.CompressionType.NONE, pulsar.CompressionType.LZ4, pulsar.CompressionType.ZSTD]
    with a_client(server) as client:
        for _ in range(4):
            producer = client.create_producer(
                topic,
                batching_enabled=chance.random() < 0.7,
                batching_max_messages=chance.randrange(2, 30),
                batching_max_publish_delay_ms=50,
                compression_type=chance.choice(codecs),
            )
            for number in range(messages // 4):
                key = None if chance.random() < 0.03 else f"key-{chance.randrange(keys)}"
                value = b"" if chance.random() < 0.1 else f"{seed}-{number}".encode() * chance.randrange(1, 20)
                producer.send_async(value, lambda *_: None, partition_key=key)
            producer.flush()
            producer.close()


def raw(server: PulsarServer, topic: str, *, compacted: bool) -> list[RawEntry]:
    reader = TopicReader(config_of(server), topic)
    return [entry for entries in reader.read(None, END, compacted=compacted) for entry in entries]


def view(server: PulsarServer, topic: str) -> list[RawEntry]:
    """The entries that a compacted reader gets of what a round has covered."""
    horizon = look(server, topic).horizon
    assert horizon is not None
    return [entry for entry in raw(server, topic, compacted=True) if entry[:2] <= horizon[:2]]


def opened(entries: Sequence[RawEntry]) -> list[tuple[MessageId, bytes, bytes]]:
    """Their ids, the bytes of their metadata and their uncompressed payloads: codecs do not all write the same."""
    parts = [entry_of(entry) for entry in entries]
    return [(MessageId(*part.raw[:2]), part.metadata_bytes, value_of(part)) for part in parts]


def look(server: PulsarServer, topic: str) -> TopicLook:
    """A broker that was just started refuses until its predecessor's claim to the topic is over."""
    return retried(lambda: LiveCluster(config_of(server)).look(topic), LOOK_S, time.sleep)


def a_round(server: PulsarServer, topic: str, spark: Any, **how: Any) -> TopicRoundReport:
    live = LiveTopic(topic, config_of(server, answer_s=20.0, outage_s=20.0))
    return live.compact(spark=spark, jars=str(pulsar_jars()), **how)


def a_round_of_tasks(server: PulsarServer, topic: str, spark: Any) -> TopicRoundReport:
    """The same, small as it is, on Spark."""
    config = config_of(server, answer_s=20.0, outage_s=20.0)
    ports = pulsar_ports(config, SparkChoice(spark, {}), str(pulsar_jars()), BookKeeperChoice())
    assert isinstance(ports.engine, SmallViews)
    return compact_topic(replace(ports, engine=ports.engine.larger), RoundRequest(topic), silent)


def view_ledgers(server: PulsarServer, topic: str) -> list[int]:
    """The ledgers with views of the topic that BookKeeper has."""
    with a_writer(server) as ledgers:
        return [found.ledger for found in ledgers.of(topic, 0)]


def compacted_values(server: PulsarServer, topic: str) -> dict[str, bytes]:
    """The table that Pulsar's client for Python reads: an empty message deletes its key.

    It gives messages without a key, which compactions drop, and placeholders the key "".
    """
    with a_client(server) as client:
        reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
        found = {}
        while reader.has_message_available():
            message = reader.read_next(timeout_millis=30_000)
            if message.data():
                found[message.partition_key()] = message.data()
            else:
                found.pop(message.partition_key(), None)
        found.pop("", None)
        return found


@contextmanager
def a_program(server: PulsarServer, topic: str, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """`lithify pulsar compact` in processes of its own, which are killed at the end."""
    urls = ("--service-url", server.service_url, "--admin-url", server.admin_url, "--jars", str(pulsar_jars()))
    command = [sys.executable, "-m", "lithify", "pulsar", "compact", topic, *urls, *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as program:
        try:
            yield program
        finally:
            kill(program)


def kill(program: subprocess.Popen[bytes]) -> None:
    """With all that it has started."""
    try:
        os.killpg(program.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
