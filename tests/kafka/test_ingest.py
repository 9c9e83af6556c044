"""Copying topics of a real broker: to the byte, exactly once, and with trouble named (C1, C6)."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

import lithify
from lithify.model.staged import StagedLog
from lithify.ports.source import Copying
from lithify.reports.ingest import IngestBatch, IngestNote, IngestReport
from lithify.service.documents import source_of
from lithify.service.ingest.commit_copied import commit_copied
from lithify.spark.kafka.copied_logs import copied_logs
from lithify.spark.kafka.kafka_cluster import KafkaCluster
from support.kafka.broker import KafkaBroker, closed, read_all
from support.kafka.ingest import KafkaCopy


@pytest.fixture
def place(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> KafkaCopy:
    return KafkaCopy(
        lithify.open(str(tmp_path / "lake")), broker, session, broker.make_topic(2, cleanup_policy="compact")
    )


def test_a_copy_is_equal_to_the_byte_and_goes_on_where_it_ends(place: KafkaCopy) -> None:
    place.produce(0, 100)
    report = place.ingest()
    assert (report.error, report.records) == (None, 100)
    place.check_equal()
    place.produce(100, 130)
    assert place.ingest().records == 30
    place.check_equal()
    assert place.ingest().records == 0
    known = source_of(place.lake.warehouse.store, place.lake.topic("copy").state())
    assert known is not None and known.config == {"cleanup.policy": "compact"}  # no defaults of the broker


def test_a_look_at_records_leaves_the_positions_of_a_given_group(broker: KafkaBroker, session: SparkSession) -> None:
    """As of the consumers that have the same file of settings: they would go on behind what they have not read."""
    topic = broker.make_topic(1)
    producer = broker.producer()
    for n in range(5):
        producer.produce(topic, key=b"k", value=b"%d" % n)
    producer.flush()
    settings = {"bootstrap.servers": broker.address, "group.id": topic}
    place = TopicPartition(topic, 0)
    with closed(Consumer({**settings, "enable.auto.commit": False})) as group:
        group.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        with KafkaCluster(session, settings) as cluster:
            assert [*cluster.signs(topic, {0: (3, 4)})[0]] == [3]
        assert [at.offset for at in group.committed([place], timeout=20)] == [1]


def test_timestamps_that_the_log_gives(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    topic = broker.make_topic(1, message_timestamp_type="LogAppendTime")
    place = KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, topic)
    place.produce(0, 10)
    place.ingest()
    place.check_equal()


def test_only_what_was_committed_is_copied(place: KafkaCopy) -> None:
    producer = place.broker.producer(transactional_id="t")
    producer.init_transactions()
    for n, commits in enumerate((True, False, True)):
        producer.begin_transaction()
        for i in range(10):
            producer.produce(place.topic, key=b"%d" % i, value=b"%d" % n, partition=0)
        (producer.commit_transaction if commits else producer.abort_transaction)()
    producer.begin_transaction()
    producer.produce(place.topic, key=b"open", value=b"x", partition=0)
    producer.flush()
    assert place.ingest().records == 20, "neither what was aborted nor what is open"
    producer.commit_transaction()
    assert place.ingest().records == 1
    place.check_equal()


def committed(place: KafkaCopy, records: int) -> None:
    """A transaction: so many records in partition 0, and its marker."""
    producer = place.broker.producer(transactional_id=place.topic)
    producer.init_transactions()
    producer.begin_transaction()
    for i in range(records):
        producer.produce(place.topic, key=b"%d" % i, value=b"v", partition=0)
    producer.commit_transaction()


def test_a_copy_ends_where_kafka_was_read_to(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    """Behind its last record Kafka has a marker, an aborted transaction, records without a key: none is lag,
    and none of them is lost when retention takes it."""
    place = KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, broker.make_topic(2))
    batches: list[IngestBatch] = []
    how = {"config": {"cleanup.policy": "compact"}, "drops_keyless": True, "tell": batches.append}

    def marker() -> None:
        committed(place, 3)

    def keyless() -> None:
        producer = broker.producer()
        producer.produce(place.topic, value=b"no key", partition=0)
        producer.flush()

    def aborted() -> None:
        producer = broker.producer(transactional_id=place.topic)
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(place.topic, key=b"k", value=b"v", partition=0)
        producer.flush()
        producer.abort_transaction()

    for comes, records in ((marker, 3), (keyless, 0), (aborted, 0), (marker, 3)):
        comes()
        report = place.ingest(**how)
        assert (report.error, report.records) == (None, records)
        (_, end) = broker.log_start_and_end(place.topic, committed=True)
        log = place.lake.topic("copy").state().log(0)
        assert log.log_end_offset == end
        assert batches[-1].lag == 0
        delete_below(place, end)
    assert report.holes == ()
    reader = place.lake.topic("copy").reader(0)
    assert len(list(reader)) == 6
    assert not reader.has_message_available()
    assert place.lake.topic("copy").reader(0, log.log_end_offset).last_message_id() == log.last_record


def delete_below(place: KafkaCopy, end: int) -> None:
    """As retention does it."""
    (deleted,) = place.broker.admin().delete_records([TopicPartition(place.topic, 0, end)]).values()
    deleted.result(timeout=30)


def test_a_log_that_was_empty_from_an_offset_on(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    """What came behind that offset and went uncopied is missed."""
    place = KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, broker.make_topic(2))
    place.produce(0, 20, partition=0)
    delete_below(place, 20)
    assert place.ingest().error is None
    assert place.lake.topic("copy").state().log(0).log_end_offset == 20
    place.produce(20, 30, partition=0)
    delete_below(place, 25)
    assert "offsets 20 to 24 were deleted" in str(place.ingest().error)
    report = place.ingest(accepts_loss=True)
    assert [(hole.start_offset, hole.end_offset) for hole in report.holes] == [(20, 25)]
    assert place.lake.topic("copy").state().log(0).log_end_offset == 30


def test_small_batches_and_new_partitions(place: KafkaCopy) -> None:
    place.produce(0, 60)
    batches: list[Any] = []
    assert place.ingest(max_records=25, tell=batches.append).records == 60
    assert len(batches) >= 3
    place.broker.add_partitions(place.topic, 3)
    place.produce(60, 120)
    assert place.ingest().records == 60
    assert place.lake.topic("copy").info().partitions == 3
    place.check_equal()


def test_settings_come_along(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    settings = {"cleanup_policy": "compact,delete", "min_compaction_lag_ms": "60000", "delete_retention_ms": "1234"}
    place = KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, broker.make_topic(1, **settings))
    notes: list[IngestNote] = []
    place.ingest(config={"min.cleanable.dirty.ratio": 0.1}, notes=notes.append)
    found = place.lake.topic("copy").state().settings
    assert (found.cleanup_policy, found.min_compaction_lag_ms, found.delete_retention_ms) == ("compact", 60_000, 1234)
    assert found.min_cleanable_dirty_ratio == 0.1
    assert [note.event for note in notes] == ["settings", "begins"]
    said = notes[0].text
    assert said.startswith("copy: created with Kafka's cleanup.policy=compact, min.compaction.lag.ms=60000, ")
    assert "and with min.cleanable.dirty.ratio=0.1 as given; " in said
    assert said.endswith(
        "not copied: cleanup.policy=compact,delete, retention.ms=604800000, "
        "as a copy keeps its history unless --config sets a limit"
    )
    place.ingest(notes=notes.append)
    assert [note.event for note in notes[2:]] == ["begins"], "only a topic that it creates gets settings"


def test_a_topic_that_was_made_again_is_refused(place: KafkaCopy) -> None:
    place.produce(0, 20)
    place.ingest()
    place.broker.delete_topic(place.topic)
    place.broker.make_topic(2, name=place.topic)
    place.produce(0, 50)
    report = place.ingest()
    assert report.records == 0
    assert report.error is not None and "recreated" in report.error
    assert [len(list(place.lake.topic("copy").reader(p))) for p in range(2)] != [0, 0]


def test_what_kafka_has_let_go_of_is_named_and_can_be_accepted(
    tmp_path: Path, broker: KafkaBroker, session: SparkSession
) -> None:
    place = KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, broker.make_topic(1))
    place.produce(0, 20)
    place.ingest()
    place.produce(20, 50)
    delete_below(place, 35)
    report = place.ingest()
    assert report.error is not None and "offsets 20 to 34 were deleted" in report.error
    report = place.ingest(accepts_loss=True)
    assert (report.error, report.records) == (None, 15)
    assert [(hole.start_offset, hole.end_offset) for hole in report.holes] == [(20, 35)]
    assert [r.offset for r in place.lake.topic("copy").reader(0)] == [*range(20), *range(35, 50)]
    assert place.ingest().holes == report.holes, "it is remembered"


def test_records_without_a_key(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    # Kafka takes none into a topic that it compacts.
    place = KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, broker.make_topic(1))
    place.produce(0, 10)
    producer = place.broker.producer()
    producer.produce(place.topic, value=b"no key", partition=0)
    producer.flush()
    compacts = {"cleanup.policy": "compact"}
    report = place.ingest(config=compacts)
    assert report.records == 0
    assert str(report.error).startswith("copy-0, offset 10: the record is refused: it has no key, and null.key=reject")
    assert place.ingest(config=compacts, drops_keyless=True).records == 10


def test_two_ingests_of_one_topic(place: KafkaCopy) -> None:
    place.produce(0, 20)
    copy: list[IngestReport] = []

    def another(_batch: Any) -> None:
        if not copy:
            copy.append(IngestReport("", "", 0, 0, 0))
            place.produce(20, 30)
            copy.append(place.ingest())

    place.ingest()
    place.produce(20, 30)
    report = place.ingest(max_records=5, tell=another)
    assert copy[1].error is None
    assert report.error is not None and "another program writes to it" in report.error
    place.check_equal()


def test_what_another_ingest_has_committed_in_between_is_not_copied_twice(
    place: KafkaCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes just before a commit to the other log, which then sees its end in the newest version."""
    real, came = commit_copied, []
    batches: list[object] = []

    def with_another(*arguments: Any) -> Any:
        if not came:
            came.append(True)
            place.produce(10, 20, partition=1)
            records = [
                lithify.Record(m.key(), m.value(), m.timestamp()[1], partition=1, offset=m.offset())
                for m in read_all(place.broker, place.topic, 1)
            ]
            with monkeypatch.context() as as_an_ingest:
                as_an_ingest.setattr("lithify.service.creation.check_takes_records", lambda _: None)
                as_an_ingest.setattr("lithify.service.commit.check_appends", lambda *_: None)
                place.lake.topic("copy").append(records, keep_offsets=True)
        return real(*arguments)

    monkeypatch.setattr("lithify.service.ingest.topic_ingest.commit_copied", with_another)
    place.produce(0, 10, partition=0)
    report = place.ingest(continuous=True, interval_ms=100, tell=batches.append, stops=lambda: len(batches) > 1)
    assert report.error is not None and report.error.startswith("copy-1: another program writes to it")
    assert [r.offset for r in place.lake.topic("copy").reader(1)] == list(range(10))


