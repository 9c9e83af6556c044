"""A compacted topic put into a Kafka topic: everything once, whatever happens on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from random import Random

import pytest
from confluent_kafka import OFFSET_STORED, Consumer, TopicPartition

from lithify.errors import (
    ConflictError,
    InvalidRecordError,
    LogTruncatedError,
    RefusedError,
    UnknownSourceError,
)
from lithify.kafka import GroupOffset, publish
from lithify.kafka.consumer.live_tail import record_of
from lithify.kafka.publisher.target import _config
from lithify.kafka_client.client import Cluster
from lithify.model.record import Record
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.service.documents import put_source
from support.kafka.broker import KafkaBroker, closed, read_all
from support.kafka.lake import KafkaLake, kafka_lake, send
from support.processes.in_process import Program
from support.servers.tcp_proxy import wait_until

NOW = 1_700_000_000_000

Plain = tuple[bytes | None, bytes | None, int | None, tuple[tuple[str, bytes | None], ...]]


def plain(record: Record) -> Plain:
    """A record without its offset."""
    return record.key, record.value, record.timestamp, record.headers


def some_records(count: int, seed: int = 1) -> list[Record]:
    luck = Random(seed)
    return [
        Record(
            b"k%d" % (key := luck.randrange(max(1, count // 3))),
            None if luck.random() < 0.1 else b"v%d" % number,
            NOW + number,
            (("h", b"\xff"), ("h", None)) if luck.random() < 0.3 else (),
            key % 2,
        )
        for number in range(count)
    ]


@pytest.fixture
def both(broker, tmp_path) -> KafkaLake:
    """A topic of two partitions that has been compacted, with a tail."""
    made = kafka_lake(broker, tmp_path, 2)
    made.topic.append(some_records(300))
    made.compact()
    made.topic.append(some_records(40, seed=2))
    return made


def a_target(broker: KafkaBroker, partitions: int = 2) -> str:
    """One that Kafka's cleaner leaves alone: it would take what is superseded in the tail."""
    return broker.make_topic(partitions, cleanup_policy="compact", min_cleanable_dirty_ratio="1.0")


def published(broker: KafkaBroker, to: str, partition: int) -> list[Plain]:
    return [plain(record_of(found)) for found in read_all(broker, to, partition)]


def assert_equal(both: KafkaLake, to: str) -> None:
    for partition in both.partitions:
        expected = [plain(r) for r in both.topic.reader(partition, compacted=True)]
        assert published(both.broker, to, partition) == expected
        assert expected


def test_the_target_has_what_a_compacted_reader_gets(both, broker):
    told: list[int] = []
    report = publish(both.topic, both.conf, a_target(broker), tell=told.append)
    assert_equal(both, report.to)
    assert (report.created, report.resumed) == (False, False)
    assert report.records == sum(told) == sum(len(published(broker, report.to, p)) for p in both.partitions)
    assert [log.end_offset for log in report.logs] == [log.log_end_offset for log in both.topic.state().logs]


def test_a_target_that_is_not_there_is_made(both, broker):
    both.compact()
    report = publish(both.topic, both.conf, f"{both.name}.out")
    assert report.created
    assert_equal(both, report.to)
    again = publish(both.topic, both.conf, f"{both.name}.out")
    assert (again.records, again.resumed, again.created) == (0, True, False)


