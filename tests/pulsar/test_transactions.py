"""Brokers send no reader the markers and the messages of aborted transactions that they keep: a read ends in time."""

from __future__ import annotations

import pytest

from lithify.model.message import MessageId
from lithify.pulsar.client import ClientConfig, Cluster, TopicReader
from lithify.reports.pulsar.rounds import EntryPlace
from support.pulsar.clients import send
from support.pulsar.java_client import java_read, java_transactions
from support.pulsar.live_topics import a_round, view

TAIL = {
    # what is written after `x`, and which entries (of all, with markers) a reader of the whole topic gets
    "commit:a,b": [0, 1, 2],
    "abort:a,b": [0],
    "commit:a abort:b": [0, 1],
    "abort:b commit:a": [0, 3],
    "open:a": [0],
    "commit:a open:b": [0, 1],
}


@pytest.mark.parametrize("tail", TAIL)
def test_a_read_ends_where_readers_get_nothing_more(mortal_server, tail):
    topic = mortal_server.make_topic()
    (first,) = send(mortal_server, topic, "x")
    java_transactions(mortal_server, topic, *tail.split())
    config = ClientConfig(mortal_server.service_url, mortal_server.admin_url, answer_s=5, outage_s=5)
    last, ledger = Cluster(config).last_id(topic), first.ledger_id()
    assert last == MessageId(ledger, TAIL[tail][-1])
    for end in range(8):
        got = [e.entry for part in TopicReader(config, topic).read(None, MessageId(ledger, end)) for e in part]
        assert got == [entry for entry in TAIL[tail] if entry <= end], end
    assert [message.entry for message in java_read(mortal_server, topic, compacted=False)] == TAIL[tail]


def test_a_round_ends_before_what_is_aborted_or_open(mortal_server, session):
    """C54: none of that decides what stays, and nothing that is committed behind an open transaction."""
    topic = mortal_server.make_topic()
    (first,) = send(mortal_server, topic, "x", key="k")
    for *tail, last, stays in (["commit:a,b", "abort:c", "open:d", 2, [2]], ["commit:e", 2, [2]]):
        java_transactions(mortal_server, topic, *map(str, tail))
        report = a_round(mortal_server, topic, session)
        assert (report.failed, report.partitions[0].horizon) == ((), EntryPlace(first.ledger_id(), last))
        assert [entry.entry for entry in view(mortal_server, topic)] == stays
