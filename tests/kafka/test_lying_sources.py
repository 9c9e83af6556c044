"""Sources that lie, on real brokers: an ingest, a table and consumers notice, and name what is wrong.

    another leader, in order   C72: all go on, and nothing is lost or copied twice
    cut, and grown again       C72: refused, also by those that run meanwhile, with the offset of the cut
    a whole cluster restored   C72: its epochs come again, and other records have the same offsets: refused
    its epochs went back       C72: all go on where nothing was lost
    a marker at the copy's end C72: the records before it are compared
    cut at the copy's end      nothing that was read is lost: all go on
    times out of range         copied as they are, also what Spark's Kafka source cannot hold
    names of no text           copied as Java's clients read them; those who cannot read them name the record

Each lie is told to all who read the source.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.errors import ConnectorError, InvalidRecordError, SourceWentBackError
from lithify.kafka import SnapshotConsumer, hydrate
from support.engines.kernel import compact_without_spark
from support.kafka.broker import START_S, KafkaBroker, a_broker, read_all
from support.kafka.ingest import KafkaCopy
from support.kafka.lies import put_back_disk, remember_disk, stopped
from support.kafka.live_cleaner import HELD, set_policy
from support.kafka.raw import RawRecord, produce_raw
from support.kafka.replicas import Replicas, replicas_on_two_brokers
from support.servers.tcp_proxy import wait_until


@pytest.fixture
def replicas() -> Iterator[Replicas]:
    """Brokers that can be stopped, for one test: three that idle take a tenth of a processor."""
    with replicas_on_two_brokers() as replicas:
        yield replicas


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """One that can be stopped, and all of its cluster with it."""
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

    def read_once(self) -> None:
        """By a table, and by a consumer that will continue."""
        self.hydrate()
        with self.consumer("position") as consumer:
            consumer.fill({})

    def read_all(self) -> None:
        """Also by a consumer that stays. Only where it is asked later: some take a processor while leaders change."""
        self.read_once()
        self.live = self.consumer("live")
        self.live.fill({})

    @property
    def end(self) -> int:
        return self.copy.lake.topic("copy").state().log(0).log_end_offset


def read(broker: KafkaBroker, session: SparkSession, folder: Path, topic: str) -> Read:
    folder.mkdir()
    return Read(KafkaCopy(lithify.open(str(folder / "lake")), broker, session, topic), folder)


def test_another_leader_is_no_error_and_one_that_lost_records_is_noticed_by_all(
    replicas: Replicas, session: SparkSession, tmp_path: Path
) -> None:
    """C72: both happen while an ingest and a consumer run. A cut at the copy's end has lost nothing of it.

    A consumer that is ahead of its copy has read what was lost, and must not go on with the copy of what came then.
    """
    names = ("cut", "at_end", "ahead")
    told = [read(replicas.first, session, tmp_path / name, replicas.make_topic()) for name in names]
    cut, at_end, ahead = told
    topics = [one.copy.topic for one in told]
    cut.copy.produce(0, 5)
    ahead.copy.produce(0, 5)
    at_end.copy.produce(0, 10)
    assert ahead.copy.ingest().error is None

    def change(_batch: object) -> None:
        """The leader: in order once the copy has the first records, and then with a loss."""
        if cut.end == 5:
            cut.read_all()
            replicas.hand_over(topics)
            cut.copy.produce(5, 10)
        elif cut.end == 10:
            cut.copy.check_equal()
            assert taken_live(cut, 5) == [5, 6, 7, 8, 9]
            read_before_the_cut(at_end, ahead)
            replicas.lose(topics)
            for one in told:
                one.copy.produce(100, 110)

    error = cut.copy.ingest(continuous=True, interval_ms=100, tell=change).error
    check_cut(replicas, cut, error)
    check_at_end(at_end)
    check_ahead(ahead)
    cut.copy.lake.topic("copy").truncate(0, 5)
    assert cut.copy.ingest().error is None
    cut.copy.check_equal()


def read_before_the_cut(at_end: Read, ahead: Read) -> None:
    ahead.copy.produce(5, 10)
    ahead.read_all()
    assert at_end.copy.ingest().error is None
    at_end.read_once()
    at_end.copy.produce(10, 12)


def check_cut(replicas: Replicas, cut: Read, error: str | None) -> None:
    lost = f"{cut.copy.topic}-0 has lost its records from offset 5 on and now has others there"
    assert error is not None and lost in error
    again = cut.copy.ingest()
    assert again.error_code == "SourceWentBack" and lost in str(again.error)
    for refused in (cut.live.take, cut.hydrate, lambda: cut.consumer("position"), lambda: cut.consumer("new")):
        with pytest.raises(SourceWentBackError, match=lost):
            refused()
    assert replicas.first.log_start_and_end(cut.copy.topic)[1] == 15
    assert cut.end == 10


def check_at_end(at_end: Read) -> None:
    assert at_end.copy.ingest().error is None
    at_end.copy.check_equal()
    at_end.hydrate()
    with at_end.consumer("position") as consumer:
        assert consumer.fill({}) == 10


def check_ahead(ahead: Read) -> None:
    """Its copy had nothing that was lost, and gets what came in its place; the consumer has read what was lost."""
    lost = "has lost its records from offset 5 on"
    assert ahead.copy.ingest().error is None
    for _ in range(2):  # the second time by the copy
        with pytest.raises(SourceWentBackError, match=lost):
            ahead.live.take()
    assert ahead.live.positions() == {0: 10}
    with pytest.raises(SourceWentBackError, match=lost):
        ahead.consumer("position")


def test_a_cluster_whose_disks_were_restored_has_other_records_in_the_same_epoch(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """C72: the last record of the copy tells, where epochs do not, also by its key and value alone: all of these have
    the same timestamp. A log that has it still goes on.

    One that has grown to just the copy's end has nothing new, and is no less another one. Consumers that wait for the
    cluster meanwhile go on, or say so: Kafka's client alone finds no leader whose epoch is lower than one it knows.
    """
    told_of = [read(broker, session, tmp_path / name, endless(broker)) for name in RESTORED]
    cut, level, whole, beyond, marker = told_of
    for told in (cut, level, whole, beyond):
        told.copy.produce(0, 5)
    marker.copy.produce(0, 1)
    assert [told.copy.ingest().error for told in (whole, beyond)] == [None, None]
    remember_disk(broker)
    for told in (cut, level, beyond):
        told.copy.produce(5, 10, timestamp=AT_ONE_TIME)
    marker.copy.produce(1, 3, timestamp=AT_ONE_TIME)
    assert [told.copy.ingest().error for told in (cut, level, marker)] == [None, None, None]
    for told in (cut, whole, beyond, marker):
        told.read_all()
    level.read_once()
    epoch = cut.copy.lake.topic("copy").state().log(0).source_epoch
    put_back_disk(broker)
    for told, end in ((cut, 110), (level, 105), (whole, 110), (beyond, 110)):
        told.copy.produce(100, end, timestamp=AT_ONE_TIME)
    with_a_marker(marker)
    check_marker(marker)
    for told in (cut, level):
        check_restored(told)
    for told in (cut, beyond):
        with pytest.raises(SourceWentBackError, match="has lost its records below 10"):
            taken_live(told, 1)
    for refused in (beyond.hydrate, lambda: beyond.consumer("position")):
        with pytest.raises(SourceWentBackError, match="has lost its records below 10"):
            refused()
    assert beyond.copy.ingest().error is None  # it had nothing of what was lost
    assert taken_live(whole, 10) == list(range(5, 15))
    assert whole.copy.ingest().error is None
    whole.copy.check_equal()
    assert whole.copy.lake.topic("copy").state().log(0).source_epoch == epoch
    whole.hydrate()
    with whole.consumer("position") as consumer:
        consumer.fill({})


def test_a_cluster_that_was_restored_to_before_later_elections_goes_on_if_it_lost_nothing(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """C72: its brokers do not know the epoch of the copy, and call every log cut; the copy's last record tells."""
    whole, cut, ahead = (
        read(broker, session, tmp_path / name, endless(broker)) for name in ("before", "after", "ahead")
    )
    for told in (whole, cut, ahead):
        told.copy.produce(0, 5)
    assert ahead.copy.ingest().error is None
    ahead.copy.produce(5, 7)
    shutil.rmtree(broker.folder / "kept", ignore_errors=True)
    remember_disk(broker)
    with stopped(broker):
        """Its logs have another leader each time."""
    cut.copy.produce(5, 10, timestamp=AT_ONE_TIME)
    assert [told.copy.ingest().error for told in (whole, cut)] == [None, None]
    for told in (whole, cut, ahead):
        told.read_all()
    put_back_disk(broker)
    for told in (whole, cut, ahead):
        told.copy.produce(100, 110, timestamp=AT_ONE_TIME)
    check_restored(cut)
    with pytest.raises(SourceWentBackError, match="has lost its records"):
        taken_live(cut, 1)
    for told, start in ((whole, 5), (ahead, 7)):
        assert taken_live(told, 10) == list(range(start, start + 10))
        told.hydrate()
        with told.consumer("position") as consumer:
            assert consumer.fill({}) == 10
    assert whole.copy.ingest().error is None
    whole.copy.check_equal()


