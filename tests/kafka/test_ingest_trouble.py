"""A copy that is under way when the broker or the topic goes away, or that is not let in: named, and nothing lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.reports.ingest import IngestBatch
from support.kafka.broker import KafkaBroker, a_broker
from support.kafka.ingest import KafkaCopy

SOON = {"default.api.timeout.ms": "3000", "request.timeout.ms": "2000"}
"""For clients that are to give up before long."""


@pytest.fixture
def passing_broker() -> Iterator[KafkaBroker]:
    """One that may be killed."""
    with a_broker() as broker:
        yield broker


def a_copy(folder: Path, broker: KafkaBroker, session: SparkSession) -> KafkaCopy:
    copy = KafkaCopy(lithify.open(str(folder / "lake")), broker, session, broker.make_topic(2), SOON)
    copy.produce(0, 50)
    return copy


def test_a_broker_that_goes_away_in_the_middle(
    tmp_path: Path, passing_broker: KafkaBroker, session: SparkSession
) -> None:
    copy = a_copy(tmp_path, passing_broker, session)
    report = copy.ingest(continuous=True, interval_ms=100, tell=lambda _batch: passing_broker.kill())
    assert report.error is not None and "nothing was lost; start it again" in report.error
    assert report.records == 50
    passing_broker.start()
    copy.produce(50, 80)
    assert copy.ingest().records == 30
    copy.check_equal()


def test_a_topic_that_is_deleted_in_the_middle(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    copy = a_copy(tmp_path, broker, session)
    report = copy.ingest(continuous=True, interval_ms=100, tell=lambda _batch: broker.delete_topic(copy.topic))
    assert report.error is not None and "was it deleted?" in report.error
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
