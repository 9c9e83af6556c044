"""A consumer that starts from the lake and goes on live from Kafka: no gap, no repeat, to the byte."""

from __future__ import annotations

import json
import threading
from itertools import islice
from random import Random

import pytest

from lithify.errors import (
    BrokerError,
    InvalidInputError,
    LogTruncatedError,
    PolicyError,
    RefusedError,
    SourceLostError,
    SourceWentBackError,
    UnknownSourceError,
)
from lithify.kafka import SnapshotConsumer
from lithify.model.record import Record
from lithify.model.sources.origin import PROMOTED
from lithify.model.topic.edit import TopicEdit
from support.kafka.lake import kafka_lake, send, table_of
from support.servers.tcp_proxy import free_port, wait_until

NOW = 1_700_000_000_000


def some_records(count: int, keys: int, seed: int = 1, partitions: int = 1) -> list[Record]:
    """Values, tombstones, headers; the last record of a partition is one of its kind."""
    luck = Random(seed)
    found = []
    for number in range(count):
        key = luck.randrange(keys)
        value = None if luck.random() < 0.1 else f"v{number}".encode() * luck.randrange(4)
        headers = tuple((f"h{n}", luck.choice([None, b"", b"\xff\x00"])) for n in range(luck.randrange(3)))
        found.append(Record(b"k%d" % key, value, NOW + number, headers, key % partitions))
    return found


def taken(consumer: SnapshotConsumer) -> list[Record]:
    """Everything up to Kafka's end."""
    found = []
    while not consumer.caught_up():
        if (record := consumer.poll()) is not None:
            found.append(record)
    return found


@pytest.fixture
def both(broker, tmp_path):
    return kafka_lake(broker, tmp_path, 2)


def test_the_compacted_part_comes_from_the_lake_and_the_rest_from_kafka(both, broker):
    both.produce(some_records(400, 20, partitions=2))
    both.take_in()
    both.compact()
    lake = [list(both.topic.reader(p)) for p in both.partitions]
    both.produce(some_records(100, 20, seed=2, partitions=2), transactional_id="t1")
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        found = taken(consumer)
        assert consumer.caught_up()
    for partition in both.partitions:
        end = both.topic.state().log(partition).log_end_offset
        mine = [r for r in found if r.partition == partition]
        assert mine == lake[partition] + both.in_kafka(partition, start=end)
        assert mine[-1].offset >= end  # some came from Kafka
    assert len(found) < 300  # and some were compacted away


def test_a_promoted_copy_is_not_continued_in_kafka(both):
    """C70."""
    both.produce(some_records(10, 3, partitions=2))
    both.take_in()
    both.topic.warehouse.store.commit(both.topic.state(), TopicEdit("run", NOW, {}, origin=PROMOTED))
    with pytest.raises(PolicyError, match="it was promoted and has assigned its own offsets"):
        SnapshotConsumer(both.topic, both.conf)


def test_it_goes_on_while_a_producer_writes_and_rounds_run(both, broker):
    """Against a consumer of all of Kafka: the same table, and every offset of Kafka's own, once."""
    both.produce(some_records(2000, 100, partitions=2))
    both.take_in()
    both.compact()
    done = threading.Event()

    def write() -> None:
        for batch in range(6):
            both.produce(some_records(100, 100, seed=10 + batch, partitions=2), transactional_id=f"w{both.name}")
            both.take_in()
            both.compact()
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    found: list[Record] = []
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        while not (done.is_set() and consumer.caught_up()):
            if (record := consumer.poll(0.1)) is not None:
                found.append(record)
    writer.join()
    assert table_of(found) == table_of(both.all_in_kafka())
    for partition in both.partitions:
        offsets = [r.offset for r in found if r.partition == partition]
        assert offsets == sorted(set(offsets))
        in_kafka = {r.offset: r for r in both.in_kafka(partition)}
        assert all(in_kafka[r.offset] == r for r in found if r.partition == partition)