RESTORED = ("cut", "level", "whole", "beyond", "marker")
"""Of `beyond` only consumers have read what is lost, and not its copy."""
AT_ONE_TIME = 1_700_000_000_000


def with_a_marker(told: Read) -> None:
    """Each of two transactions ends with one, the first where the copy ends."""
    producer = told.copy.broker.producer(transactional_id="marker")
    producer.init_transactions(START_S)
    for key in (b"at 1, and its marker at 2", b"at 3"):
        producer.begin_transaction()
        producer.produce(told.copy.topic, key=key, value=b"other", timestamp=AT_ONE_TIME)
        producer.commit_transaction(START_S)


def check_marker(told: Read) -> None:
    """No reader gets a marker, so that there is no record to compare; those before it are."""
    lost = f"{told.copy.topic}-0 has lost its records below 3 and now has others there"
    assert lost in str(told.copy.ingest().error)
    for refused in (told.hydrate, lambda: told.consumer("position"), lambda: taken_live(told, 1)):
        with pytest.raises(SourceWentBackError, match=lost):
            refused()
    assert [r.offset for r in told.copy.lake.topic("copy").reader(0)] == [0, 1, 2]


def endless(broker: KafkaBroker) -> str:
    """A topic that keeps old records."""
    return broker.make_topic(retention_ms="-1")


