"""Rounds of a live Pulsar that go wrong: readers have what they had, and no ledger is left (C55)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from subprocess import Popen

import pytest
import requests

from lithify.api.pulsar import LiveTopic, left_ledgers
from lithify.api.wiring import BookKeeperChoice, pulsar_ports
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.errors import InvalidNameError, SubscriptionBusyError, UnknownSourceError
from lithify.model.message import EARLIEST, MessageId
from lithify.ports.pulsar.pulsar_cluster import Hold
from lithify.pulsar import compact_entries
from lithify.pulsar.bookkeeper import LedgerWriter
from lithify.pulsar.client import Admin, Cluster
from lithify.pulsar.client.names import TopicName
from lithify.pulsar.format.framing import unframed
from lithify.pulsar.live.live_cluster import COMPACTION, LiveCluster
from lithify.pulsar.live.view_ledgers import LiveViewLedgers
from lithify.service.pulsar.rounds import RoundRequest, compact_topic
from lithify.waits.deadline import Deadline
from support.pulsar.bookies import a_writer
from support.pulsar.jars import pulsar_jars
from support.pulsar.live_topics import (
    a_program,
    a_round,
    compacted_values,
    config_of,
    kill,
    look,
    opened,
    produce,
    raw,
    view,
    view_ledgers,
)
from support.pulsar.server import PulsarServer
from support.servers.tcp_proxy import wait_until


@pytest.fixture
def topic(pulsar_server: PulsarServer) -> str:
    topic = pulsar_server.make_topic()
    produce(pulsar_server, topic, 1, 100)
    return topic


def has_made(program: Popen[bytes], ledgers: LedgerWriter, topic: str, before: int) -> bool:
    return len(ledgers.of(topic, 0)) > before or program.poll() is not None


@pytest.mark.parametrize("order", ["publish", "event-time"])
def test_a_killed_round_leaves_no_ledger_after_the_next(pulsar_server, topic, session, order):
    """C55: killed with all of its processes once it has made a ledger, without Spark and with it."""
    assert a_round(pulsar_server, topic, session).changed
    for turn in range(2, 12):
        produce(pulsar_server, topic, turn, 100)
        before, values = view_ledgers(pulsar_server, topic), compacted_values(pulsar_server, topic)
        with a_program(pulsar_server, topic, "--order", order) as program, a_writer(pulsar_server) as ledgers:
            wait_until(partial(has_made, program, ledgers, topic, len(before)), "no ledger is made", 120)
            kill(program)
        if look(pulsar_server, topic).view in before:
            break  # else it had ended already
    assert compacted_values(pulsar_server, topic) == values
    wait_until(lambda: a_round(pulsar_server, topic, session).failed == (), "the subscription stays busy", 60)
    assert compacted_values(pulsar_server, topic) == values
    assert view_ledgers(pulsar_server, topic) == [look(pulsar_server, topic).view]
    assert look(pulsar_server, topic).unsettled is None


def test_a_view_is_dropped_with_what_a_killed_round_has_left(pulsar_server, topic):
    """C55: also where the view itself is gone, and the broker tells nothing more about the topic."""
    pulsar_server.compact(topic)
    served, live = look(pulsar_server, topic).view or 0, LiveTopic(topic, config_of(pulsar_server))
    LiveCluster(config_of(pulsar_server)).note_unsettled(topic, served)
    with a_writer(pulsar_server) as ledgers:
        left = ledgers.create(topic, MessageId(0, 0), "killed")
        ledgers.delete(served)
        pulsar_server.unload(topic)
        assert [found.ledger for found in ledgers.of(topic, 0)] == [left]
        assert live.uncompact(jars=str(pulsar_jars())).partitions[0].changed
        assert ledgers.of(topic, 0) == []
    assert not live.uncompact().partitions[0].changed


def test_ledgers_of_topics_that_are_gone_are_found_and_deleted(pulsar_server, topic, session):
    """C55: not those of topics that are there, whatever their names, and not those of another cluster's topics."""
    assert a_round(pulsar_server, topic, session).changed
    odd = "persistent://public/default/odd ~*+%ü.-_(x)"
    gone = pulsar_server.make_topic(name="to-be-deleted")
    pulsar_server.admin("PUT", TopicName.parsed(odd).path)
    assert LiveTopic(odd, config_of(pulsar_server)).last_message_position() == EARLIEST  # loads it
    produce(pulsar_server, gone, 1, 40)
    assert a_round(pulsar_server, gone, session).changed
    config, jars = config_of(pulsar_server), str(pulsar_jars())
    with a_writer(pulsar_server) as ledgers:
        for name in (topic, odd):
            ledgers.create(name, MessageId(0, 0), "killed")
        left = ledgers.create(gone, MessageId(0, 0), "killed")
        assert left not in [one.ledger for one in left_ledgers(config, jars=jars).ledgers]
        unserved = ledgers.create(topic, look(pulsar_server, topic).horizon, "its note was lost")
        with Cluster(config).subscribe(topic, COMPACTION, compacted=True):
            held = left_ledgers(config, jars=jars, delete=True)
            assert held.ledgers == () and "ConsumerBusy" in held.notes[0]
        before = view(pulsar_server, topic)
        found = left_ledgers(config, jars=jars, delete=True)
        assert [(one.ledger, one.gone) for one in found.ledgers] == [(unserved, False)]
        assert view(pulsar_server, topic) == before != []
        kept = [*ledgers.of(topic, 0), *ledgers.of(odd, 0)]
        assert pulsar_server.admin("DELETE", f"{TopicName.parsed(gone).path}?force=true").ok
        there = LiveViewLedgers(ledgers).with_messages([topic, odd, gone, "no name"])
        assert there == {topic, odd, "no name"}
        for deleted in (False, True):
            report = left_ledgers(config, jars=jars, delete=deleted)
            assert [one.ledger for one in report.ledgers if one.topic == gone] == [left]
            assert not {topic, odd}.intersection(one.topic for one in report.ledgers)
        assert ledgers.of(gone, 0) == []
        assert [*ledgers.of(topic, 0), *ledgers.of(odd, 0)] == kept