def test_a_table_is_filled_and_kept(both):
    both.produce([Record(b"a", b"1", NOW), Record(b"b", b"1", NOW), Record(b"a", b"2", NOW)])
    both.take_in()
    both.compact()
    table: dict[bytes, Record] = {}
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        consumer.fill(table)
        assert {key: record.value for key, record in table.items()} == {b"a": b"2", b"b": b"1"}
        both.produce([Record(b"a", None, NOW), Record(b"c", b"3", NOW)], transactional_id="t2")
        assert consumer.fill(table) == 2
        assert {key: record.value for key, record in table.items()} == {b"b": b"1", b"c": b"3"}
        assert consumer.fill(table) == 0
        assert consumer.caught_up()


def test_the_version_decides_in_a_table_where_it_decides_in_the_lake(broker, tmp_path):
    """C10, C11: a late record of old does not win, nor does it come back after a newer delete."""
    both = kafka_lake(broker, tmp_path, compaction_strategy="timestamp")
    both.produce([Record(b"a", b"new", NOW + 9), Record(b"b", None, NOW + 9)])
    both.take_in()
    both.produce([Record(b"a", b"old", NOW), Record(b"b", b"old", NOW), Record(b"c", b"1", NOW)])
    table: dict[bytes, Record] = {}
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        consumer.fill(table)
        assert {key: record.value for key, record in table.items()} == {b"a": b"new", b"c": b"1"}
        both.produce([Record(b"b", b"newest", NOW + 10)])
        consumer.fill(table)
        assert table[b"b"].value == b"newest"


def test_the_seam_is_the_log_end_whatever_is_left_below_it(broker, tmp_path):
    """What a round has removed there does not come back from Kafka, which still has it."""
    both = kafka_lake(broker, tmp_path, delete_retention_ms=0)
    both.produce([Record(b"a", b"1", NOW), Record(b"b", b"1", NOW), Record(b"a", None, NOW)])
    both.take_in()
    both.compact()
    both.produce([Record(b"c", b"1", NOW)])
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        assert [r.offset for r in taken(consumer)] == [1, 3]


def test_aborted_transactions_are_not_seen(both, broker):
    both.produce([Record(b"a", b"1", NOW, partition=0)])
    both.take_in()
    producer = broker.producer(transactional_id=f"aborts{both.name}")
    producer.init_transactions(30)
    producer.begin_transaction()
    send(producer, both.name, [Record(b"a", b"aborted", NOW, partition=0)])
    producer.flush(30)
    producer.abort_transaction(30)
    both.produce([Record(b"a", b"2", NOW, partition=0)], transactional_id="t3")
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        assert [r.value for r in taken(consumer)] == [b"1", b"2"]


def test_a_restart_goes_on_where_it_stopped(both, tmp_path):
    """In the lake, at the seam, in Kafka: nothing twice, nothing left out."""
    both.produce(some_records(400, 200, partitions=2))
    both.take_in()
    both.compact()
    both.produce(some_records(100, 20, seed=3, partitions=2))
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        whole = taken(consumer)
    before: dict[int, list[Record]] = {}
    for stop in (1, 37, 150, 205, 280):
        with SnapshotConsumer(both.topic, both.conf, position=tmp_path / f"{stop}.json") as consumer:
            before[stop] = list(islice(consumer, stop))
    both.produce([Record(b"late", b"1", NOW, partition=1)])

    def in_order(records: list[Record]) -> list[tuple[int | None, int | None]]:
        return sorted((r.partition, r.offset) for r in records)

    for stop, first in before.items():
        with SnapshotConsumer(both.topic, both.conf, position=tmp_path / f"{stop}.json") as consumer:
            after = taken(consumer)
        assert len(first) == stop
        (late,) = (r for r in after if r.key == b"late")  # Kafka has no order between partitions
        assert in_order(first + after) == in_order([*whole, late]), stop