def taken_live(told: Read, records: int) -> list[int]:
    """The offsets of the next records that the consumer gets which stays."""
    found: list[int] = []

    def took() -> bool:
        found.extend(record.offset for record in told.live.take() if record.offset is not None)
        return len(found) >= records

    wait_until(took, "nothing comes", START_S)
    return found


def check_restored(told: Read) -> None:
    lost = f"{told.copy.topic}-0 has lost its records below 10 and now has others there"
    assert lost in str(told.copy.ingest().error)
    for refused in (told.hydrate, lambda: told.consumer("position"), lambda: told.consumer("new")):
        with pytest.raises(SourceWentBackError, match=lost):
            refused()


LATEST = 2**63 - 1


def a_topic_of_any_time(broker: KafkaBroker, session: SparkSession, folder: Path) -> Read:
    topic = broker.make_topic(message_timestamp_after_max_ms=str(LATEST), min_cleanable_dirty_ratio=HELD)
    return read(broker, session, folder / "times", topic)


def test_times_that_spark_cannot_hold_are_copied_as_they_are(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """C1: nanoseconds in place of milliseconds, and times of the Julian calendar, in batches, later ones and resyncs.

    A resync gives its deletes no offset of a record without a key (C71).
    """
    told = a_topic_of_any_time(broker, session, tmp_path)
    copy = told.copy
    copy.produce(0, 20)
    copy.produce(20, 30, timestamp=1_700_000_000_000_000_000)
    copy.produce(30, 31, timestamp=LATEST)
    copy.produce(31, 40)
    assert copy.ingest(config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.5}).error is None
    copy.check_equal()
    copy.produce(40, 41, timestamp=LATEST)
    copy.produce(41, 60)
    assert copy.ingest(max_records=7).error is None
    copy.check_equal()
    copy.produce(60, 61, timestamp=LATEST)
    set_policy(broker, copy.topic, "compact")
    assert copy.ingest(resyncs=True).error is None
    copy.check_equal()
    set_policy(broker, copy.topic, "delete")  # with the other one the broker refuses records without a key
    wait_until(lambda: produced_keyless(broker, copy.topic), "it is refused")
    set_policy(broker, copy.topic, "compact")
    refused = copy.ingest(resyncs=True, drops_keyless=True).error
    assert refused is not None and "new records without a key" in refused
    assert copy.ingest(drops_keyless=True).error is None
    for old in (-62_135_596_800_000, -12_221_884_800_001, -5_000_000_000_000, -2_300_000_000_000, -2, -1):
        copy.produce(70, 71, timestamp=old)
    assert copy.ingest().error is None
    copied = {r.offset: r.timestamp for r in copy.lake.topic("copy").reader(0)}
    assert copied.items() <= {m.offset(): m.timestamp()[1] for m in read_all(copy.broker, copy.topic)}.items()
    compact_without_spark(copy.lake.topic("copy"))
    told.hydrate()
    times = {r.timestamp for r in told.consumer("position").take()}
    with sqlite3.connect(told.folder / "table.db") as table:
        assert {row[0] for row in table.execute('SELECT timestamp FROM "copy"')} <= times


