"""Directories of a broker that was killed: what is imported is what the broker serves once it has started again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

import lithify
from lithify.errors import RefusedError
from lithify.kafka_log.directories.folders import log_directory
from lithify.reports.ingest import IngestReport
from support.kafka.broker import KafkaBroker, a_broker, read_all
from support.kafka.ingest import KafkaCopy
from support.servers.tcp_proxy import wait_until

UNCLEANED = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "1.0"}
KEPT_MS = "600000"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """One that can be killed; folders of deleted topics stay for a while."""
    with a_broker(file_delete_delay_ms=KEPT_MS) as broker:
        yield broker


def place_of(broker: KafkaBroker, session: SparkSession, lake: Path, topic: str) -> KafkaCopy:
    return KafkaCopy(lithify.open(str(lake)), broker, session, topic)


def imported(place: KafkaCopy, *directories: Path) -> IngestReport:
    (report,) = place.lake.import_kafka(directories, [place.topic], into="copy", spark=place.session)
    return report


def test_a_killed_broker(broker: KafkaBroker, session: SparkSession, tmp_path: Path) -> None:
    """In the middle of transactions; its end is torn, and its checkpoint of epochs is gone. Then an ingest goes on."""
    place = place_of(broker, session, tmp_path / "lake", broker.make_topic(2, **UNCLEANED, segment_ms="200"))
    for name in ("gone", "ghost"):
        broker.make_topic(name=name)
        broker.producer().produce(name, b"value")
    broker.delete_topic("gone")
    ending = Event()
    threads = [Thread(target=_in_transactions, args=(place, f"{n}", ending)) for n in range(2)]
    for thread in threads:
        thread.start()
    for start in range(0, 100, 20):
        place.produce(start, start + 20)
        time.sleep(0.25)  # the next one begins a segment
    broker.kill()
    ending.set()
    for thread in threads:
        thread.join()
    for partition in range(2):
        last = max(path for path in (broker.data / f"{place.topic}-{partition}").glob("*.log") if path.stat().st_size)
        last.write_bytes(last.read_bytes()[:-3])
    (broker.data / f"{place.topic}-1" / "leader-epoch-checkpoint").unlink()
    shutil.copytree(broker.data / "ghost-0", broker.data / "unknown-0")
    metadata = broker.data / "unknown-0" / "partition.metadata"
    metadata.write_text(metadata.read_text()[:-22] + "AAAAAAAAAAAAAAAAAAAAAQ")
    assert _topics(broker) == {place.topic, "ghost", "unknown"}

    report = imported(place, broker.data)
    assert report.error is None and report.records
    ends = [log.log_end_offset for log in place.lake.topic("copy").state().logs]
    epochs = [log.source_epoch for log in place.lake.topic("copy").state().logs]
    broker.start()
    assert [path.name for path in broker.data.glob("unknown-0.*-stray")] and _topics(broker) == {place.topic, "ghost"}
    for partition, end in enumerate(ends):
        copied = [r.offset for r in place.lake.topic("copy").reader(partition)]
        served = read_all(broker, place.topic, partition)
        assert copied == [m.offset() for m in served if m.offset() < end]
        assert broker.log_start_and_end(place.topic, partition, committed=True)[1] >= end
    for n in range(2):
        broker.producer(transactional_id=f"{n}").init_transactions(30)  # which ends the open one
    place.produce(100, 120)
    assert place.ingest().error is None
    place.check_equal()
    later = [log.source_epoch for log in place.lake.topic("copy").state().logs]
    assert epochs == [0, 0]
    assert later == [read_all(broker, place.topic, partition)[-1].leader_epoch() for partition in range(2)]


def _in_transactions(place: KafkaCopy, name: str, ending: Event) -> None:
    producer = place.broker.producer(transactional_id=name, transaction_timeout_ms=60_000, message_timeout_ms=2_000)
    with suppress(KafkaException):
        producer.init_transactions(30)
        for turn in range(10_000):
            producer.begin_transaction()
            for n in range(6):
                producer.produce(place.topic, key=b"%s%d" % (name.encode(), n), value=b"t" * 50, partition=n % 2)
            producer.flush(2)
            time.sleep(0.02)
            if ending.is_set():
                return
            (producer.abort_transaction if turn % 3 == 0 else producer.commit_transaction)(2)


def _topics(broker: KafkaBroker) -> set[str]:
    return {folder.topic for folder in log_directory(broker.data).folders if not folder.is_internal}


def test_a_cleaner_that_was_killed_between_its_files(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """In one topic its files were complete, in the other one of them was not: a broker goes on, or begins anew."""
    topics = [broker.make_topic(name=name, **UNCLEANED, segment_ms="200") for name in ("whole", "begun")]
    places = {topic: place_of(broker, session, tmp_path / topic, topic) for topic in topics}
    for start in range(0, 60, 20):
        for place in places.values():
            place.produce(start, start + 20)
        time.sleep(0.3)
    before = {topic: shutil.copytree(broker.data / f"{topic}-0", tmp_path / f"before-{topic}") for topic in topics}
    for topic in topics:
        broker.alter_topic(topic, min_cleanable_dirty_ratio="0.0", file_delete_delay_ms="0")
    for topic in topics:
        wait_until(lambda topic=topic: len(read_all(broker, topic)) < 30, "nothing is cleaned", 60)
        broker.alter_topic(topic, min_cleanable_dirty_ratio="1.0")
    time.sleep(0.5)
    broker.kill()
    for topic, kind in zip(topics, ("swap", "cleaned"), strict=True):
        folder = broker.data / f"{topic}-0"
        cleaned = min(path for path in folder.glob("*.log"))
        cleaned = cleaned.rename(cleaned.with_suffix(f".log.{kind}"))
        for path in before[topic].glob("*.log"):
            shutil.copy(path, folder)
        assert cleaned.stat().st_size < sum(path.stat().st_size for path in folder.glob("*.log"))
    for place in places.values():
        assert imported(place, broker.data).error is None
    broker.start()
    served = {topic: len(read_all(broker, topic)) for topic in topics}
    assert served["whole"] < 60 == served["begun"]
    for place in places.values():
        place.check_equal()


def test_replicas_of_which_the_longest_is_not_the_one_that_counts(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """Its last records were lost when the other one became the leader."""
    place = place_of(broker, session, tmp_path / "lake", broker.make_topic(2, **UNCLEANED))
    place.produce(0, 20, partition=0)
    place.produce(20, 40, partition=1)
    short = {p: shutil.copytree(broker.data / f"{place.topic}-{p}", tmp_path / f"short-{p}") for p in range(2)}
    place.produce(40, 60, partition=0)
    broker.stop()
    long = shutil.copytree(broker.data, tmp_path / "long")
    folder = broker.data / f"{place.topic}-0"
    shutil.rmtree(folder)
    shutil.copytree(short[0], folder)
    for checkpoint in broker.data.glob("re*-offset-checkpoint"):
        checkpoint.unlink()
    broker.start()
    place.produce(60, 65, partition=0)
    wait_until(lambda: broker.log_start_and_end(place.topic)[1] == 25, "it is not cut", 30)
    new = tmp_path / "new"
    new.mkdir()
    for path in broker.data.glob(f"{place.topic}-*"):
        shutil.copytree(path, new / path.name)
    shutil.copy(broker.data / "meta.properties", new)
    assert imported(place, long, new).error is None
    place.check_equal()
    properties = long / "meta.properties"
    properties.write_text(properties.read_text().replace("cluster.id=", "cluster.id=another"))
    with pytest.raises(RefusedError, match="the directories are of 2 clusters"):
        imported(place, long, new)
    assert "in the cluster" in str(imported(place, _without_id(long)).error)


def _without_id(directory: Path) -> Path:
    """As of a broker before 2.8."""
    for metadata in directory.glob("*/partition.metadata"):
        metadata.unlink()
    return directory
