"""Where the last message of a live topic is, and the first at a time, as Pulsar's compaction service says (PIP-429)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest

import lithify
import pulsar
from lithify.api.pulsar import LiveTopic
from lithify.errors import UnknownSourceError
from lithify.model.message import EARLIEST
from lithify.pulsar.format.entry import entry_of
from support.pulsar.clients import a_client
from support.pulsar.copies import PulsarCopy, namespace_retention, trim
from support.pulsar.live_topics import a_round, config_of, raw, view
from support.pulsar.server import PulsarServer


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> pulsar.CryptoKeyReader:
    private, public = (tmp_path_factory.mktemp("keys") / name for name in ("private.pem", "public.pem"))
    for command in (["genrsa", "-out", private, "2048"], ["rsa", "-in", private, "-pubout", "-out", public]):
        subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True, timeout=60)
    return pulsar.CryptoKeyReader(str(public), str(private))


def send_batch(server: PulsarServer, topic: str, pairs: Sequence[tuple[str, bytes]], **how: object) -> None:
    with a_client(server) as client:
        producer = client.create_producer(
            topic,
            batching_enabled=True,
            batching_max_publish_delay_ms=60_000,
            compression_type=pulsar.CompressionType.LZ4,
            **how,
        )
        for key, value in pairs:
            producer.send_async(value, lambda *_: None, partition_key=key)
        producer.flush()
        producer.close()


def test_positions_of_a_topic_whose_view_ends_with_an_encrypted_batch(pulsar_server, session, keys):
    """Pulsar 4.2 cannot tell the last id of such a view, written by it or by a round."""
    name = pulsar_server.make_topic()
    topic = LiveTopic(name, config_of(pulsar_server))
    assert topic.last_message_position() == topic.last_message_position(compacted=True) == EARLIEST
    assert topic.find_by_publish_time(0) is None
    send_batch(pulsar_server, name, [("a", b"1"), ("b", b"2")])
    send_batch(pulsar_server, name, [("a", b"3"), ("b", b"")])
    send_batch(pulsar_server, name, [("c", b"4"), ("d", b"5"), ("e", b"6")], encryption_key="k", crypto_key_reader=keys)
    first, second, sealed = raw(pulsar_server, name, compacted=False)
    times = [entry_of(entry).metadata.publish_time for entry in (first, second, sealed)]
    last = (*sealed[:2], 2, times[2])
    for compact in (lambda: None, lambda: pulsar_server.compact(name), lambda: a_round(pulsar_server, name, session)):
        compact()
        assert topic.last_message_position() == topic.last_message_position(compacted=True) == last
        assert [entry[:2] for entry in raw(pulsar_server, name, compacted=True)][-1] == sealed[:2]
        assert topic.find_by_publish_time(times[0]) == (*first[:2], 0, times[0])
        assert topic.find_by_publish_time(times[2], compacted=True) == (*sealed[:2], -1, times[2])
        assert topic.find_by_publish_time(times[2] + 1, compacted=True) is None
    send_batch(pulsar_server, name, [("a", b""), ("f", b"7")])
    assert not a_round(pulsar_server, name, session).failed
    assert view(pulsar_server, name)[0][:2] == sealed[:2]
    assert topic.find_by_publish_time(0, compacted=True) == (*sealed[:2], -1, times[2])
    assert topic.last_message_position(compacted=True)[2] == 1
    with pytest.raises(UnknownSourceError, match="has no partition 1"):
        topic.last_message_position(1)


def test_positions_in_a_view_whose_entries_the_topic_has_no_more(pulsar_server, session, tmp_path):
    name = pulsar_server.make_topic()
    topic = LiveTopic(name, config_of(pulsar_server))
    for key in "abc":
        send_batch(pulsar_server, name, [(key, b"1")])
    entries = raw(pulsar_server, name, compacted=False)
    times = [entry_of(entry).metadata.publish_time for entry in entries]
    assert a_round(pulsar_server, name, session).changed
    namespace_retention(pulsar_server, name, 0)
    trim(PulsarCopy(lithify.open(str(tmp_path)), pulsar_server, session, name))
    assert topic.last_message_position()[:2] != entries[-1][:2]
    for sent in (False, True):
        if sent:
            send_batch(pulsar_server, name, [("d", b"2")])
        for entry, time in zip(entries, times, strict=True):
            assert topic.find_by_publish_time(time, compacted=True) == (*entry[:2], 0, time), sent
    assert topic.find_by_publish_time(times[0]) != (*entries[0][:2], 0, times[0])
