"""Brokers that unload a topic, die, restart, or are cut off in the middle: readers continue, subscriptions do not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import lithify
from lithify import Record, Topic
from lithify.api.pulsar import LiveTopic
from lithify.errors import BrokerError, SubscriptionBusyError
from lithify.model.message import MessageId
from lithify.pulsar.bookkeeper import LedgerReader, MetadataStore, TopicLedgers, kept_jvms
from lithify.pulsar.client import Admin, ClientConfig, Cluster, TopicReader
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar_consumer import PulsarSnapshotConsumer
from support.pulsar.bookies import a_writer, java_parts, spoil
from support.pulsar.clients import a_client, send
from support.pulsar.jars import pulsar_jars
from support.pulsar.live_topics import view_ledgers
from support.pulsar.server import PulsarServer, a_pulsar
from support.servers.tcp_proxy import TcpProxy, a_proxy, wait_until

ENTRIES = 40
"""Of 1 MiB: more than a socket's buffers and a broker's hold."""
COMPACTION = "__compaction"


@pytest.fixture(scope="module")
def server() -> Iterator[PulsarServer]:
    """One that pings every second, and drops clients that do not answer."""
    with a_pulsar(keepAliveIntervalSeconds="1") as server:
        yield server


def config_of(server: PulsarServer, proxy: TcpProxy | None = None, answer_s: float = 5) -> ClientConfig:
    url = f"pulsar://{proxy.address}" if proxy else server.service_url
    return ClientConfig(url, server.admin_url, answer_s=answer_s, outage_s=60)


def large_topic(server: PulsarServer) -> tuple[str, MessageId]:
    """Large entries in two ledgers, and the last id."""
    topic = server.make_topic()
    for _ in range(2):
        with a_client(server) as client:
            producer = client.create_producer(topic, batching_enabled=False, block_if_queue_full=True)
            for _ in range(ENTRIES // 2):
                producer.send_async(bytes(1 << 20), None)
            producer.flush()
        server.unload(topic)
    last = Cluster(config_of(server)).last_id(topic)
    assert last is not None
    return topic, last


@dataclass(frozen=True)
class Place:
    """Where trouble strikes."""

    server: PulsarServer
    proxy: TcpProxy
    topic: str

    def restart(self) -> None:
        self.server.kill(broker_only=True)
        self.server.start()


LOSSES: dict[str, Callable[[Place], None]] = {
    "the topic is unloaded": lambda at: at.server.unload(at.topic),
    "the connection is cut": lambda at: at.proxy.drop(),
    "the broker is killed and restarted": Place.restart,
}
TROUBLE = {**LOSSES, "the consumer is slower than the broker's pings": lambda at: time.sleep(4)}  # noqa: ARG005


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_reader_continues_where_it_was(server, trouble):
    topic, last = large_topic(server)
    got = []
    with a_proxy("127.0.0.1", server.port) as proxy:
        for part in TopicReader(config_of(server, proxy), topic).read(None, last):
            got += [(entry.ledger, entry.entry) for entry in part]
            if len(got) == len(part):
                TROUBLE[trouble](Place(server, proxy, topic))
    first = got[0][0]
    assert got == [(first, n) for n in range(ENTRIES // 2)] + [(last.ledger, n) for n in range(ENTRIES // 2)]


def a_copy(server: PulsarServer, folder: Path) -> tuple[Topic, str]:
    """Of a topic of large entries, of which nothing was copied yet."""
    topic, _ = large_topic(server)
    return lithify.open(str(folder)).create_topic(topic, like="pulsar", config={"message.ids": "pulsar"}), topic


def rest_of(consumer: PulsarSnapshotConsumer) -> list[Record]:
    found = []
    while not consumer.caught_up():
        if (record := consumer.poll()) is not None:
            found.append(record)
    return found


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_consumer_from_the_lake_continues_where_it_was(server, tmp_path, trouble):
    """Also one that waits for messages over a connection that it keeps."""
    copy, topic = a_copy(server, tmp_path)
    with (
        a_proxy("127.0.0.1", server.port) as proxy,
        PulsarSnapshotConsumer(copy, config_of(server, proxy), pulsar_topic=topic) as consumer,
    ):
        found = [record for _ in range(3) if (record := consumer.poll(60)) is not None]
        for _ in range(2):
            TROUBLE[trouble](Place(server, proxy, topic))
            found += rest_of(consumer)
            assert [record.offset for record in found] == list(range(ENTRIES))
        send(server, topic, "late")
        assert [(record.offset, record.value) for record in rest_of(consumer)] == [(ENTRIES, b"late")]
    ids = [record.envelope.id for record in found]
    assert ids == sorted(set(ids))


def test_a_consumer_from_the_lake_can_be_used_again_after_its_broker_stayed_away(server, tmp_path):
    copy, topic = a_copy(server, tmp_path)
    config = replace(config_of(server), outage_s=2)
    with PulsarSnapshotConsumer(copy, config, pulsar_topic=topic) as consumer:
        found = [record for _ in range(3) if (record := consumer.poll(60)) is not None]
        found += rest_of(consumer)
        server.kill(broker_only=True)
        for _ in range(2):
            with pytest.raises(BrokerError, match="for 2 s"):
                consumer.poll(60)
        server.start()
        send(server, topic, "late")
        found += rest_of(consumer)
    assert [record.offset for record in found] == list(range(ENTRIES + 1))


def test_a_reader_gives_up_on_a_broker_that_stays_away(server):
    topic, last = large_topic(server)
    with a_proxy("127.0.0.1", server.port) as proxy:
        config = ClientConfig(f"pulsar://{proxy.address}", answer_s=1, outage_s=2)
        lists = TopicReader(config, topic).read(None, last)
        next(lists)
        proxy.cut()
        begun_s = time.monotonic()
        with pytest.raises(BrokerError, match="for 2 s"):
            list(lists)
        assert time.monotonic() - begun_s < 20


def test_a_broker_that_takes_connections_and_is_silent_is_an_error_in_time(server):
    topic = server.make_topic()
    send(server, topic, "a")
    with a_proxy("127.0.0.1", server.port) as proxy:
        proxy.silent = True
        config = ClientConfig(f"pulsar://{proxy.address}", answer_s=0.5, outage_s=1)
        for ask in (
            lambda: Cluster(config).last_id(topic),
            lambda: Cluster(config).subscribe(topic, COMPACTION, compacted=True),
            lambda: list(TopicReader(config, topic).read(None, MessageId(1 << 40, 0))),
        ):
            begun_s = time.monotonic()
            with pytest.raises(BrokerError, match="sends nothing"):
                ask()
            assert time.monotonic() - begun_s < 10


def test_a_subscription_is_held_while_its_owner_works_on_something_else(server):
    topic = server.make_topic()
    send(server, topic, "a")
    with Cluster(config_of(server)).subscribe(topic, COMPACTION, compacted=True) as held:
        time.sleep(4)  # several of the broker's pings
        assert held.is_open
        with pytest.raises(SubscriptionBusyError):
            Cluster(config_of(server)).subscribe(topic, COMPACTION, compacted=True)
    with Cluster(config_of(server)).subscribe(topic, COMPACTION, compacted=True) as another:
        assert another.is_open and not held.is_open


@pytest.mark.parametrize("loss", LOSSES)
def test_a_subscription_that_is_lost_says_so_and_acknowledges_nothing_more(server, loss):
    topic = server.make_topic()
    first, second = (MessageId(at.ledger_id(), at.entry_id()) for at in send(server, topic, "a", "b"))
    with a_proxy("127.0.0.1", server.port) as proxy:
        held = Cluster(config_of(server, proxy)).subscribe(topic, "mine")
        held.acknowledge(first, {})
        assert held.is_confirmed()
        LOSSES[loss](Place(server, proxy, topic))
        wait_until(lambda: not held.is_open, "the loss goes unnoticed")
        assert not held.is_confirmed()
        with pytest.raises(BrokerError, match="is lost"):
            held.acknowledge(second, {})
        held.close()
    with Cluster(config_of(server, answer_s=30)).subscribe(topic, "mine"):  # restarted, it loads every topic
        assert server.internal_stats(topic)["cursors"]["mine"]["markDeletePosition"] != str(second)


def test_a_new_durable_subscription_begins_at_the_earliest_entry(server):
    topic = server.make_topic()
    (at,) = send(server, topic, "a")
    with Cluster(config_of(server)).subscribe(topic, "mine"):
        assert server.internal_stats(topic)["cursors"]["mine"]["readPosition"] == f"{at.ledger_id()}:0"


def test_a_silent_wire_ends_an_acknowledgement_in_time(server):
    topic = server.make_topic()
    (at,) = send(server, topic, "a")
    with a_proxy("127.0.0.1", server.port) as proxy:
        held = Cluster(config_of(server, proxy, answer_s=1)).subscribe(topic, "mine")
        proxy.silent = True
        begun_s = time.monotonic()
        with pytest.raises(TransientBrokerError):
            held.acknowledge(MessageId(at.ledger_id(), at.entry_id()), {})
        assert not held.is_open and time.monotonic() - begun_s < 10
        held.close()


def test_many_readers_at_once_do_not_disturb_each_other(server):
    topic = server.make_topic()
    at = send(server, topic, *map(str, range(20)))[-1]
    last, got = MessageId(at.ledger_id(), at.entry_id()), []

    def read() -> None:
        got.append(sum(map(len, TopicReader(config_of(server), topic).read(None, last))))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [20] * 8


def created(writer, topic):
    """A ledger, as soon as the client of ZooKeeper in a JVM that is kept has noticed that the cluster is back."""
    made = []

    def tried():
        with suppress(BrokerError):
            made.append(writer.create(topic, MessageId(1, 1), "run"))
        return made != []

    wait_until(tried, "the JVM makes no ledger", 60)
    return made[0]


def test_a_cluster_comes_back_with_a_damaged_entry(server, session, monkeypatch):
    """Who reads it is told where it is; a round changes nothing (C55). A JVM that is kept serves on."""
    monkeypatch.setattr(kept_jvms, "KEPT_S", 300.0)
    topic, jvms = server.make_topic(), []
    ids = send(server, topic, "a", "to be damaged", "c", key="k")
    ledger, last = ids[0].ledger_id(), MessageId(ids[-1].ledger_id(), ids[-1].entry_id())
    server.unload(topic)
    for _ in range(2):
        with a_writer(server) as writer:
            made = created(writer, server.make_topic())
            writer.append([bytes(100)] * 10)
            assert writer.close() == (made, 10, 1000)
            jvms.append(writer._jvm)
        if len(jvms) == 1:
            server.kill()
            spoil(server, b"to be damaged")
            server.start()
    assert jvms[0] is jvms[1]
    config = replace(config_of(server, answer_s=1), outage_s=0)
    with pytest.raises(BrokerError, match=f"{topic}: after entry {ledger}:0: "):
        list(TopicReader(config, topic).read(MessageId(ledger, 1), last))
    admin = Admin(config)
    ledgers = TopicLedgers.of(admin.internal_stats(topic), admin.runtime_configuration())
    assert ledgers is not None
    bookies = LedgerReader(java_parts(), MetadataStore.at(server.metadata_url), ledgers, answer_s=2)
    with pytest.raises(BrokerError, match=f"entry {ledger}:1 cannot be read: BKDigestMatchException"):
        list(bookies.read(None, last))
    assert [raw.entry for part in bookies.read(MessageId(ledger, 2), last) for raw in part] == [2]
    (report,) = LiveTopic(topic, config).compact(spark=session, jars=str(pulsar_jars())).partitions
    assert f"{topic}: at the beginning of ledger {ledger}: " in str(report.error)
    assert (report.compacted_ledger, view_ledgers(server, topic)) == (None, [])
