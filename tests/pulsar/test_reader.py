"""Raw entries of a real broker: every id once and in order, from any start to any end, whatever is at either."""

from __future__ import annotations

import itertools
import pickle

import pytest

from lithify.errors import UnknownSourceError
from lithify.model.message import MessageId
from lithify.pulsar.client import ClientConfig, Cluster, TopicReader
from lithify.pulsar.client.topic_reader import LIST_BYTES
from lithify.pulsar.format.entry import RawEntry, entry_of
from support.pulsar.clients import a_client, send
from support.pulsar.server import PulsarServer


def config_of(server: PulsarServer, **more: float) -> ClientConfig:
    return ClientConfig(server.service_url, server.admin_url, **more)


def entries_of(
    reader: TopicReader, start: MessageId | None, end: MessageId, *, compacted: bool = False
) -> list[RawEntry]:
    return list(itertools.chain.from_iterable(reader.read(start, end, compacted=compacted)))


def places(reader: TopicReader, start: MessageId | None, end: MessageId, *, compacted: bool = False) -> list[str]:
    return [entry.place for entry in entries_of(reader, start, end, compacted=compacted)]


def ids(*at: tuple[int, int]) -> list[str]:
    return [f"{ledger}:{entry}" for ledger, entry in at]


@pytest.fixture
def two_ledgers(pulsar_server):
    """A topic with entries 0 to 2 in a first ledger `a`, and 0 and 1 in a second, `b`."""
    topic = pulsar_server.make_topic()
    a = send(pulsar_server, topic, "1", "2", "3")[0].ledger_id()
    pulsar_server.unload(topic)
    b = send(pulsar_server, topic, "4", "5")[0].ledger_id()
    return TopicReader(config_of(pulsar_server), topic), a, b


WHOLE = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [
        (None, (1, 1), WHOLE),
        ((0, 0), (1, 1), WHOLE),
        ((0, 1), (0, 2), [(0, 1), (0, 2)]),
        ((0, 1), (0, 1), [(0, 1)]),
        ((1, 1), (1, 1), [(1, 1)]),
        ((0, 2), (1, 0), [(0, 2), (1, 0)]),
        ((0, 77), (1, 1), [(1, 0), (1, 1)]),  # `start` is in the gap between two ledgers
        ((-1, 5), (0, 1), [(0, 0), (0, 1)]),  # and before the first
        (None, (0, 77), [(0, 0), (0, 1), (0, 2)]),  # `end` is in the gap
        (None, (1, 77), WHOLE),  # and behind the last entry
        (None, (2, 0), WHOLE),
        ((1, 2), (2, 0), []),
        ((1, 1), (0, 0), []),
        (None, (-1, 0), []),
    ],
)
def test_a_range_has_the_entries_from_start_to_end(two_ledgers, start, end, wanted):
    reader, *ledgers = two_ledgers
    ledgers.append(ledgers[1] + 100)

    def at(place: tuple[int, int]) -> MessageId:
        return MessageId(ledgers[place[0]] if place[0] >= 0 else ledgers[0] - 1, place[1])

    found = places(reader, start and at(start), at(end))
    assert found == ids(*((ledgers[ledger], entry) for ledger, entry in wanted))


def test_entries_are_the_bytes_that_the_broker_stores(two_ledgers):
    reader, a, _ = two_ledgers
    (entry,) = entries_of(reader, MessageId(a, 1), MessageId(a, 1))
    assert entry_of(entry).payload == b"2" and entry_of(entry).has_checksum


def test_an_empty_topic_has_no_last_id_and_nothing_to_read(pulsar_server):
    topic = pulsar_server.make_topic()
    assert Cluster(config_of(pulsar_server)).last_id(topic) is None
    assert places(TopicReader(config_of(pulsar_server), topic), None, MessageId(1 << 40, 0)) == []