def produced_keyless(broker: KafkaBroker, topic: str) -> bool:
    errors: list[object] = []
    producer = broker.producer()
    producer.produce(topic, value=b"keyless", on_delivery=lambda error, _message: errors.append(error))
    assert producer.flush(30) == 0
    return errors == [None]


def test_a_time_that_spark_cannot_hold_is_named_without_the_client_that_can(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = a_topic_of_any_time(broker, session, tmp_path)
    told.copy.produce(0, 3)
    told.copy.produce(3, 4, timestamp=LATEST)

    def missing() -> None:
        raise ConnectorError("Kafka's client for Python is missing")

    monkeypatch.setattr("lithify.kafka_client.client.client", missing)
    error = told.copy.ingest().error
    assert error is not None and f"{told.copy.topic}: the record at offset 3 has the timestamp {LATEST}" in error


def test_a_record_whose_header_has_a_name_of_no_text_is_named_and_does_not_stop_readers_for_ever(
    broker: KafkaBroker, session: SparkSession, tmp_path: Path
) -> None:
    """Kafka's client for Python fails at it with an error of its own, which names nothing."""
    topic = broker.make_topic(1, retention_ms="-1", message_timestamp_after_max_ms=str(LATEST))
    told = read(broker, session, tmp_path / "names", topic)
    now, bad = 1_700_000_000_000, [(b"good", b"1"), (b"\xff\xfe", b"x"), (b"good", None)]
    produce_raw(broker, topic, [RawRecord(b"a", b"1", now)])
    assert told.copy.ingest().error is None
    told.read_all()
    produce_raw(broker, topic, [RawRecord(b"b", b"2", now, bad), RawRecord(b"c", b"3", now)])
    where = f"{topic}-0: the record at offset 1 has a header whose name is not UTF-8.*ingest.*copies the record"
    for reads in (told.hydrate, lambda: told.live.take(20), lambda: told.consumer("position").take(20)):
        with pytest.raises(InvalidRecordError, match=where):
            reads()
    assert told.copy.ingest().error is None
    told.hydrate()
    read_on = {r.key: r.headers for r in told.consumer("position").take(20)}
    assert read_on == {b"b": (("good", b"1"), ("\ufffd\ufffd", b"x"), ("good", None)), b"c": ()}
    produce_raw(broker, topic, [RawRecord(b"d", b"4", now, bad)])
    produce_raw(broker, topic, [RawRecord(b"e", b"5", LATEST)])
    refused = told.copy.ingest().error
    assert refused is not None and f"{topic}-0: the record at offset 3 has a header" in refused
    assert told.copy.ingest(max_records=1).error is None
    assert told.end == 5
