"""Brokers that unload a topic or are cut off in the middle: readers continue, subscriptions do not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from lithify.errors import BrokerError, SubscriptionBusyError
from lithify.model.message import MessageId
from lithify.pulsar.client import ClientConfig, Cluster, TopicReader
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar_consumer import PulsarSnapshotConsumer
from support.pulsar.clients import send
from support.pulsar.large_topics import ENTRIES, empty_copy, first_of, ids_of_all, large_topic, rest_of
from support.pulsar.server import PulsarServer, a_pulsar
from support.servers.tcp_proxy import TcpProxy, a_proxy, wait_until

COMPACTION = "__compaction"


@pytest.fixture(scope="module")
def server() -> Iterator[PulsarServer]:
    """One that pings every second, and drops clients that do not answer."""
    with a_pulsar(keepAliveIntervalSeconds="1") as server:
        yield server


def config_of(server: PulsarServer, proxy: TcpProxy | None = None, answer_s: float = 5) -> ClientConfig:
    url = f"pulsar://{proxy.address}" if proxy else server.service_url
    return ClientConfig(url, server.admin_url, answer_s=answer_s, outage_s=60)


@pytest.fixture(scope="module")
def large(server: PulsarServer) -> tuple[str, MessageId]:
    """To be read only."""
    return large_topic(server)


@dataclass(frozen=True)
class Place:
    """Where trouble strikes."""

    server: PulsarServer
    proxy: TcpProxy
    topic: str


LOSSES: dict[str, Callable[[Place], None]] = {
    "the topic is unloaded": lambda at: at.server.unload(at.topic),
    "the connection is cut": lambda at: at.proxy.drop(),
}
TROUBLE = {**LOSSES, "the consumer is slower than the broker's pings": lambda at: time.sleep(4)}  # noqa: ARG005


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_reader_continues_where_it_was(server, large, trouble):
    (topic, last), got = large, []
    with a_proxy("127.0.0.1", server.port) as proxy:
        for part in TopicReader(config_of(server, proxy), topic).read(None, last):
            got += [(entry.ledger, entry.entry) for entry in part]
            if len(got) == len(part):
                TROUBLE[trouble](Place(server, proxy, topic))
    assert got == ids_of_all(got[0][0], last.ledger)


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_consumer_from_the_lake_continues_where_it_was(server, tmp_path, trouble):
    """Also one that waits for messages over a connection that it keeps."""
    topic, _ = large_topic(server)
    with (
        a_proxy("127.0.0.1", server.port) as proxy,
        PulsarSnapshotConsumer(empty_copy(tmp_path, topic), config_of(server, proxy), pulsar_topic=topic) as consumer,
    ):
        found = first_of(consumer)
        for _ in range(2):
            TROUBLE[trouble](Place(server, proxy, topic))
            found += rest_of(consumer)
            assert [record.offset for record in found] == list(range(ENTRIES))
        send(server, topic, "late")
        assert [(record.offset, record.value) for record in rest_of(consumer)] == [(ENTRIES, b"late")]
    ids = [record.envelope.id for record in found]
    assert ids == sorted(set(ids))


def test_a_reader_gives_up_on_a_broker_that_stays_away(server, large):
    topic, last = large
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
    with Cluster(config_of(server)).subscribe(topic, "mine"):
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