def test_the_last_id_is_that_of_the_last_message_of_a_batch(pulsar_server):
    topic = pulsar_server.make_topic()
    with a_client(pulsar_server) as client:
        producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=60_000)
        for n in range(5):
            producer.send_async(b"%d" % n, None)
        producer.flush()
    last = Cluster(config_of(pulsar_server)).last_id(topic)
    assert last is not None and (last.entry, last.batch_index) == (0, 4)
    assert places(TopicReader(config_of(pulsar_server), topic), last, last) == ids(last[:2])


def test_partitions_are_counted_and_read_one_by_one(pulsar_server):
    topic, single = pulsar_server.make_topic(3), pulsar_server.make_topic()
    cluster = Cluster(config_of(pulsar_server))
    assert (cluster.partitions(topic), cluster.partitions(single)) == (3, 0)
    send(pulsar_server, f"{topic}-partition-1", "a")
    assert [cluster.last_id(f"{topic}-partition-{n}") is None for n in range(3)] == [True, False, True]


def test_a_topic_that_does_not_exist_is_named_and_not_created(pulsar_server):
    cluster, missing = Cluster(config_of(pulsar_server)), "persistent://public/default/missing"
    for ask in (cluster.partitions, cluster.last_id, lambda topic: cluster.subscribe(topic, "mine")):
        with pytest.raises(UnknownSourceError, match=missing):
            ask(missing)
    with pytest.raises(UnknownSourceError, match=missing):
        places(TopicReader(config_of(pulsar_server), missing), None, MessageId(1, 1))
    assert missing not in pulsar_server.admin("GET", "persistent/public/default").json()


def test_the_compacted_view_comes_first_and_then_what_is_behind_it(pulsar_server):
    topic = pulsar_server.make_topic()
    with a_client(pulsar_server) as client:
        producer = client.create_producer(topic, batching_enabled=False)
        for key, value in (("a", b"1"), ("b", b"1"), ("a", b"2"), ("b", b""), ("c", b"1")):
            at = producer.send(value, partition_key=key)
        pulsar_server.compact(topic)
        for key, value in (("a", b"3"), ("a", b"4")):
            producer.send(value, partition_key=key)
    reader, ledger = TopicReader(config_of(pulsar_server), topic), at.ledger_id()
    last = Cluster(config_of(pulsar_server)).last_id(topic, compacted=True)
    assert last == MessageId(ledger, 6)

    def view(start: int | None, end: int) -> list[int]:
        begin = None if start is None else MessageId(ledger, start)
        return [entry.entry for entry in entries_of(reader, begin, MessageId(ledger, end), compacted=True)]

    assert view(None, 6) == [2, 4, 5, 6]
    assert view(None, 3) == [2]  # `end` was compacted out
    assert view(None, 1) == []
    assert view(3, 5) == [4, 5]
    assert view(0, 4) == [2, 4]


def test_a_view_without_a_message_is_read_as_nothing(pulsar_server):
    topic = pulsar_server.make_topic()
    (_, last) = send(pulsar_server, topic, "1", "", key="a")
    pulsar_server.compact(topic)
    config, end = config_of(pulsar_server), MessageId(last.ledger_id(), last.entry_id())
    assert Cluster(config).last_id(topic, compacted=True) is None
    assert places(TopicReader(config, topic), None, end, compacted=True) == []
    assert len(places(TopicReader(config, topic), None, end)) == 2


def test_a_read_is_in_lists_of_some_mebibytes_and_crosses_process_borders(pulsar_server):
    topic = pulsar_server.make_topic()
    with a_client(pulsar_server) as client:
        producer = client.create_producer(topic, batching_enabled=False, block_if_queue_full=True)
        for _ in range(12):
            producer.send_async(bytes(1 << 20), None)
        producer.flush()
    config = config_of(pulsar_server)
    last = Cluster(config).last_id(topic)
    reader: TopicReader = pickle.loads(pickle.dumps(TopicReader(config, topic)))
    lists = list(reader.read(None, last))
    assert sum(map(len, lists)) == 12
    assert max(sum(len(entry.data) for entry in entries) for entries in lists) <= LIST_BYTES + (2 << 20)