def test_a_new_target_has_the_topics_settings_and_those_that_are_given(both, broker):
    """As for a restore; the same command continues, and a target with other settings is left alone."""
    to, notes = f"{both.name}.new", []
    config = {"cleanup.policy": "compact,delete", "retention.ms": "604800000"}
    with pytest.raises(RefusedError, match=f"Kafka refused to create {to}: .*replication factor of 3") as refused:
        publish(both.topic, both.conf, to, config=config, replication_factor=3)
    assert refused.value.hint == "give a replication_factor=... of at most the number of brokers"
    report = publish(both.topic, both.conf, to, config=config, replication_factor=1, notes=notes.append)
    (created,) = (note.text for note in notes if note.event == "created")
    assert f"{both.name} → {to}: created with cleanup.policy=compact,delete, delete.retention.ms=" in created
    found = _config(Cluster(both.conf, 30.0), to)
    assert {name: found[name] for name in report.config} == report.config
    assert report.config | config == report.config
    assert int(found["max.message.bytes"]) < 3_000_000
    both.topic.append(some_records(9, seed=5))
    assert publish(both.topic, both.conf, to, config=config).records == 9
    with pytest.raises(RefusedError, match=f"Kafka's {to} exists already, with retention.ms=604800000"):
        publish(both.topic, both.conf, to, config={"retention.ms": "1"})


def test_a_restored_topic_has_what_was_set_on_the_one_that_was_copied(both, broker):
    """What the broker refuses it names, and the same command without a value leaves that out."""
    theirs = {"cleanup.policy": "compact,delete", "retention.ms": "31536000000000", "segment.bytes": "none"}
    put_source(both.topic.warehouse.store, both.topic.state(), CopiedTopic("lost", "", config=theirs))
    to = f"{both.name}.restored"
    with pytest.raises(RefusedError, match=f"Kafka refused to create {to}: .*segment.bytes"):
        publish(both.topic, both.conf, to)
    left_out = {"segment.bytes": ""}
    assert publish(both.topic, both.conf, to, config=left_out).created
    found = Cluster(both.conf, 30.0).topic_config(to)
    assert (found["cleanup.policy"], found["retention.ms"]) == ("compact,delete", "31536000000000")
    assert publish(both.topic, both.conf, to, config=left_out).resumed


def test_a_view_is_published_and_not_the_log(broker, tmp_path):
    both = kafka_lake(broker, tmp_path, compaction_mode="side-by-side")
    both.topic.append([Record(b"a", b"1", NOW), Record(b"a", b"2", NOW)])
    both.compact()
    assert publish(both.topic, both.conf, f"{both.name}.out").records == 1
    assert [value for _, value, *_ in published(broker, f"{both.name}.out", 0)] == [b"2"]


def test_a_second_time_only_what_is_new_goes(both, broker):
    to = a_target(broker)
    publish(both.topic, both.conf, to)
    again = publish(both.topic, both.conf, to)
    assert (again.records, again.resumed) == (0, True)
    both.topic.append([Record(b"new", b"1", NOW, partition=1)])
    more = publish(both.topic, both.conf, to)
    assert [(log.partition, log.records) for log in more.logs] == [(0, 0), (1, 1)]
    assert published(broker, to, 1)[-1][0] == b"new"


def test_it_goes_on_after_any_transaction(both, broker, monkeypatch):
    """Stopped by an error behind every so many records; the transaction that was open leaves nothing."""
    monkeypatch.setattr("lithify.kafka.publisher.session.TRANSACTION_RECORDS", 25)
    to = a_target(broker)
    stops = 0

    def stop_at_the_second(_records: int) -> None:
        nonlocal transactions
        transactions += 1
        if transactions == 2:
            raise KeyboardInterrupt

    while True:
        transactions = 0
        try:
            publish(both.topic, both.conf, to, tell=stop_at_the_second)
            break
        except KeyboardInterrupt:
            stops += 1
    assert stops > 2
    assert_equal(both, to)


IN_SMALL_TRANSACTIONS = """
import sys, lithify
from lithify.kafka import GroupOffset, publish
from lithify.kafka.publisher import session
session.TRANSACTION_RECORDS = 40
lake, name, servers, to = sys.argv[1:]
publish(lithify.open(lake).topic(name), {"bootstrap.servers": servers}, to, tell=lambda n: print(n, flush=True))
"""


