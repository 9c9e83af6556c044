"""Rounds of a live Pulsar: what Pulsar's own compactor would leave, in turn with it (C54)."""

from __future__ import annotations

import pytest

from support.pulsar.clients import send
from support.pulsar.java_client import java_read
from support.pulsar.live_topics import (
    a_round,
    a_round_of_tasks,
    compacted_values,
    config_of,
    look,
    opened,
    produce,
    raw,
    reference,
    view,
    view_ledgers,
)
from support.pulsar.server import PulsarServer


@pytest.fixture
def topic(pulsar_server: PulsarServer) -> str:
    return pulsar_server.make_topic()


def test_a_view_is_pulsars_own(pulsar_server, topic, session):
    """C54: of the same entries, to the byte of metadata and values; what clients read is the same too."""
    produce(pulsar_server, topic, 1, 400)
    pulsar_server.compact(topic)
    theirs = opened(view(pulsar_server, topic)), java_read(pulsar_server, topic, compacted=True)
    seen = compacted_values(pulsar_server, topic)
    pulsar_server.admin("DELETE", f"{topic.replace('://', '/')}/subscription/__compaction")
    pulsar_server.unload(topic)
    report = a_round(pulsar_server, topic, session)
    assert not report.failed
    assert (opened(view(pulsar_server, topic)), java_read(pulsar_server, topic, compacted=True)) == theirs
    assert compacted_values(pulsar_server, topic) == seen


def test_both_compactors_take_turns(pulsar_server, topic, session):
    """C54: ours with and without Spark, and Pulsar's, with messages and restarts of the topic in between."""
    produce(pulsar_server, topic, 2, 300)
    assert a_round(pulsar_server, topic, session).changed
    assert view(pulsar_server, topic) == reference(raw(pulsar_server, topic, compacted=False))
    for seed, compactor in [(3, "theirs"), (4, "ours"), (5, "tasks"), (6, "theirs"), (7, "ours")]:
        pulsar_server.unload(topic)
        before = view(pulsar_server, topic)
        produce(pulsar_server, topic, seed, 100)
        horizon = look(pulsar_server, topic).horizon
        assert horizon is not None
        new = [entry for entry in raw(pulsar_server, topic, compacted=False) if entry[:2] > horizon[:2]]
        match compactor:
            case "ours":
                assert a_round(pulsar_server, topic, session).changed
            case "tasks":
                assert a_round_of_tasks(pulsar_server, topic, session).changed
            case _:
                pulsar_server.compact(topic)
        assert opened(view(pulsar_server, topic)) == opened(reference([*before, *new]))
    assert view_ledgers(pulsar_server, topic) == [look(pulsar_server, topic).view]


def test_a_second_round_changes_nothing(pulsar_server, topic, session):
    """C41: the ledger stays, and the report says so."""
    produce(pulsar_server, topic, 7, 50)
    first = a_round(pulsar_server, topic, session)
    second = a_round(pulsar_server, topic, session)
    assert first.changed
    assert not second.changed
    assert second.partitions[0].compacted_ledger == first.partitions[0].compacted_ledger


def test_a_topic_whose_keys_are_all_deleted_has_an_empty_view(pulsar_server, topic, session):
    send(pulsar_server, topic, "a", "", key="k")
    report = a_round(pulsar_server, topic, session).partitions[0]
    assert (report.error, report.messages_in, report.messages_out, report.entries_out) == (None, 2, 0, 0)
    assert java_read(pulsar_server, topic, compacted=True) == []
    send(pulsar_server, topic, "b", key="k")
    assert a_round(pulsar_server, topic, session).changed
    assert compacted_values(pulsar_server, topic) == {"k": b"b"}


def test_an_empty_topic_has_nothing_to_do(pulsar_server, topic, session):
    report = a_round(pulsar_server, topic, session)
    assert (report.failed, report.changed) == ((), False)


def test_partitions_are_compacted_each(pulsar_server, session):
    """C55: one that another compactor holds fails alone; new ones come with the next round."""
    topic = pulsar_server.make_topic(partitions=3)
    for number in range(3):
        produce(pulsar_server, f"{topic}-partition-{number}", number, 60)
    from lithify.pulsar.client import Cluster

    with Cluster(config_of(pulsar_server)).subscribe(f"{topic}-partition-1", "__compaction", compacted=True):
        report = a_round(pulsar_server, topic, session)
    assert [one.changed for one in report.partitions] == [True, False, True]
    assert "ConsumerBusy" in str(report.partitions[1].error)
    pulsar_server.admin("POST", f"{topic.replace('://', '/')}/partitions", json=4)
    produce(pulsar_server, f"{topic}-partition-3", 3, 60)
    report = a_round_of_tasks(pulsar_server, topic, session)
    assert [one.changed for one in report.partitions] == [False, True, False, True]
