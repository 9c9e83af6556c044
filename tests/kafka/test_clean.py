"""Files of a real broker, cleaned while it does not run: it serves them, and goes on with them as with its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from lithify.api.kafka_files.cleaning import clean_log_directory
from lithify.errors import RefusedError
from lithify.kafka_log.directories.checkpoints import RECOVERY_POINT, REPLICATED, offsets_in, with_offset
from lithify.model.record import Record
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.compaction.survivors import survivors
from support.kafka.broker import QUIET, KafkaBroker, a_broker, closed
from support.kafka.live_cleaner import HELD, RELEASED, LiveLog, cleaned_to
from support.kafka.log_files import batches_in, check_indexes
from support.servers.tcp_proxy import wait_until

DAY_MS = 86_400_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS = (("h", b"\x00\xff"), ("h", None))
CONFIG = {"cleanup.policy": "compact"}


@pytest.fixture(scope="module")
def own_broker() -> Iterator[KafkaBroker]:
    """One that can be stopped."""
    with a_broker(replica_high_watermark_checkpoint_interval_ms="200") as broker:
        yield broker


def values(tag: str, *keys: str) -> list[Record]:
    """A value for each key, a delete where it begins with `-`."""
    return [
        Record(key.strip("-").encode(), None if key[0] == "-" else f"{tag} {n}".encode(), headers=HEADERS[: n % 3])
        for n, key in enumerate(keys)
    ]


def write(log: LiveLog) -> None:
    """Segments with all that a cleaner makes a difference of."""
    for codec in CODECS:
        log.append([*values(codec, *"abcdefgh", "-b", codec), Record(codec.encode() * 9, b"x" * 3000)], codec=codec)
    log.transaction(values("committed", *"abc"), commits=True)
    log.transaction(values("aborted", *"ade", "-f"), commits=False)
    log.roll()
    log.append(values("later", *"ab", "-c", "i"), codec="lz4")
    log.transaction(values("aborted later", *"ai"), commits=False)
    log.transaction(values("committed later", "h", "-i"), commits=True)
    log.roll()


def served(log: LiveLog) -> list[Record]:
    return log._committed()


def twin_of(log: LiveLog, name: str) -> Path:
    """The files of a stopped broker's log as those of another topic, which has none yet."""
    data = log.broker.data
    for path in (data / f"{name}-0").iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in (data / f"{log.name}-0").iterdir():
        if path.name != "partition.metadata":
            shutil.copy2(path, data / f"{name}-0")
    for checkpoint in (RECOVERY_POINT, REPLICATED):
        text = (data / checkpoint).read_text()
        (data / checkpoint).write_text(with_offset(text, name, 0, offsets_in(text)[log.name, 0]))
    return data / f"{name}-0"


def replicated_to(broker: KafkaBroker, topic: str) -> int | None:
    return offsets_in((broker.data / REPLICATED).read_text()).get((topic, 0))


def by_time(broker: KafkaBroker, topic: str, times: Sequence[int]) -> list[int]:
    with closed(Consumer({"bootstrap.servers": broker.address, "group.id": "none", **QUIET})) as consumer:
        return [consumer.offsets_for_times([TopicPartition(topic, 0, at)], timeout=30)[0].offset for at in times]


def shapes(folder: Path) -> list[Any]:
    """The batches of the segments below the active one; when a time was set, and sizes by a codec, do not matter."""
    found = []
    for path in sorted(folder.glob("*.log"))[:-1]:
        for one in batches_in(path):
            if one.get("delete_horizon_ms"):
                one |= {"delete_horizon_ms": True, "base_ts": None}
            found.append((path.name, {**one, "bytes": one["bytes"] if one["codec"] == "none" else None}))
    return found


def idempotent(broker: KafkaBroker) -> Producer:
    return broker.producer(enable_idempotence=True)