def test_it_goes_on_after_it_was_killed(both, broker, tmp_path):
    """SIGKILL after one or two transactions, somewhere in the next one, which stays open until it is taken up."""
    to = a_target(broker)
    luck = Random(5)
    for _ in range(2):
        command = [sys.executable, "-c", IN_SMALL_TRANSACTIONS]
        command += [str(tmp_path / "lake"), both.topic.name, broker.address, to]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(luck.randrange(1, 3)):
                process.stdout.readline()
            os.kill(process.pid, signal.SIGKILL)
    publish(both.topic, both.conf, to)
    assert_equal(both, to)


def test_a_transaction_that_was_left_open_is_ended(both, broker):
    """What another process of ours had sent, and did not get to commit."""
    to = a_target(broker)
    state = both.topic.state()
    left = broker.producer(transactional_id=f"lithify.{state.identity}.{to}")
    left.init_transactions(30)
    left.begin_transaction()
    send(left, to, [Record(b"a", b"never", NOW, partition=0)])
    left.flush(30)
    publish(both.topic, both.conf, to)
    assert_equal(both, to)


def test_of_two_at_once_one_says_so(both, broker, monkeypatch):
    monkeypatch.setattr("lithify.kafka.publisher.session.TRANSACTION_RECORDS", 25)
    to = a_target(broker)
    others = []

    def meanwhile(_records: int) -> None:
        if not others:
            others.append(publish(both.topic, both.conf, to))

    with pytest.raises(ConflictError, match=r"another run is publishing .*, or this run was paused .* 2 minutes"):
        publish(both.topic, both.conf, to, tell=meanwhile)
    assert others
    assert_equal(both, to)


def test_the_topic_that_it_is_a_copy_of_is_no_target(both):
    source = CopiedTopic(both.name, Cluster(both.conf, 30).topic_id(both.name))
    put_source(both.topic.warehouse.store, both.topic.state(), source)
    with pytest.raises(RefusedError, match=f"was copied from Kafka's {both.name} itself"):
        publish(both.topic, both.conf, both.name)


def test_a_target_with_records_of_others_is_refused(both, broker):
    to = a_target(broker, 3)
    producer = broker.producer()
    send(producer, to, [Record(b"theirs", b"1", NOW, partition=2)])
    producer.flush(30)
    with pytest.raises(RefusedError, match=f"{to}-2 has a record of another program at offset 0"):
        publish(both.topic, both.conf, to)
    assert published(broker, to, 0) == []


def test_records_of_others_behind_ours_are_refused(both, broker):
    to = a_target(broker)
    publish(both.topic, both.conf, to)
    before = len(published(broker, to, 0))
    producer = broker.producer()
    send(producer, to, [Record(b"theirs", b"1", NOW, partition=0)])
    producer.flush(30)
    both.topic.append([Record(b"new", b"1", NOW, partition=0)])
    with pytest.raises(RefusedError, match="of another program"):
        publish(both.topic, both.conf, to)
    assert len(published(broker, to, 0)) == before + 1


def test_another_topic_of_the_lake_is_another(both, broker, tmp_path):
    to = f"{both.name}.out"
    publish(both.topic, both.conf, to)
    other = kafka_lake(broker, tmp_path, 2)
    other.topic.append(some_records(10))
    with pytest.raises(RefusedError, match="of another program"):
        publish(other.topic, other.conf, to)


def test_a_target_that_does_not_fit_is_refused(both, broker):
    few = broker.make_topic(1)
    with pytest.raises(RefusedError, match=f"{few} has 1 partition, fewer than the topic's 2"):
        publish(both.topic, both.conf, few)
    deleting = broker.make_topic(2, cleanup_policy="compact,delete")
    with pytest.raises(RefusedError, match="deletes old records"):
        publish(both.topic, both.conf, deleting)
    stamped = broker.make_topic(2, message_timestamp_type="LogAppendTime")
    with pytest.raises(RefusedError, match="would not keep the timestamps"):
        publish(both.topic, both.conf, stamped)
    with pytest.raises(UnknownSourceError, match="not a valid name of a Kafka topic"):
        publish(both.topic, both.conf, "not a valid name")