def test_what_was_not_dealt_with_comes_again(both, tmp_path):
    both.produce([Record(b"a", b"%d" % n, NOW, partition=0) for n in range(3)])
    path = tmp_path / "position.json"
    with pytest.raises(ZeroDivisionError), SnapshotConsumer(both.topic, both.conf, position=path) as consumer:
        for record in consumer:
            assert record.offset is not None
            _ = 1 // (1 - record.offset)
    with SnapshotConsumer(both.topic, both.conf, position=path) as consumer:
        assert [r.offset for r in taken(consumer)] == [1, 2]


def test_a_position_below_kafkas_log_start_is_gone_on_from_in_the_lake(both, broker, tmp_path):
    both.produce([Record(b"k%d" % n, b"v", NOW, partition=0) for n in range(10)])
    both.take_in()
    path = tmp_path / "position.json"
    with SnapshotConsumer(both.topic, both.conf, position=path) as consumer:
        assert len(list(islice(consumer, 4))) == 4
    both.let_go(10)
    both.produce([Record(b"new", b"v", NOW, partition=0)])
    with SnapshotConsumer(both.topic, both.conf, position=path) as consumer:
        assert [r.offset for r in taken(consumer)] == [4, 5, 6, 7, 8, 9, 10]


def test_a_lost_range_is_named(both, broker):
    both.produce([Record(b"k%d" % n, b"v", NOW, partition=0) for n in range(5)])
    both.take_in()
    both.produce([Record(b"k%d" % n, b"v", NOW, partition=0) for n in range(5)])
    both.let_go(8)
    with pytest.raises(SourceLostError, match=rf"{both.name}-0 starts at 8 now: offsets \[5, 8\)"):
        SnapshotConsumer(both.topic, both.conf)
    with SnapshotConsumer(both.topic, both.conf, partitions=[1]) as consumer:
        assert taken(consumer) == []


def test_a_log_that_the_lake_has_nothing_of_begins_where_kafkas_does(both):
    both.produce([Record(b"k%d" % n, b"v", NOW, partition=0) for n in range(5)])
    both.let_go(3)
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        assert [r.offset for r in taken(consumer)] == [3, 4]


def test_a_range_that_is_lost_while_it_reads_is_named(both, broker):
    both.produce([Record(b"k%d" % n, b"v", NOW, partition=0) for n in range(5)])
    both.take_in()
    with SnapshotConsumer(both.topic, both.conf, partitions=[0]) as consumer:
        assert consumer.poll() is not None
        both.produce([Record(b"k%d" % n, b"v", NOW, partition=0) for n in range(5)])
        both.let_go(8)
        with pytest.raises(SourceLostError, match=r"offsets \[5, 8\)"):
            taken(consumer)


def test_what_came_into_the_lake_meanwhile_is_read_there(both, broker):
    """Kafka deletes it between the two parts."""
    both.produce([Record(b"k%d" % n, b"v", NOW, partition=0) for n in range(5)])
    both.take_in()
    with SnapshotConsumer(both.topic, both.conf, partitions=[0]) as consumer:
        assert consumer.poll() is not None
        both.produce([Record(b"k%d" % n, b"v", NOW, partition=0) for n in range(5)])
        both.take_in()
        both.let_go(10)
        assert [r.offset for r in taken(consumer)] == list(range(1, 10))


def test_a_topic_that_went_back_is_named(both, broker):
    both.produce([Record(b"a", b"1", NOW, partition=0)])
    both.take_in()
    broker.delete_topic(both.name)
    broker.make_topic(2, name=both.name)
    with pytest.raises(SourceWentBackError, match="ends at 0, below offset 1"):
        SnapshotConsumer(both.topic, both.conf)


