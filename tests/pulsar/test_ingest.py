"""`lithify pulsar ingest` from a real broker: every message once, whatever happens on the way (C52)."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest
from pyspark.sql import SparkSession

import lithify
import pulsar
from lithify.errors import SourceWentBackError
from lithify.model.message import MessageId
from lithify.pulsar.client import ClientConfig
from lithify.pulsar.format.entry import entry_of
from lithify.pulsar_consumer import PulsarSnapshotConsumer
from lithify.spark.pulsar.pulsar_stream import EntryBatch
from support.engines.kernel import compact_without_spark
from support.processes.programs import end
from support.pulsar.clients import a_client
from support.pulsar.copies import PulsarCopy, ingest_program, namespace_retention, trim, wait_for_records
from support.pulsar.live_topics import a_round, raw, view
from support.pulsar.server import PulsarServer
from support.servers.tcp_proxy import wait_until

NOTED_S = 30.0


@pytest.fixture
def copy(tmp_path: Path, pulsar_server: PulsarServer, session: SparkSession) -> PulsarCopy:
    return PulsarCopy(lithify.open(str(tmp_path / "lake")), pulsar_server, session, pulsar_server.make_topic())


def test_all_partitions_are_copied_and_continued(tmp_path, pulsar_server, session):
    """C52: batches, single messages, codecs; keys, properties, times."""
    topic = pulsar_server.make_topic(partitions=3)
    copy = PulsarCopy(lithify.open(str(tmp_path / "lake")), pulsar_server, session, topic, 3)
    copy.produce(0, 90, batching_max_messages=8, compression_type=pulsar.CompressionType.LZ4)
    copy.produce(90, 110, batching_enabled=False, compression_type=pulsar.CompressionType.ZSTD)
    report = copy.ingest()
    assert (report.error, report.records) == (None, 110)
    copy.check_equal()
    assert copy.ingest().batches == 0
    copy.produce(110, 140)
    assert copy.ingest(max_records=4).batches > 1
    copy.check_equal()
    assert copy.copy.state().settings.side_by_side
    compact_without_spark(copy.copy)
    assert copy.copy.verify(spark=session).findings == ()
    pulsar_server.admin("POST", f"{topic.replace('://', '/')}/partitions", json=4)
    copy = replace(copy, partitions=4)
    copy.produce(140, 160)
    assert copy.ingest().records == 20
    assert len(copy.mine()[3]) > 0
    copy.check_equal()
    for partition in range(4):
        theirs, last = copy.theirs()[partition][-1], copy.copy.last_message_position(partition)
        assert (last.id, last.publish_time) == (theirs[0], theirs[4])


def test_chunks_of_a_large_message_are_copied_and_compacted_together(copy):
    """C52, C54: of 6 MiB, where an entry has at most 5."""
    with a_client(copy.server) as client:
        for n in range(3):
            producer = client.create_producer(copy.topic, chunking_enabled=True, batching_enabled=False)
            producer.send(bytes([n]) * (6 << 20), partition_key="k" if n else "other")
            producer.close()
    entries = raw(copy.server, copy.topic, compacted=False)
    assert copy.ingest().records == len(entries) == 6
    records = list(copy.copy.reader(0))
    assert [record.value for record in records] == [entry_of(entry).payload for entry in entries]
    assert all(record.envelope.passed_through and record.key is None for record in records)
    assert a_round(copy.server, copy.topic, copy.session).failed == ()
    assert view(copy.server, copy.topic) == [*entries[:2], *entries[4:]]


def test_the_subscription_follows_the_copy(copy):
    """C52: Pulsar keeps what is not copied yet, and no more."""
    copy.produce(0, 5, batching_enabled=False)
    assert copy.ingest().records == 5
    copy.produce(5, 9, batching_enabled=False)
    (cursor,) = copy.server.internal_stats(copy.topic)["cursors"].values()
    assert cursor["markDeletePosition"] == str(copy.copy.state().log(0).copied_to)


def test_what_was_copied_and_trimmed_is_not_missed(copy):
    """C52: brokers trim what the subscription has passed; that is no loss."""
    namespace_retention(copy.server, copy.topic, 0)
    copy.produce(0, 5)
    assert copy.ingest().records == 5
    trim(copy)
    copy.produce(5, 9)
    report = copy.ingest()
    assert (report.error, report.records, report.holes) == (None, 4, ())


def test_what_was_trimmed_before_it_was_copied_is_named(copy):
    """C52: the subscription was deleted, and Pulsar trimmed what nobody kept."""
    namespace_retention(copy.server, copy.topic, 0)
    copy.produce(0, 5)
    assert copy.ingest().records == 5
    at = copy.copy.state().log(0).copied_to
    (name,) = copy.server.internal_stats(copy.topic)["cursors"]
    copy.server.admin("DELETE", f"{copy.topic.replace('://', '/')}/subscription/{name}")
    copy.produce(5, 9)
    trim(copy)
    copy.produce(9, 12)
    report = copy.ingest()
    assert "may have been trimmed there" in str(report.error)
    assert f"the copy ends at {at}" in str(report.error)
    report = copy.ingest(accepts_loss=True)
    assert (report.error, report.records) == (None, 3)
    assert [hole.after for hole in report.holes] == [str(at)]
    assert copy.ingest().error is None


def test_what_has_expired_before_it_was_copied_is_named(tmp_path, pulsar_server, session):
    """C52: the subscription is where our own acknowledgement would have left it, and has our notes."""
    namespace = pulsar_server.make_namespace("expiring", message_ttl_in_seconds=1)
    topic = pulsar_server.make_topic(namespace=namespace)
    copy = PulsarCopy(lithify.open(str(tmp_path / "lake")), pulsar_server, session, topic)
    namespace_retention(pulsar_server, topic, 0)
    copy.produce(0, 5)
    assert copy.ingest().records == 5
    at = copy.copy.state().log(0).copied_to
    copy.produce(5, 9)
    expire(copy)
    trim(copy)
    copy.produce(9, 12)
    assert f"the copy ends at {at}: messages in between may have been trimmed there" in str(copy.ingest().error)
    report = copy.ingest(accepts_loss=True)
    assert (report.error, report.records) == (None, 3)
    assert [hole.after for hole in report.holes] == [str(at)]


def test_a_ttl_is_no_loss_before_it_is_over(copy):
    """C52: of an idle topic, whose broker moves the subscription from ledger to ledger, and the notes with it."""
    copy.server.admin("POST", f"{copy.topic.replace('://', '/')}/messageTTL?messageTTL=3600")
    namespace_retention(copy.server, copy.topic, 0)
    copy.produce(0, 5)
    assert copy.ingest().records == 5
    for _ in range(2):  # after the second one the broker does not know of the last entry any more
        before = time.time_ns() // 1_000_000
        trim(copy)
        assert copy.ingest().error is None
        wait_until(lambda at=before: notes_of(copy)["lithify-seen"] > at, "it is not noted", NOTED_S)
        at = MessageId(notes_of(copy)["lithify-ledger"], notes_of(copy)["lithify-entry"])
        assert at == copy.copy.state().log(0).copied_to
    copy.produce(5, 9)
    report = copy.ingest()
    assert (report.error, report.records, report.holes) == (None, 4, ())


@pytest.mark.parametrize("accepts_loss", [False, True])
def test_what_is_trimmed_before_a_running_ingest_reads_it_is_named(copy, monkeypatch, accepts_loss):
    """C52: readers pass over what is not there any more."""
    namespace_retention(copy.server, copy.topic, 0)
    copy.produce(0, 5)
    assert copy.ingest().records == 5
    at = copy.copy.state().log(0).copied_to
    copy.produce(5, 9)
    read = EntryBatch.copy

    def trimmed_before(batch, copying):
        monkeypatch.undo()
        (name,) = copy.server.internal_stats(copy.topic)["cursors"]
        copy.server.admin("DELETE", f"{copy.topic.replace('://', '/')}/subscription/{name}")
        trim(copy)
        return read(batch, copying)

    monkeypatch.setattr(EntryBatch, "copy", trimmed_before)
    report = copy.ingest(accepts_loss=accepts_loss)
    if not accepts_loss:
        assert f"the copy ends at {at}" in str(report.error)
        assert copy.copy.state().log(0).copied_to == at
        return
    assert (report.error, report.records) == (None, 0)
    assert [hole.after for hole in report.holes] == [str(at)]
    copy.produce(9, 12)
    report = copy.ingest()
    assert (report.error, report.records, len(report.holes)) == (None, 3, 1)


def test_a_recreated_topic_is_another_one(copy):
    """C52: ids of ledgers do not come twice, but nothing in them tells that they are of another topic."""
    copy.produce(0, 5)
    assert copy.ingest().records == 5
    path = copy.topic.replace("://", "/")
    copy.server.admin("DELETE", f"{path}?force=true")
    copy.server.admin("PUT", path)
    copy.produce(5, 9)
    assert "was deleted and recreated since it was copied" in str(copy.ingest().error)
    assert len(copy.mine()[0]) == 5


def test_a_cluster_that_was_restored_and_went_on_is_noticed(copy):
    """C52: it gives the same ids to other messages. Here the copy is of before, as its messages have other times."""
    copy.produce(0, 20)
    assert copy.ingest().error is None
    lost = copy.lake.create_topic("lost", like="pulsar", config={"message.ids": "pulsar"})
    lost.append([record._replace(timestamp=record.timestamp - 1) for record in copy.copy.reader(0)])
    copy.produce(20, 30)
    report = copy.ingest(into="lost")
    assert report.error_code == "SourceWentBack"
    assert f"has lost its messages up to {lost.state().log(0).copied_to}" in report.error
    assert (report.records, lost.state().log(0).log_end_offset) == (0, 20)
    with pytest.raises(SourceWentBackError, match="has another message at"):
        PulsarSnapshotConsumer(lost, copy.config, pulsar_topic=copy.topic)


def test_a_cluster_that_was_set_back_and_has_gone_on_in_a_later_ledger_is_noticed(copy):
    """C52: what it took into the ledgers before that would be missing. Here the copy is of before, with more there."""
    copy.produce(0, 3, batching_enabled=False)
    copy.server.unload(copy.topic)
    copy.produce(3, 6, batching_enabled=False)
    assert copy.ingest().error is None
    first, *_ = records = list(copy.copy.reader(0))[:3]
    lost = copy.lake.create_topic("lost", like="pulsar", config={"message.ids": "pulsar"})
    at = MessageId(first.envelope.id.ledger, 9)
    lost.append([*records, first._replace(envelope=first.envelope._replace(id=at))])
    report = copy.ingest(into="lost")
    assert report.error_code == "SourceWentBack"
    assert f"has lost its messages up to {at}" in report.error
    with pytest.raises(SourceWentBackError, match=f"has lost {at}, where this consumer continues"):
        PulsarSnapshotConsumer(lost, copy.config, pulsar_topic=copy.topic)


def test_a_truncated_copy_is_copied_again(copy):
    """C52, C26: from within a batch."""
    copy.produce(0, 20, batching_max_messages=20)
    assert copy.ingest().records == 20
    copy.copy.truncate(0, 13)
    assert copy.copy.state().log(0).copied_to != copy.theirs()[0][-1][0]
    assert copy.ingest().records == 7
    copy.check_equal()


def test_the_service_url_alone_is_enough(copy):
    """C52: without the admin interface; what only that tells is not noticed."""
    copy.produce(0, 12)
    config = ClientConfig(copy.server.service_url)
    assert copy.ingest(config=config).records == 12
    copy.produce(12, 15)
    assert copy.ingest(config=config).records == 3
    assert copy.ingest().error is None
    copy.check_equal()


def test_what_is_no_source_or_no_copy_is_refused(copy, session):
    name = "persistent://public/default/nothing"
    (report,) = copy.lake.ingest_pulsar(copy.config, [name], spark=session)
    assert "nothing" in str(report.error)
    assert report.refused
    copy.lake.create_topic("plain")
    report = copy.ingest(into="plain")
    assert "message.ids=none, but a copy of a Pulsar topic keeps ids" in str(report.error)
    assert report.refused


def test_a_reader_continues_at_an_id_of_pulsar(copy):
    """C52: ids of the source are valid here."""
    copy.produce(0, 30, batching_max_messages=7)
    copy.ingest()
    for message in copy.theirs()[0]:
        found = next(iter(copy.copy.reader(0, message[0])))
        assert found.envelope.id == message[0]
    assert copy.copy.find_by_publish_time(0).id == copy.theirs()[0][0][0]
    assert isinstance(copy.copy.last_message_position().id, MessageId)


@pytest.mark.timeout(900)
def test_an_ingest_that_is_killed_repeats_and_loses_nothing(tmp_path, pulsar_server, session):
    """C52, C6: between those of the session, while messages come in, the topic is unloaded, and rounds run."""
    topic = pulsar_server.make_topic(partitions=2)
    copy = PulsarCopy(lithify.open(str(tmp_path / "lake")), pulsar_server, session, topic, 2)
    copy.lake.create_topic(topic, 2, like="pulsar", config={"message.ids": "pulsar", "segment.bytes": 4096})
    done = Event()
    feeding = Thread(target=feed, args=(copy, done))
    feeding.start()
    try:
        assert copy.ingest().error is None
        compact_without_spark(copy.copy)
        process = ingest_program(tmp_path, pulsar_server, topic, "--continuous", "--interval", "100ms")
        try:
            for number in range(2):
                wait_for_records(tmp_path, process, 50)
                pulsar_server.unload(f"{topic}-partition-{number}")
            wait_for_records(tmp_path, process, 50)
        finally:
            end(process)
            process.wait(timeout=30)
        compact_without_spark(copy.copy)
    finally:
        done.set()
        feeding.join()
    assert copy.ingest().error is None
    copy.check_equal()


def expire(copy: PulsarCopy) -> None:
    """What the broker does by itself every few minutes, for messages older than a second."""
    (name,) = copy.server.internal_stats(copy.topic)["cursors"]
    time.sleep(1.5)
    copy.server.admin("POST", f"{copy.topic.replace('://', '/')}/subscription/{name}/expireMessages/1")


def notes_of(copy: PulsarCopy) -> dict[str, int]:
    (cursor,) = copy.server.internal_stats(copy.topic)["cursors"].values()
    return dict(cursor["properties"])


def feed(copy: PulsarCopy, done: Event) -> None:
    n = 0
    while not done.is_set() and n < 20_000:
        copy.produce(n, n + 20, batching_enabled=n % 40 == 0, batching_max_messages=6)
        n += 20
        done.wait(0.1)