def test_a_record_that_kafka_cannot_take_is_named(broker, tmp_path):
    both = kafka_lake(broker, tmp_path, null_key="retain", compaction_mode="in-place")
    both.topic.append([Record(b"a", b"1", NOW), Record(None, b"keyless", NOW)])
    with pytest.raises(InvalidRecordError, match=f"{both.name}-0: the record at offset 1 has no key"):
        publish(both.topic, both.conf, f"{both.name}.out")
    assert published(broker, f"{both.name}.out", 0) == []
    keeping = broker.make_topic(1, retention_ms="-1")
    assert publish(both.topic, both.conf, keeping).records == 2
    timeless = kafka_lake(broker, tmp_path)
    timeless.topic.append([Record(b"a", b"1", 0)])
    with pytest.raises(InvalidRecordError, match="timestamp 0"):
        publish(timeless.topic, both.conf, f"{timeless.name}.out")
    cut = kafka_lake(broker, tmp_path)
    cut.topic.append([Record(b"a", b"1", NOW, (("whole\0name", b"x"),))])
    with pytest.raises(InvalidRecordError, match=f"{cut.name}-0: the record at offset 0 has a header whose name"):
        publish(cut.topic, both.conf, f"{cut.name}.out")


@pytest.mark.parametrize("name", ["message.max.bytes", "max.request.size", "queue.buffering.max.kbytes"])
def test_a_record_that_the_client_does_not_take_is_named(broker, tmp_path, name):
    """In the middle of a piece: none of it is published, and the run does not wait for room for ever."""
    both, to = kafka_lake(broker, tmp_path), a_target(broker, 1)
    values = [b"large" * 6_000 if n == 4 else b"small" for n in range(9)]
    both.topic.append([Record(b"k%d" % n, value, NOW) for n, value in enumerate(values)])
    small = "20" if name.endswith("kbytes") else "20000"
    with pytest.raises(InvalidRecordError, match=f"{to}: the record at offset 4 of partition 0 .* larger") as raised:
        publish(both.topic, {**both.conf, name: small}, to)
    assert name.replace("message.max.bytes", "max.request.size") in str(raised.value), "by Java's name"
    assert published(broker, to, 0) == []
    assert publish(both.topic, both.conf, to).records == 9


def test_large_and_late_records_go_into_a_target_that_was_made(broker, tmp_path):
    both = kafka_lake(broker, tmp_path, max_message_bytes=3_000_000, message_timestamp_after_max_ms=10**12)
    both.topic.append([Record(b"large", Random(1).randbytes(2_900_000), NOW), Record(b"late", b"1", NOW + 10**11)])
    publish(both.topic, both.conf, f"{both.name}.out")
    assert_equal(both, f"{both.name}.out")


def test_deletes_that_went_unseen_are_not_passed_over(broker, tmp_path):
    """What is in the target would stay there for ever (C5)."""
    both = kafka_lake(broker, tmp_path, delete_retention_ms=0)
    both.topic.append([Record(b"a", b"1", NOW), Record(b"b", b"1", NOW)])
    publish(both.topic, both.conf, f"{both.name}.out")
    both.topic.append([Record(b"a", None, NOW), Record(b"c", b"1", NOW)])
    both.compact()
    with pytest.raises(LogTruncatedError, match="removed deletes"):
        publish(both.topic, both.conf, f"{both.name}.out")
    assert publish(both.topic, both.conf, f"{both.name}.again").records == 2


