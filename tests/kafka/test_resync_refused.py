"""A resync of a topic that lost records by other means than its cleaner: refused, with the copy as it was (C71)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

import lithify
from lithify.model.record import Record
from support.kafka.broker import KafkaBroker, read_all
from support.kafka.ingest import KafkaCopy
from support.kafka.live_cleaner import LiveLog, set_policy
from support.kafka.secured import SecuredBroker
from support.servers.tcp_proxy import wait_until

DAY_MS = 86_400_000
KEYS = {b"k1": b"1", b"k2": b"1", b"k3": b"1"}


def a_copied_log(broker: KafkaBroker, session: SparkSession, folder: Path) -> tuple[LiveLog, KafkaCopy]:
    """With three live keys. Kafka's log goes on after them: its markers leave as many offsets free for deletes."""
    log = LiveLog(broker, {}, time.time_ns() // 1_000_000 - DAY_MS)
    log.append([Record(key, value) for key, value in KEYS.items()])
    copy = KafkaCopy(lithify.open(str(folder)), broker, session, log.name)
    assert copy.ingest().error is None
    log.clock_ms += DAY_MS
    log.roll()
    for key in KEYS:
        log.transaction([Record(b"new " + key, b"1")], commits=True)
    return log, copy


def live(copy: KafkaCopy) -> dict[bytes, bytes]:
    return {row["key"]: row["value"] for row in copy.lake.topic("copy").table().to_pylist()}


def move_log_start(broker: KafkaBroker, topic: str, to: int) -> None:
    """Which a broker refuses while the policy is `compact` alone."""
    set_policy(broker, topic, "compact,delete", retention_ms="-1")

    def moved() -> bool:
        (answer,) = broker.admin().delete_records([TopicPartition(topic, 0, to)]).values()
        return answer.exception(timeout=30) is None  # it may not know of the policy yet

    wait_until(moved, "the log start does not move", 30)
    set_policy(broker, topic, "compact")


def check_refused(copy: KafkaCopy, why: str) -> None:
    """Nothing was copied, and nothing was deleted."""
    report = copy.ingest(resyncs=True)
    assert live(copy) == KEYS, report.deleted_keys
    assert (report.error_code, report.records, report.deleted_keys) == ("Policy", 0, 0)
    assert why in str(report.error)


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_keys_whose_records_expired_in_kafka_are_not_deleted(
    policy: str, tmp_path: Path, broker: KafkaBroker, session: SparkSession
) -> None:
    """Nor later, when the policy is `compact` again: the log start tells that records expired."""
    log, copy = a_copied_log(broker, session, tmp_path)
    set_policy(broker, log.name, policy, retention_ms=str(DAY_MS // 2))
    wait_until(lambda: not {m.key() for m in read_all(broker, log.name)} & {*KEYS}, "Kafka keeps them", 30)
    check_refused(copy, f"Kafka's {log.name} has cleanup.policy={policy}")
    set_policy(broker, log.name, "compact")
    check_refused(copy, f"Kafka's {log.name} begins at offset 3, but the copy has records from offset 0 on")
    assert copy.ingest(accepts_loss=True).error is None
    assert live(copy) == {m.key(): m.value() for m in read_all(broker, log.name)} | KEYS


def test_keys_below_a_log_start_that_was_moved_are_not_deleted(
    tmp_path: Path, broker: KafkaBroker, session: SparkSession
) -> None:
    log, copy = a_copied_log(broker, session, tmp_path)
    move_log_start(broker, log.name, 2)
    check_refused(copy, f"Kafka's {log.name} begins at offset 2, but the copy has records from offset 0 on")


def test_a_copy_that_began_at_a_moved_log_start_is_resynced(
    tmp_path: Path, broker: KafkaBroker, session: SparkSession
) -> None:
    """It has no record from below."""
    log, _ = a_copied_log(broker, session, tmp_path / "whole")
    move_log_start(broker, log.name, 2)
    copy = KafkaCopy(lithify.open(str(tmp_path / "late")), broker, session, log.name)
    assert copy.ingest().error is None
    report = copy.ingest(resyncs=True)
    assert (report.error, report.deleted_keys) == (None, 0)
    assert live(copy) == {m.key(): m.value() for m in read_all(broker, log.name)}


def test_without_the_right_to_ask_for_the_policy_nothing_is_deleted(
    tmp_path: Path, secured: SecuredBroker, session: SparkSession
) -> None:
    topic = secured.broker.make_topic(1, cleanup_policy="compact")
    conf = secured.of_user("alice")
    for right in ("READ", "DESCRIBE"):
        secured.allow("alice", right, "TOPIC", topic)
    producer = secured.broker.producer()
    for key, value in KEYS.items():
        producer.produce(topic, key=key, value=value)
    assert producer.flush(30) == 0
    lake = lithify.open(str(tmp_path))
    assert KafkaCopy(lake, secured.broker, session, topic).ingest().error is None
    copy = KafkaCopy(lake, secured.broker, session, topic, conf)
    assert copy.ingest().error is None  # which needs no such right once the copy is there
    check_refused(copy, f"the cleanup.policy of Kafka's {topic} cannot be read")
    secured.allow("alice", "DESCRIBE_CONFIGS", "TOPIC", topic)
    wait_until(lambda: copy.ingest(resyncs=True).error is None, "still refused", 60)
    assert live(copy) == KEYS