def test_a_stop_in_the_middle_of_a_batch_is_no_error_and_nothing_goes_on_behind(
    place: KafkaCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = Event()

    def slow(frame: DataFrame, copying: Copying) -> tuple[StagedLog, ...]:
        begun.set()
        time.sleep(1)
        return copied_logs(frame, copying)

    place.produce(0, 100)
    monkeypatch.setattr("lithify.spark.kafka.exact.copied_logs", slow)
    assert place.ingest(continuous=True, stops=begun.is_set).error is None
    version = place.lake.topic("copy").state().version
    time.sleep(2)
    assert place.lake.topic("copy").state().version == version
    monkeypatch.undo()
    assert place.ingest().error is None
    place.check_equal()


def test_a_topic_that_is_not_there(place: KafkaCopy) -> None:
    reports = place.lake.ingest(place.kafka, [place.topic, "nowhere"], spark=place.session)
    errors = {report.source: report.error for report in reports}
    assert errors[place.topic] is None
    assert "no topic nowhere" in str(errors["nowhere"])
    assert [report.refused for report in reports if report.source == "nowhere"] == [True]


def test_a_broker_that_is_not_there(tmp_path: Path, session: SparkSession) -> None:
    kafka = {"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": "2000", "request.timeout.ms": "1000"}
    (report,) = lithify.open(str(tmp_path)).ingest(kafka, ["t"], spark=session)
    assert "127.0.0.1:1 does not report" in str(report.error)


def test_topics_that_come_to_match_a_pattern(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    lake, prefix = lithify.open(str(tmp_path / "lake")), broker.make_topic(1)
    first = KafkaCopy(lake, broker, session, broker.make_topic(1, name=f"{prefix}-a"))
    second = KafkaCopy(lake, broker, session, f"{prefix}-b")
    first.produce(0, 10)
    copied: list[int] = []

    def tell(batch: IngestBatch) -> None:
        copied.append(sum(log.records for log in batch.logs))
        if len(copied) == 1:
            broker.make_topic(1, name=second.topic)
            second.produce(0, 20)

    found = lake.ingest(
        {"bootstrap.servers": broker.address, "metadata.max.age.ms": "500"},
        pattern=f"{prefix}-.*",
        into="copies/",
        continuous=True,
        interval_ms=100,
        tell=tell,
        stops=lambda: sum(copied) == 30,
        spark=session,
    )
    assert [(report.source, report.records, report.error) for report in found] == [
        (first.topic, 10, None),
        (second.topic, 20, None),
    ]


def test_large_values(place: KafkaCopy) -> None:
    """What Kafka took is taken; where the copy has a limit of its own, the record is named and its topic stops."""
    producer = place.broker.producer(compression_type="zstd", message_max_bytes=10_000_000)
    producer.produce(place.topic, key=b"large", value=b"x" * 3_000_000, partition=0)
    producer.flush()
    assert place.ingest().error is None
    place.check_equal()

    place.lake.topic("copy").alter({"max.message.bytes": 1000})
    producer.produce(place.topic, key=b"large", value=b"x" * 1000, partition=0)
    producer.flush()
    report = place.ingest()
    assert report.records == 0
    assert str(report.error).startswith(
        "copy-0, offset 1: the record is refused: it has 1005 bytes, above max.message.bytes=1000"
    )
    place.lake.topic("copy").alter({"max.message.bytes": 2000})
    assert place.ingest().records == 1