def send(producer: Producer, topic: str, key: bytes, at_ms: int) -> None:
    errors: list[Any] = []
    producer.produce(topic, key=key, value=key, timestamp=at_ms, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    assert errors == [None]


@pytest.mark.timeout(300)
def test_a_broker_serves_what_is_left_and_goes_on(own_broker: KafkaBroker, session: SparkSession) -> None:
    broker, now_ms = own_broker, time.time_ns() // 1_000_000
    log = LiveLog(broker, {}, now_ms)
    twin = broker.make_topic(cleanup_policy="compact", min_cleanable_dirty_ratio=HELD, segment_ms="60000")
    producer = idempotent(broker)
    send(producer, log.name, b"a", log.clock_ms)
    write(log)
    before, start_end = served(log), broker.log_start_and_end(log.name)
    with pytest.raises(RefusedError, match="in use by a broker"):
        clean_log_directory(broker.data, [log.name], CONFIG, spark=session)
    broker.stop()
    folder, copy = broker.data / f"{log.name}-0", twin_of(log, twin)
    files = {path: path.read_bytes() for path in folder.iterdir()}
    (told,) = clean_log_directory(broker.data, [log.name], CONFIG, dry_run=True, spark=session).logs
    assert {path: path.read_bytes() for path in folder.iterdir()} == files
    (cleaned,) = clean_log_directory(broker.data, [log.name], CONFIG, spark=session).logs
    assert cleaned.error is None and cleaned.changed and not told.changed
    assert (told.records_in, told.records_out) == (cleaned.records_in, cleaned.records_out)
    assert cleaned.bytes_out < cleaned.bytes_in and cleaned.segments_out == 1 < cleaned.segments_in
    check_indexes(folder)
    indexes = {path: (path.read_bytes(), path.stat().st_ino) for path in folder.glob(f"{0:020}.*index")}
    left = shapes(folder)
    broker.start()
    assert {path: (path.read_bytes(), path.stat().st_ino) for path in indexes} == indexes
    rules = SurvivorRules(0, cleaned.end, keep_keyless=False, empty_is_tombstone=False, tombstones_expire_below=0)
    oracle = [*survivors(before, rules).records, *(r for r in before if (r.offset or 0) >= cleaned.end)]
    assert served(log) == oracle
    assert broker.log_start_and_end(log.name) == start_end
    broker.alter_topic(twin, min_cleanable_dirty_ratio=RELEASED)
    wait_until(lambda: cleaned_to(broker, twin) == cleaned.end, "Kafka's cleaner does not clean the twin", 60)
    broker.alter_topic(twin, min_cleanable_dirty_ratio=HELD)
    assert shapes(copy) == left
    times = [record.timestamp or 0 for record in before]
    assert by_time(broker, log.name, times) == by_time(broker, twin, times)
    send(producer, log.name, b"n", log.clock_ms)  # its sequence goes on
    log.append(values("new", *"ah", "-d"))
    log.roll()
    latest = {record.key: record for record in served(log)}
    log.clean()
    assert {record.key: record for record in served(log)} == latest
    assert len(served(log)) < len(oracle) + 4


@pytest.mark.timeout(300)
def test_after_a_crash(own_broker: KafkaBroker, session: SparkSession) -> None:
    broker = own_broker
    log = LiveLog(broker, {}, time.time_ns() // 1_000_000)
    for tag in ("first", "second", "third"):
        log.append(values(tag, *"ab", "-e"))
        log.roll()
    before = served(log)
    wait_until(lambda: replicated_to(broker, log.name) == broker.log_start_and_end(log.name)[1], "not noted", 30)
    broker.kill()
    with pytest.raises(RefusedError, match="not stopped in order"):
        clean_log_directory(broker.data, [log.name], CONFIG, spark=session)
    (cleaned,) = clean_log_directory(broker.data, [log.name], CONFIG, after_crash=True, spark=session).logs
    assert cleaned.error is None and cleaned.changed
    broker.start()
    assert {record.key: record for record in served(log)} == {record.key: record for record in before}
    assert len(served(log)) < len(before)
