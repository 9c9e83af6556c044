"""Sources that lie, on a real broker: an ingest, a table and consumers notice, and name what is wrong.

    cut, and grown again       C72: refused, also by those that run meanwhile, with the offset of the cut
    cut at the copy's end      nothing that was read is lost: all go on
    times out of range         copied as they are, also what Spark's Kafka source cannot hold

Each lie is told to all who read the source.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.errors import ConnectorError, SourceWentBackError
from lithify.kafka import SnapshotConsumer, hydrate
from support.engines.kernel import compact_without_spark
from support.kafka.broker import KafkaBroker, a_broker
from support.kafka.ingest import KafkaCopy
from support.kafka.lies import put_back, remember


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """One that can be stopped."""
    with a_broker() as broker:
        yield broker


@dataclass(slots=True)
class Read:
    """A topic, its copy, and all who read it."""

    copy: KafkaCopy
    folder: Path
    live: SnapshotConsumer = field(init=False)

    def consumer(self, name: str) -> SnapshotConsumer:
        copy = self.copy
        where = self.folder / name
        return SnapshotConsumer(copy.lake.topic("copy"), copy.kafka, kafka_topic=copy.topic, position=where)

    def hydrate(self) -> None:
        copy = self.copy
        hydrate(copy.lake.topic("copy"), copy.kafka, str(self.folder / "table.db"))

    def read_all(self) -> None:
        """By a table, by a consumer that will continue, and by one that stays."""
        self.hydrate()
        self.live = self.consumer("live")
        self.live.fill({})
        with self.consumer("position") as consumer:
            consumer.fill({})


def read(broker: KafkaBroker, session: SparkSession, folder: Path, **config: str) -> Read:
    folder.mkdir()
    topic = broker.make_topic(**config)
    return Read(KafkaCopy(lithify.open(str(folder / "lake")), broker, session, topic), folder)


def test_a_source_that_was_cut_and_has_grown_again_is_noticed_by_all(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """C72: the cut happens while an ingest and a consumer run. A cut at the copy's end has lost nothing of it."""
    cut, at_end = (read(broker, session, tmp_path / name) for name in ("cut", "at_end"))
    topics = [cut.copy.topic, at_end.copy.topic]
    cut.copy.produce(0, 5)
    at_end.copy.produce(0, 10)
    remember(broker, topics)
    cut.copy.produce(5, 10)
    assert at_end.copy.ingest().error is None
    at_end.read_all()
    at_end.copy.produce(10, 12)

    def lie(_batch: object) -> None:
        if cut.copy.lake.topic("copy").state().log(0).log_end_offset == 10:
            cut.read_all()
            put_back(broker, topics)
            for told in (cut, at_end):
                told.copy.produce(100, 110)

    error = cut.copy.ingest(continuous=True, interval_ms=100, tell=lie).error
    lost = f"{cut.copy.topic}-0 has lost its records from offset 5 on and has others there now"
    assert error is not None and lost in error
    assert lost in str(cut.copy.ingest().error)
    for refused in (cut.live.take, cut.hydrate, lambda: cut.consumer("position"), lambda: cut.consumer("new")):
        with pytest.raises(SourceWentBackError, match=lost):
            refused()
    assert broker.log_start_and_end(cut.copy.topic)[1] == 15
    assert cut.copy.lake.topic("copy").state().log(0).log_end_offset == 10

    assert at_end.copy.ingest().error is None
    at_end.copy.check_equal()
    at_end.hydrate()
    with at_end.consumer("position") as consumer:
        assert consumer.fill({}) == 10

    cut.copy.lake.topic("copy").truncate(0, 5)
    assert cut.copy.ingest().error is None
    cut.copy.check_equal()


LATEST = 2**63 - 1


def test_times_that_spark_cannot_hold_are_copied_as_they_are(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """C1: nanoseconds in place of milliseconds, in one batch with others, and in later ones; a table has the same."""
    told = read(broker, session, tmp_path / "times", message_timestamp_after_max_ms=str(LATEST))
    copy = told.copy
    copy.produce(0, 20)
    copy.produce(20, 30, timestamp=1_700_000_000_000_000_000)
    copy.produce(30, 31, timestamp=LATEST)
    copy.produce(31, 40)
    assert copy.ingest(config={"cleanup.policy": "compact"}).error is None
    copy.check_equal()
    copy.produce(40, 41, timestamp=LATEST)
    copy.produce(41, 60)
    assert copy.ingest(max_records=7).error is None
    copy.check_equal()
    compact_without_spark(copy.lake.topic("copy"))
    told.hydrate()
    times = {r.timestamp for r in told.consumer("position").take()}
    with sqlite3.connect(told.folder / "table.db") as table:
        assert {row[0] for row in table.execute('SELECT timestamp FROM "copy"')} <= times


def test_a_time_that_spark_cannot_hold_is_named_without_the_client_that_can(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = read(broker, session, tmp_path / "times", message_timestamp_after_max_ms=str(LATEST))
    told.copy.produce(0, 3)
    told.copy.produce(3, 4, timestamp=LATEST)

    def missing() -> None:
        raise ConnectorError("Kafka's client for Python is missing")

    monkeypatch.setattr("lithify.kafka_client.client.client", missing)
    error = told.copy.ingest().error
    assert error is not None and f"{told.copy.topic}: the record at offset 3 has the timestamp {LATEST}" in error