def test_groups_go_on_where_they_were(both, broker, monkeypatch):
    """Also where the run is ended in the middle: each reads what it had left, and nothing twice; see `both`'s holes."""
    monkeypatch.setattr("lithify.kafka.publisher.session.TRANSACTION_RECORDS", 25)
    put_source(both.topic.warehouse.store, both.topic.state(), CopiedTopic("lost", ""))
    to, told = a_target(broker), []
    left = {f"{to}.{n}": GroupOffset(f"{to}.{n}", "lost", n % 2, n) for n in (0, 1, 70, 143, 152, 500)}
    with pytest.raises(KeyboardInterrupt):
        publish(both.topic, both.conf, to, groups=[*left.values()], tell=interrupts_at(3))
    report = publish(both.topic, both.conf, to, groups=[*left.values()], notes=told.append)
    assert [(p.again, p.state) for p in report.groups] == [(0, "committed")] * len(left)
    assert next(note.text for note in told if note.event == "groups").endswith("6 positions of groups: 6 committed")
    for group, position in left.items():
        read = [plain(record_of(m)) for m in read_all(broker, to, position.partition, start=OFFSET_STORED, group=group)]
        expected = both.topic.reader(position.partition, compacted=True)
        assert read == [plain(record) for record in expected if record.offset >= position.offset]
    again = publish(both.topic, both.conf, to, groups=[*left.values()])
    assert (again.groups, again.resumed) == (report.groups, True)


def interrupts_at(transaction: int) -> Callable[[int], None]:
    numbers = count(1)

    def told(_records: int) -> None:
        if next(numbers) == transaction:
            raise KeyboardInterrupt

    return told


def test_positions_that_groups_have_are_left_alone_and_so_are_groups_with_members(both, broker, tmp_path):
    """The verb ends with 1 for these. With --export it commits none and writes them for Kafka's tools."""
    to, file, program = a_target(broker), tmp_path / "positions.csv", Program(tmp_path / "lake")
    settings = {"bootstrap.servers": broker.address, "enable.auto.commit": False, "log_level": 0}
    kept, busy = (Consumer({**settings, "group.id": f"{to}.{name}"}) for name in ("kept", "busy"))
    kept.commit(offsets=[TopicPartition(to, 0, 3)], asynchronous=False)
    file.write_text(f"{to}.kept,{both.name},0,500\n{to}.kept,{both.name},1,500\n{to}.busy,{both.name},0,0\n")
    arguments = ["--warehouse", str(tmp_path / "lake"), "kafka", "publish", both.topic.name, "--json"]
    arguments += ["--bootstrap-servers", broker.address, "--to", to, "--translate-groups", str(file)]
    with closed(kept), closed(busy):
        busy.subscribe([to])
        wait_until(lambda: busy.poll(0.1) is not None or bool(busy.assignment()), "the group gets no member")
        done = program(*arguments, code=1)
    positions = {(p["group"], p["partition"]): (p["state"], p["found"]) for p in done.json["groups"]}
    assert positions == {
        (f"{to}.busy", 0): ("active", None),
        (f"{to}.kept", 0): ("kept", 3),
        (f"{to}.kept", 1): ("committed", None),
    }
    assert json.loads(done.err.splitlines()[-1])["code"] == "Conflict"
    export = tmp_path / "translated.csv"
    exported = program(*arguments, "--export", export, "--checkpoints", to)
    rows = [f"{p['group']},{to},{p['partition']},{p['offset']}" for p in exported.json["groups"]]
    assert export.read_text().splitlines() == rows
    assert rows[0] == f"{to}.busy,{to},0,0"
    assert len(read_all(broker, f"{to}.checkpoints.internal")) == len(rows)


def test_the_verb_says_what_it_did(both, broker, tmp_path):
    program = Program(tmp_path / "lake")
    command = ["--warehouse", tmp_path / "lake", "kafka", "publish", both.topic.name]
    command += ["--bootstrap-servers", broker.address, "--to", a_target(broker)]
    told = program(*command, "--json").json
    assert told["records"] == sum(len(published(broker, told["to"], p)) for p in both.partitions)
    again = program(*command)
    assert "0 records" in again.err + again.out
    assert "no.such.setting" in program.error(*command, "--kafka-conf", "no.such.setting=1")