def test_deletes_that_went_unseen_are_not_passed_over(broker, tmp_path):
    """Who was away longer than `delete.retention.ms` starts afresh (C5)."""
    both = kafka_lake(broker, tmp_path, delete_retention_ms=0)
    both.produce([Record(b"a", b"1", NOW), Record(b"b", b"1", NOW)])
    path = tmp_path / "position.json"
    with SnapshotConsumer(both.topic, both.conf, position=path) as consumer:
        assert len(taken(consumer)) == 2
    both.produce([Record(b"a", None, NOW), Record(b"c", b"1", NOW)])
    both.take_in()
    with SnapshotConsumer(both.topic, both.conf, position=path) as consumer:
        assert consumer.poll().key == b"a"  # no round has come by: the delete is there
    stored = json.loads(path.read_text().replace('"offset": 3', '"offset": 2'))
    del stored["checksum"]  # as earlier versions, which had none
    path.write_text(json.dumps(stored))
    both.compact()
    with pytest.raises(LogTruncatedError, match="removed deletes"):
        SnapshotConsumer(both.topic, both.conf, position=path)
    path.unlink()
    with SnapshotConsumer(both.topic, both.conf, position=path) as consumer:
        assert [r.key for r in taken(consumer)] == [b"b", b"c"]


def test_new_partitions_are_taken_up(both, broker, monkeypatch):
    monkeypatch.setattr("lithify.service.snapshot.lake_and_live.STORE_MS", 0)
    both.produce([Record(b"a", b"1", NOW, partition=0)])
    both.take_in()
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        assert [r.partition for r in taken(consumer)] == [0]
        broker.add_partitions(both.name, 3)
        both.produce([Record(b"b", b"1", NOW, partition=2), Record(b"c", b"1", NOW, partition=0)])
        found: list[Record] = []

        def all_there() -> bool:
            record = consumer.poll(0.1)
            found.extend([] if record is None else [record])
            return len(found) == 2

        wait_until(all_there, "the new partition is not read")
    assert sorted((r.partition, r.key) for r in found) == [(0, b"c"), (2, b"b")]


def test_a_cluster_that_is_not_there_is_named_in_time(both):
    with pytest.raises(BrokerError, match="fails: "):
        SnapshotConsumer(both.topic, {"bootstrap.servers": f"127.0.0.1:{free_port()}"}, timeout_s=2)


def test_a_topic_that_is_not_there_is_named_and_not_made(both, broker):
    with pytest.raises(UnknownSourceError, match="has no topic nowhere"):
        SnapshotConsumer(both.topic, both.conf, kafka_topic="nowhere")
    assert "nowhere" not in broker.admin().list_topics(timeout=10).topics


def test_a_topic_with_too_few_partitions_is_another_one(both, broker):
    other = broker.make_topic(1)
    with pytest.raises(UnknownSourceError, match=f"{other} has 1 partition, but {both.name} in the lake has 2"):
        SnapshotConsumer(both.topic, both.conf, kafka_topic=other)
    with pytest.raises(UnknownSourceError, match=r"not \[5\]"):
        SnapshotConsumer(both.topic, both.conf, partitions=[5])


@pytest.mark.parametrize("text", ["", "{}", '{"format": 9, "lake": "a", "kafka": "a", "places": {}}', "[]"])
def test_a_file_of_something_else_is_left_alone(both, tmp_path, text):
    path = tmp_path / "position.json"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match="not a position of this consumer"):
        SnapshotConsumer(both.topic, both.conf, position=path)
    assert path.read_text() == text


def test_a_position_of_another_topic_is_refused(both, broker, tmp_path):
    path, another = tmp_path / "position.json", broker.make_topic(2)
    with SnapshotConsumer(both.topic, both.conf, kafka_topic=another, position=path) as consumer:
        consumer.store_position()
    with pytest.raises(InvalidInputError, match=rf"the position of .* with Kafka's {another}"):
        SnapshotConsumer(both.topic, both.conf, position=path)


def test_a_closed_one_reads_no_more(both):
    consumer = SnapshotConsumer(both.topic, both.conf)
    consumer.close()
    consumer.close()
    with pytest.raises(RefusedError, match="closed"):
        consumer.poll()
