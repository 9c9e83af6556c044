"""A copy that is under way when the broker or the topic goes away, or that is not let in: named, and nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.errors import BrokerError
from lithify.kafka import SnapshotConsumer
from lithify.model.record import Record
from lithify.reports.ingest import IngestBatch, IngestNote
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import SOON, KafkaCopy
from support.kafka.lake import kafka_lake

NOW = 1_700_000_000_000


def a_copy(folder: Path, broker: KafkaBroker, session: SparkSession) -> KafkaCopy:
    copy = KafkaCopy(lithify.open(str(folder / "lake")), broker, session, broker.make_topic(2), SOON)
    copy.produce(0, 50)
    return copy


def test_a_broker_that_is_killed_in_the_middle(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    """Under an ingest, which waits for it, and under a consumer that has read everything, which names it."""
    copy, both = a_copy(tmp_path, broker, session), kafka_lake(broker, tmp_path)
    both.produce([Record(b"a", b"1", NOW)])
    records, events = 0, list[str]()
    with SnapshotConsumer(both.topic, both.conf, timeout_s=2) as consumer:
        first = consumer.poll()
        assert first is not None and first.value == b"1"
        assert consumer.caught_up()

        def killed(batch: IngestBatch) -> None:
            nonlocal records
            records += batch.records
            if records == 50:
                broker.kill()

        def is_back(note: IngestNote) -> None:
            events.append(note.event)
            if note.event == "outage":
                with pytest.raises(BrokerError, match="fails: "):
                    list(consumer)
                broker.start()
                copy.produce(50, 80)

        try:
            how = {"continuous": True, "interval_ms": 100, "tell": killed, "notes": is_back}
            report = copy.ingest(**how, stops=lambda: records == 80 or len(events) > 20)
        finally:
            if not broker.runs:
                broker.start()
        both.produce([Record(b"a", b"2", NOW)])
        assert next(iter(consumer)).value == b"2"
    assert (report.error, report.records) == (None, 80)
    assert events.index("outage") < events.index("recovered")
    copy.check_equal()


def test_a_topic_that_is_deleted_in_the_middle(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    copy = a_copy(tmp_path, broker, session)
    report = copy.ingest(continuous=True, interval_ms=100, tell=lambda _batch: broker.delete_topic(copy.topic))
    assert report.error is not None and "check whether it was deleted" in report.error
    assert report.records == 50


def test_a_topic_that_is_made_again_in_the_middle(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    """And filled beyond where the copy is, so that offsets tell nothing."""
    copy = a_copy(tmp_path, broker, session)

    def made_again(batch: IngestBatch) -> None:
        if batch.records:
            broker.delete_topic(copy.topic)
            broker.make_topic(2, name=copy.topic)
            copy.produce(1000, 1200)

    report = copy.ingest(continuous=True, interval_ms=100, tell=made_again)
    assert report.error is not None and "was deleted and recreated" in report.error
    assert report.records == 50


def test_a_copy_that_is_made_again_in_the_middle(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    """What has the name of the copy now is another program's, and stays as it was made."""
    copy = a_copy(tmp_path, broker, session)

    def made_again(batch: IngestBatch) -> None:
        if batch.records:
            copy.lake.delete_topic("copy")
            copy.lake.create_topic("copy", partitions=1)
            copy.produce(50, 80)

    report = copy.ingest(continuous=True, interval_ms=100, tell=made_again)
    assert report.error is not None and "was deleted and recreated meanwhile" in report.error
    info = copy.lake.topic("copy").info()
    assert (info.partitions, info.version) == (1, 1)


def test_authentication_that_is_refused(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='secret';"
    sasl = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    copy = KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, broker.make_topic(1), sasl)
    report = copy.ingest()
    assert report.error is not None and "refuses access" in report.error
    assert "secret" not in report.error
