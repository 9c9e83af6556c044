"""A cluster that is killed once, under all that must outlive it: each of them is a test. See `survivors.py`."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

import lithify
from lithify.api.pulsar import LiveTopic
from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.pulsar.bookkeeper import LedgerReader, LedgerWriter, MetadataStore, TopicLedgers, kept_jvms
from lithify.pulsar.client import Admin, Cluster, TopicReader
from lithify.pulsar_consumer import PulsarSnapshotConsumer
from lithify.reports.pulsar.rounds import TopicRoundReport
from support.pulsar.bookies import a_writer, java_parts, spoil
from support.pulsar.clients import send
from support.pulsar.copies import COPIED_S, PulsarCopy, namespace_retention
from support.pulsar.jars import pulsar_jars
from support.pulsar.large_topics import ENTRIES, empty_copy, first_of, ids_of_all, large_topic, rest_of
from support.pulsar.live_topics import (
    a_round,
    a_round_of_tasks,
    compacted_values,
    look,
    produce,
    raw,
    reference,
    view,
    view_ledgers,
)
from support.pulsar.server import PulsarServer
from support.pulsar.survivors import Place, Survives, survivors_of
from support.servers.tcp_proxy import wait_until


def a_reader(at: Place) -> Generator[None]:
    """Continues where it was."""
    topic, last = at.large
    lists = TopicReader(at.config, topic).read(None, last)
    got = [*next(lists)]
    yield
    yield
    got += [entry for entries in lists for entry in entries]
    assert [(entry.ledger, entry.entry) for entry in got] == ids_of_all(got[0].ledger, last.ledger)


def a_consumer(at: Place) -> Generator[None]:
    """Also from the lake."""
    topic, _ = at.large
    with PulsarSnapshotConsumer(empty_copy(at.folder, topic), at.config, pulsar_topic=topic) as consumer:
        found = first_of(consumer)
        yield
        yield
        found += rest_of(consumer)
    assert [record.offset for record in found] == list(range(ENTRIES))
    ids = [record.envelope.id for record in found if record.envelope is not None]
    assert len(ids) == ENTRIES and ids == sorted(set(ids))


def an_impatient_consumer(at: Place) -> Generator[None]:
    """Can be used again after its broker stayed away, also where it had read all."""
    topic = at.server.make_topic()
    send(at.server, topic, "a", "b")
    config = replace(at.config, outage_s=2)
    with PulsarSnapshotConsumer(empty_copy(at.folder, topic), config, pulsar_topic=topic) as consumer:
        found = rest_of(consumer)
        yield
        for _ in range(2):
            with pytest.raises(BrokerError, match="for 2 s"):
                consumer.poll(60)
        yield
        send(at.server, topic, "late")
        found += rest_of(consumer)
    assert [(record.offset, record.value) for record in found] == [(0, b"a"), (1, b"b"), (2, b"late")]


def a_subscription(at: Place) -> Generator[None]:
    """Says that it is lost, and acknowledges nothing more."""
    topic = at.server.make_topic()
    first, second = (MessageId(one.ledger_id(), one.entry_id()) for one in send(at.server, topic, "a", "b"))
    held = Cluster(at.config).subscribe(topic, "mine")
    held.acknowledge(first, {})
    assert held.is_confirmed()
    yield
    wait_until(lambda: not held.is_open, "the loss goes unnoticed")
    yield
    assert not held.is_confirmed()
    with pytest.raises(BrokerError, match="is lost"):
        held.acknowledge(second, {})
    held.close()
    with Cluster(replace(at.config, answer_s=30)).subscribe(topic, "mine"):  # restarted, it loads every topic
        assert at.server.internal_stats(topic)["cursors"]["mine"]["markDeletePosition"] != str(second)


def an_ingest(at: Place) -> Generator[None]:
    """C52: it waits until its broker is there again."""
    copied, stop = list[int](), Event()
    copy = PulsarCopy(lithify.open(str(at.folder)), at.server, at.session, at.server.make_topic())
    copy.produce(0, 50)
    told = {"tell": lambda batch: copied.append(batch.records), "stops": stop.is_set}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(copy.ingest, continuous=True, interval_ms=100, **told)
        try:
            wait_until(lambda: sum(copied) == 50 or running.done(), "nothing is copied", COPIED_S)
            yield
            time.sleep(2)
            yield
            copy.produce(50, 90)
            wait_until(lambda: sum(copied) == 90 or running.done(), "nothing more is copied", COPIED_S)
        finally:
            stop.set()
        report = running.result(60)
        assert (report.error, report.records) == (None, 90)
    copy.check_equal()


def a_writer_of_ledgers(at: Place) -> Generator[None]:
    """Without its bookies, its next calls fail in bounded time."""
    with a_writer(at.server, answer_s=3) as writer:
        ledger = writer.create("persistent://public/default/none", MessageId(7, 9), "run")
        yield
        with pytest.raises(BrokerError):
            for _ in range(100):
                writer.append([b"entry"])
            writer.close()
        writer.delete(ledger)  # for which the metadata store is enough
        assert writer.of("persistent://public/default/none", 0) == []
        yield


def created(writer: LedgerWriter, topic: str) -> int:
    """A ledger, as soon as the client of ZooKeeper in a JVM that is kept has noticed that the cluster is back."""
    made: list[int] = []

    def tried() -> bool:
        with suppress(BrokerError):
            made.append(writer.create(topic, MessageId(1, 1), "run"))
        return made != []

    wait_until(tried, "the JVM makes no ledger", 60)
    return made[0]


def a_jvm_that_is_kept(at: Place) -> Generator[None]:
    """Serves on. The JVMs of others are kept apart, and its own ends with it."""
    jvms, kept, topic = [], list[Any](), at.server.make_topic()
    try:
        for has_restarted in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(kept_jvms, "KEPT_S", 300.0)
                patch.setattr(kept_jvms, "_kept", kept)
                with a_writer(at.server) as writer:
                    made = created(writer, topic)
                    writer.append([bytes(100)] * 10)
                    assert writer.close() == (made, 10, 1000)
                    jvms.append(writer._jvm)
            if not has_restarted:
                yield
                yield
        assert jvms[0] is jvms[1]
    finally:
        for one in kept:
            one.end.cancel()
            one.jvm.end()


def a_damaged_entry(at: Place) -> Generator[None]:
    """C55: who reads it is told where it is; a round changes nothing."""
    server, topic = at.server, at.server.make_topic()
    ids = send(server, topic, "a", "to be damaged", "c", key="k")
    ledger, last = ids[0].ledger_id(), MessageId(ids[-1].ledger_id(), ids[-1].entry_id())
    server.unload(topic)
    yield
    spoil(server, b"to be damaged")
    yield
    config = replace(at.config, answer_s=1, outage_s=0)
    with pytest.raises(BrokerError, match=f"{topic}: after entry {ledger}:0: "):
        list(TopicReader(config, topic).read(MessageId(ledger, 1), last))
    admin = Admin(config)
    without = {"transactionCoordinatorEnabled": "false"}  # this topic has none
    ledgers = TopicLedgers.of(admin.internal_stats(topic), {**admin.runtime_configuration(), **without})
    assert ledgers is not None
    bookies = LedgerReader(java_parts(), MetadataStore.at(server.metadata_url), ledgers, answer_s=2)
    with pytest.raises(BrokerError, match=f"entry {ledger}:1 cannot be read: BKDigestMatchException"):
        list(bookies.read(None, last))
    assert [one.entry for part in bookies.read(MessageId(ledger, 2), last) for one in part] == [2]
    (report,) = LiveTopic(topic, config).compact(spark=at.session, jars=str(pulsar_jars())).partitions
    assert f"{topic}: at the beginning of ledger {ledger}: " in str(report.error)
    assert (report.compacted_ledger, view_ledgers(server, topic)) == (None, [])


def a_view(at: Place) -> Generator[None]:
    """C54: what a round has covered may be trimmed; the next one has it from the view."""
    server, topic = at.server, at.server.make_topic()
    namespace_retention(server, topic, 0)
    produce(server, topic, 8, 200)
    whole = raw(server, topic, compacted=False)
    assert a_round(server, topic, at.session).changed
    assert view(server, topic) == reference(whole)
    server.unload(topic)
    produce(server, topic, 9, 60)
    server.admin("POST", f"{topic.replace('://', '/')}/trim")
    wait_until(
        lambda: server.internal_stats(topic)["ledgers"][0]["ledgerId"] != whole[0].ledger, "the broker trims nothing"
    )
    left = raw(server, topic, compacted=False)
    assert left[0] != whole[0]
    before = view(server, topic)
    yield
    yield
    assert view(server, topic) == before
    horizon = look(server, topic).horizon
    assert horizon is not None
    new = [entry for entry in left if entry[:2] > horizon[:2]]
    assert a_round(server, topic, at.session).changed
    assert view(server, topic) == reference([*before, *new])


def is_unknown(report: TopicRoundReport) -> bool:
    """Whether the broker died after it was asked to serve the view, and before it said that it does."""
    return [one.error_code for one in report.failed] == ["UnknownOutcome"]


def two_rounds(at: Place) -> Generator[None]:
    """C55: they fail and nothing else does, whatever they were doing: one on Spark, begun 1.5 s before the end, and a
    small one, begun 0.2 s before it."""
    server, session = at.server, at.session
    begun = {server.make_topic(): how for how in ((a_round_of_tasks, 1.3), (a_round, 0.2))}
    before, whole = {}, {}
    for topic in begun:
        produce(server, topic, 3, 200)
        assert a_round(server, topic, session).changed
        before[topic] = view(server, topic)
        produce(server, topic, 4, 200)
        whole[topic] = compacted_values(server, topic)
    rounds = {}
    with ThreadPoolExecutor(len(begun)) as pool:
        for topic, (compact, pause_s) in begun.items():
            rounds[topic] = pool.submit(compact, server, topic, session)
            time.sleep(pause_s)
        yield
    yield
    for topic, ended in rounds.items():
        error = ended.exception()
        assert error is None or isinstance(error, BrokerError)
        report = None if error else ended.result()
        if report is None or (report.failed and not report.changed and not is_unknown(report)):
            assert view(server, topic) == before[topic]
        assert compacted_values(server, topic) == whole[topic]
        assert not a_round(server, topic, session).failed
        assert compacted_values(server, topic) == whole[topic]
        assert view_ledgers(server, topic) == [look(server, topic).view]


SURVIVORS: dict[str, Survives] = {
    "an ingest": an_ingest,
    "a view": a_view,
    "a damaged entry": a_damaged_entry,
    "a subscription": a_subscription,
    "an impatient consumer": an_impatient_consumer,
    "a JVM that is kept": a_jvm_that_is_kept,
    "a writer of ledgers": a_writer_of_ledgers,
    "a consumer": a_consumer,
    "a reader": a_reader,
    "two rounds": two_rounds,
}
"""The last one begins shortly before the end."""


@pytest.fixture(scope="module")
def survivors(mortal_cluster: PulsarServer, session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if not mortal_cluster.is_running:
        mortal_cluster.start()
    large = large_topic(mortal_cluster)
    places = {name: Place(mortal_cluster, session, tmp_path_factory.mktemp("survivor"), large) for name in SURVIVORS}
    found = survivors_of(places, SURVIVORS)
    yield found
    for one in found.values():
        one.steps.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SURVIVORS)
def test_a_cluster_that_is_killed_and_comes_back_is_outlived(survivors, name):
    survivors[name].finish()
