"""A topic read from its bookies is the topic read from its broker."""

from __future__ import annotations

import itertools
import pickle

import pytest

from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.pulsar.bookkeeper import LedgerReader, MetadataStore, TopicLedgers, kept_jvms
from lithify.pulsar.client import Admin, ClientConfig, Cluster, TopicReader
from support.processes.programs import children
from support.pulsar.bookies import a_writer, java_parts
from support.pulsar.clients import a_client, send
from support.pulsar.server import PulsarServer
from support.servers.tcp_proxy import wait_until


@pytest.fixture(scope="module")
def written(pulsar_server: PulsarServer) -> tuple[str, MessageId]:
    """A topic of four ledgers, small and large entries, single and batched, compacted in the middle; its last id."""
    topic = pulsar_server.make_topic()
    with a_client(pulsar_server) as client:
        for size, batched in ((10, False), (10, True), (700_000, False), (10, False)):
            how = {"batching_enabled": batched, "batching_max_publish_delay_ms": 20}
            producer = client.create_producer(topic, block_if_queue_full=True, **how)
            for n in range(50):
                producer.send_async(bytes(size), None, partition_key=f"k{n % 30}")
            producer.flush()
            producer.close()
            if batched:
                pulsar_server.compact(topic)
            pulsar_server.unload(topic)
    last = send(pulsar_server, topic, "end", key="k0")[-1]
    return topic, MessageId(last.ledger_id(), last.entry_id())


def config_of(server: PulsarServer) -> ClientConfig:
    return ClientConfig(server.service_url, server.admin_url)


def ledgers_of(server: PulsarServer, topic: str) -> TopicLedgers:
    admin = Admin(config_of(server))
    found = TopicLedgers.of(admin.internal_stats(topic), admin.runtime_configuration())
    assert found is not None
    return found


def reader_of(server: PulsarServer, topic: str) -> LedgerReader:
    reader = LedgerReader(java_parts(), MetadataStore.at(server.metadata_url), ledgers_of(server, topic))
    return pickle.loads(pickle.dumps(reader))


RANGES = [(None, None), ((0, 10), (3, 5)), ((2, 30), None)]
"""Start and end: number of the ledger, and entry. None: the first, and the last."""


@pytest.mark.parametrize("compacted", [False, True], ids=["all", "compacted"])
def test_ranges_are_those_of_the_broker(pulsar_server, written, compacted):
    topic, last = written
    ours, theirs = reader_of(pulsar_server, topic), TopicReader(config_of(pulsar_server), topic)
    ids = [ledger for ledger, _ in ours.ledgers.closed] + [ours.ledgers.open]
    for start, end in RANGES:
        begin = None if start is None else MessageId(ids[start[0]], start[1])
        until = last if end is None else MessageId(ids[end[0]], end[1])
        got, wanted = (
            list(itertools.chain.from_iterable(reader.read(begin, until, compacted=compacted)))
            for reader in (ours, theirs)
        )
        assert got and got == wanted, (start, end)


def test_pages_are_of_some_mebibytes(pulsar_server, written):
    topic, last = written
    sizes = [sum(len(entry.data) for entry in page) for page in reader_of(pulsar_server, topic).read(None, last)]
    assert max(sizes) < 12 << 20 and len(sizes) > 4


def test_a_read_that_is_abandoned_leaves_no_jvm(pulsar_server, written, monkeypatch):
    monkeypatch.setattr(kept_jvms, "_kept", [])  # so that it starts one
    topic, last = written
    before = children()
    pages = reader_of(pulsar_server, topic).read(None, last)
    next(pages)
    pages.close()
    wait_until(lambda: children() <= before, "the JVM is still there")


def test_a_ledger_that_is_newer_or_was_deleted_is_an_error(pulsar_server):
    topic = pulsar_server.make_topic()
    send(pulsar_server, topic, "a")
    old = reader_of(pulsar_server, topic)
    pulsar_server.unload(topic)
    (at,) = send(pulsar_server, topic, "b")
    with pytest.raises(BrokerError, match="newer"):
        list(old.read(None, MessageId(at.ledger_id(), 0)))
    with a_writer(pulsar_server) as writer:
        writer.delete(old.ledgers.open)
    with pytest.raises(BrokerError, match="NoSuchLedger"):
        list(old.read(None, MessageId(old.ledgers.open, 0)))


def test_the_last_id_of_a_topic_that_is_written_to_can_be_read(pulsar_server):
    """Bookies learn that an entry is confirmed with the next one only."""
    topic = pulsar_server.make_topic()
    with a_client(pulsar_server) as client:
        producer = client.create_producer(topic)
        producer.send(b"a")
        reader, last = reader_of(pulsar_server, topic), Cluster(config_of(pulsar_server)).last_id(topic)
        assert last is not None
        assert [entry.entry for page in reader.read(None, last) for entry in page] == [0]
