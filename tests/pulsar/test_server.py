"""The Pulsar of these tests itself: the broker compacts on demand."""

from __future__ import annotations

from support.pulsar.clients import read, send


def test_the_broker_compacts_when_it_is_told_to(pulsar_server):
    topic = pulsar_server.make_topic()
    send(pulsar_server, topic, "1", "2", key="k")
    pulsar_server.compact(topic)
    first = pulsar_server.compacted_ledger(topic)
    send(pulsar_server, topic, "3", key="k")
    pulsar_server.compact(topic)
    second = pulsar_server.compacted_ledger(topic)
    assert first is not None and second is not None and second > first
    assert read(pulsar_server, topic, 1, is_read_compacted=True) == [b"3"]
