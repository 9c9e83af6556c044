"""What Pulsar's own compactor leaves of a topic that Pulsar's client wrote is what `compact_entries` leaves."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

import pulsar
from lithify.model.message import MessageId
from lithify.pulsar import compact_entries
from lithify.pulsar.client import ClientConfig, TopicReader
from lithify.pulsar.format.batch import value_of
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import unframed
from support.pulsar.clients import a_client
from support.pulsar.live_topics import a_round, look, raw, view
from support.pulsar.server import PulsarServer, a_pulsar

CODECS = list(pulsar.CompressionType.__members__.values())
KEYS = ["a", "b", "c", "", None, "schlüssel"]
VALUES = [b"", b"1", b"value " * 40, bytes(300)]
STEPS = 25


def write(server: PulsarServer, topic: str, chance: random.Random) -> None:
    """Messages alone and in batches, of all codecs, with every kind of key and value."""
    with a_client(server) as client:
        for _ in range(STEPS):
            size = chance.choice([0, 0, 1, 2, 5, 9])
            producer = client.create_producer(
                topic,
                compression_type=chance.choice(CODECS),
                batching_enabled=size > 0,
                batching_max_messages=100,
                batching_max_publish_delay_ms=60_000,
            )
            for _ in range(max(size, 1)):
                send(producer.send_async, chance)
            producer.flush()
            producer.close()


def send(sending: Callable[..., None], chance: random.Random) -> None:
    key = chance.choice(KEYS)
    more = {} if key is None else {"partition_key": key}
    if chance.random() < 0.3:
        more["properties"] = {"p": "1", "": "q" * 200}
    if chance.random() < 0.3:
        more["event_timestamp"] = chance.choice([1, 2, 3, 10**13])
    sending(chance.choice(VALUES), lambda *_: None, **more)


def parts(raw: RawEntry) -> tuple[int, int, bytes, bytes]:
    """All of an entry. Two libraries need not compress to the same bytes, so the payload is uncompressed."""
    entry = entry_of(raw)
    return raw.ledger, raw.entry, entry.metadata_bytes, value_of(entry)


def assert_views_are_equal(server: PulsarServer, seed: int, *, order: str, retain_null_key: bool) -> None:
    """Two compactions by Pulsar, and what each must be."""
    topic, chance = server.make_topic(), random.Random(seed)
    reader = TopicReader(ClientConfig(server.service_url, server.admin_url), topic)
    everything = MessageId(2**40, 0)
    earlier: list[RawEntry] = []
    for _ in range(2):
        write(server, topic, chance)
        backlog = [raw for entries in reader.read(None, everything) for raw in entries]
        assert len(backlog) >= STEPS
        server.compact(topic)
        view = [raw for entries in reader.read(None, everything, compacted=True) for raw in entries]
        new = [raw for raw in backlog if not earlier or raw[:2] > earlier[-1][:2]]
        for given in ([*earlier, *new], view):  # what came after an earlier view; and a view alone stays
            made = compact_entries(given, order=order, retain_null_key=retain_null_key)
            assert [parts(unframed(data)) for _, _, data in made] == [parts(raw) for raw in view]
        earlier = view


@pytest.mark.parametrize("seed", range(2))
def test_views_are_pulsars_entry_by_entry(pulsar_server, seed):
    assert_views_are_equal(pulsar_server, seed, order="publish", retain_null_key=False)


@pytest.fixture(scope="module")
def odd_server() -> Iterator[PulsarServer]:
    """It compacts by event time, retains messages without a key, and takes no large ones."""
    factory = "org.apache.pulsar.compaction.EventTimeCompactionServiceFactory"
    settings = {"compactionServiceFactoryClassName": factory, "topicCompactionRetainNullKey": "true"}
    with a_pulsar(**settings, maxMessageSize="102400") as server:
        yield server


@pytest.mark.parametrize("seed", range(3))
def test_views_by_event_time_with_messages_without_keys_are_pulsars(odd_server, seed):
    assert_views_are_equal(odd_server, seed, order="event-time", retain_null_key=True)


def test_rounds_by_event_time_take_turns_with_pulsars(odd_server, session):
    """Ours by the rules that the broker tells, then Pulsar's, and ours again (C54)."""
    topic, chance = odd_server.make_topic(), random.Random(9)
    earlier: list[RawEntry] = []
    for is_ours in (True, False, True):
        write(odd_server, topic, chance)
        horizon = look(odd_server, topic).horizon if earlier else None
        new = [e for e in raw(odd_server, topic, compacted=False) if horizon is None or e[:2] > horizon[:2]]
        if is_ours:
            assert a_round(odd_server, topic, session).changed
        else:
            odd_server.compact(topic)
        made = compact_entries([*earlier, *new], order="event-time", retain_null_key=True)
        earlier = view(odd_server, topic)
        assert [parts(entry) for entry in earlier] == [parts(unframed(data)) for *_, data in made]


def test_chunks_of_a_producer_that_was_restarted_are_those_of_two_messages(odd_server, session):
    """It gives both the same uuid. Pulsar's own compactor would leave the last chunk of each."""
    topic = odd_server.make_topic()
    with a_client(odd_server) as client:
        for key in ("a", "b"):
            producer = client.create_producer(topic, "fixed", chunking_enabled=True, batching_enabled=False)
            producer.send(random.Random(key).randbytes(250_000), partition_key=key)
            producer.close()
        client.create_producer(topic).send(b"small", partition_key="a")
    reader = TopicReader(ClientConfig(odd_server.service_url, odd_server.admin_url), topic)
    backlog = [raw for entries in reader.read(None, MessageId(2**40, 0)) for raw in entries]
    metadata = [entry_of(raw).metadata for raw in backlog]
    assert [each.uuid for each in metadata] == [b"fixed-0"] * 6 + [b""]
    assert [each.chunk_id for each in metadata[:6]] == [0, 1, 2, 0, 1, 2]
    assert [unframed(data) for _, _, data in compact_entries(backlog)] == backlog[3:]
    assert not a_round(odd_server, topic, session, order="publish").failed
    assert view(odd_server, topic) == backlog[3:]