@pytest.mark.parametrize("order", ["publish", "event-time"])
def test_a_topic_that_is_unloaded_in_the_middle_fails_the_round_only(pulsar_server, topic, session, order):
    """C55: the broker closes the subscription that the round holds, without Spark or with it."""
    unloaded = []

    def progress(_phase: str, _done: int, _total: int) -> None:
        if not unloaded:
            pulsar_server.unload(topic)
            unloaded.append(True)

    report = a_round(pulsar_server, topic, session, progress=progress, order=order)
    assert "was lost" in str(report.failed[0].error)
    assert look(pulsar_server, topic).view is None
    assert a_round(pulsar_server, topic, session).changed
    assert view_ledgers(pulsar_server, topic) == [look(pulsar_server, topic).view]


class Patient(LiveCluster):
    """Has Pulsar compact, and takes the subscription in the first moment in which that releases it."""

    @contextmanager
    def hold(self, partition: str) -> Iterator[Hold]:
        url = f"{self.config.admin_url}/admin/v2/{partition.replace('://', '/')}/compaction"
        assert requests.put(url, timeout=30).ok
        was_busy, deadline = False, Deadline(3)
        while deadline.left_s():
            with ExitStack() as own:
                try:
                    hold = own.enter_context(super().hold(partition))
                except SubscriptionBusyError:
                    was_busy = True
                    continue
                if was_busy:
                    yield hold
                    return


def test_a_round_does_not_begin_between_the_phases_of_pulsars_compaction(pulsar_server, topic, session):
    """C55: Pulsar's releases the subscription there, and goes on once it is free."""
    config = config_of(pulsar_server)
    admin, deadline, said = Admin(config), Deadline(60), ""
    world = pulsar_ports(config, SparkChoice(session, {}), str(pulsar_jars()), BookKeeperChoice(None, None))
    world = replace(world, cluster=Patient(config))
    while "its broker is compacting it" not in said:
        assert deadline.left_s()
        produce(pulsar_server, topic, 2, 2000)
        said = str(compact_topic(world, RoundRequest(topic), lambda *_: None).partitions[0].error)
        wait_until(
            lambda: admin.compaction_status(topic)["status"] != "RUNNING", "Pulsar's compaction does not end", 60
        )
    wait_until(lambda: not a_round(pulsar_server, topic, session).failed, "the subscription stays busy", 60)
    whole = [unframed(data) for *_, data in compact_entries(raw(pulsar_server, topic, compacted=False))]
    assert opened(view(pulsar_server, topic)) == opened(whole)
    assert view_ledgers(pulsar_server, topic) == [look(pulsar_server, topic).view]


def test_a_compacted_ledger_that_is_gone_fails_rounds_until_uncompact(pulsar_server, topic, session):
    """C55: also after the broker has loaded the topic again."""
    assert a_round(pulsar_server, topic, session).changed
    with a_writer(pulsar_server) as ledgers:
        ledgers.delete(look(pulsar_server, topic).view or 0)
    pulsar_server.unload(topic)
    produce(pulsar_server, topic, 5, 50)
    for _ in range(2):
        assert "compacted ledger" in str(a_round(pulsar_server, topic, session).failed[0].error)
    live = LiveTopic(topic, config_of(pulsar_server))
    assert live.uncompact().partitions[0].changed
    assert not live.uncompact().partitions[0].changed
    report = a_round(pulsar_server, topic, session).partitions[0]
    assert report.error is None
    assert report.entries_in == len(raw(pulsar_server, topic, compacted=False))


@pytest.mark.parametrize(
    "name, kind",
    [
        ("non-persistent://public/default/x", InvalidNameError),
        ("orders", InvalidNameError),
        ("persistent://public/default/no-such-topic", UnknownSourceError),
        ("persistent://public/nowhere/x", UnknownSourceError),
        ("persistent://public/default/no-such-topic-partition-0", UnknownSourceError),
    ],
)
def test_what_cannot_be_compacted_is_refused(pulsar_server, name, kind):
    live = LiveTopic(name, config_of(pulsar_server))
    for action in (live.plan, live.uncompact, lambda: live.compact(jars=str(pulsar_jars()))):
        with pytest.raises(kind):
            action()


def test_a_partition_that_the_topic_has_not_is_refused(pulsar_server):
    topic = pulsar_server.make_topic(partitions=2)
    config = config_of(pulsar_server)
    assert [one.partition for one in LiveTopic(f"{topic}-partition-1", config).plan().partitions] == [1]
    with pytest.raises(UnknownSourceError, match=r"-partition-2 not found"):
        LiveTopic(f"{topic}-partition-2", config).plan()


def test_a_broker_that_compacts_by_itself_is_pointed_out(pulsar_server, topic):
    pulsar_server.admin("POST", f"{topic.replace('://', '/')}/compactionThreshold", json=1000)
    live = LiveTopic(topic, config_of(pulsar_server))
    wait_until(lambda: bool(live.plan().notes), "the policy is not in force", 30)
    assert "set its compaction threshold to 0" in live.plan().notes[0]
