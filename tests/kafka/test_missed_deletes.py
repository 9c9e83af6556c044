"""Deletes that Kafka's cleaner has dropped before they were copied: refused, accepted, made up for (C71)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import lithify
from lithify.errors import SourceLostError
from lithify.kafka import SnapshotConsumer, hydrate
from lithify.model.record import Record
from support.kafka.broker import KafkaBroker, read_all
from support.kafka.ingest import KafkaCopy
from support.kafka.live_cleaner import LiveLog

DAY_MS = 86_400_000
SHORT_MS = 1_000


def lose_a_delete(log: LiveLog, key: bytes) -> None:
    """A delete that comes, is cleaned for the first time, and goes."""
    log.broker.alter_topic(log.name, delete_retention_ms=str(SHORT_MS))
    log.append([Record(key, None)])
    log.roll()
    log.clean()
    time.sleep(SHORT_MS / 1000 + 1)  # Kafka's clock cannot be set
    log.append([Record(b"later", b"1")])
    log.roll()
    log.clean()
    assert key not in {message.key() for message in read_all(log.broker, log.name)}


def live(copy: KafkaCopy) -> dict[bytes, bytes]:
    return {row["key"]: row["value"] for row in copy.lake.topic("copy").table().to_pylist()}


def test_deletes_that_kafka_dropped_meanwhile(tmp_path: Path, broker: KafkaBroker, session: object) -> None:
    log = LiveLog(broker, {"delete.retention.ms": str(DAY_MS)}, time.time_ns() // 1_000_000 - DAY_MS)
    log.append([Record(b"k1", b"1"), Record(b"k2", b"1"), Record(b"k3", b"1")])
    copies = [
        KafkaCopy(lithify.open(str(tmp_path / name)), broker, session, log.name)  # type: ignore[arg-type]
        for name in ("resynced", "accepted")
    ]
    for copy in copies:
        assert copy.ingest().error is None
    topic, conf, position = copies[0].lake.topic("copy"), copies[0].kafka, tmp_path / "position"
    table = f"sqlite:{tmp_path / 'table.db'}"
    with SnapshotConsumer(topic, conf, kafka_topic=log.name, position=position) as consumer:
        assert consumer.fill({}) == 3
    assert hydrate(topic, conf, table, kafka_topic=log.name).records == 3
    lose_a_delete(log, b"k1")

    for stored in (position, None):
        with pytest.raises(SourceLostError, match="deletes from offset 3 on may be missing"):
            SnapshotConsumer(topic, conf, kafka_topic=log.name, position=stored)
    with pytest.raises(SourceLostError, match="deletes from offset 3 on may be missing"):
        hydrate(topic, conf, table, kafka_topic=log.name)
    for copy in copies:
        error = copy.ingest().error
        assert error is not None and "deletes from offset 3 on may be missing" in error
        assert "its delete.retention.ms is 1.0 s" in error
        assert live(copy) == {b"k1": b"1", b"k2": b"1", b"k3": b"1"}
    resynced, accepted = copies
    broker.alter_topic(log.name, delete_retention_ms=str(DAY_MS))
    kafkas = {message.key(): message.value() for message in read_all(broker, log.name)}

    report = accepted.ingest(accepts_loss=True)
    assert (report.error, report.deleted_keys) == (None, 0)
    assert [(gap.partition, gap.start_offset) for gap in report.missed_deletes] == [(0, 3)]
    assert live(accepted) == {**kafkas, b"k1": b"1"}

    report = resynced.ingest(resyncs=True)
    assert (report.error, report.deleted_keys, report.missed_deletes) == (None, 1, ())
    assert live(resynced) == kafkas
    records = list(resynced.lake.topic("copy").reader(0))
    offsets = {message.offset() for message in read_all(broker, log.name)}
    (delete,) = [record for record in records if record.value is None]
    assert delete.key == b"k1" and delete.offset is not None and delete.offset >= 3
    assert delete.offset not in offsets
    log.append([Record(b"k1", b"2")])
    assert resynced.ingest().records == 1
    assert live(resynced) == {**kafkas, b"k1": b"2"}
    filled: dict[bytes, Record] = {}
    with SnapshotConsumer(topic, conf, kafka_topic=log.name) as consumer:
        consumer.fill(filled)
    assert {key: record.value for key, record in filled.items()} == live(resynced)
