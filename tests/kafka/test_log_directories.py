"""Log directories of a real broker: what is read of the files is what a consumer gets; what is written is served."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lithify.kafka_log.batches.codecs import NAMES
from lithify.kafka_log.batches.encoding import BatchLimits, empty_batch, encoded
from lithify.kafka_log.committed import Committed
from lithify.kafka_log.directories.folders import LogFolder, is_in_use, log_directory
from lithify.kafka_log.directories.segment_names import in_place, segment_names
from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment, scanned_log
from lithify.kafka_log.segment_scan import scanned
from support.kafka.batches import table_of
from support.kafka.broker import KafkaBroker, a_broker, read_all
from support.servers.tcp_proxy import wait_until

HEADERS = ([], [("a", b"\x00\xff"), ("a", None), ("b", b"")])
NOTHING_CLEANED = "1.0"


def folder_of(broker: KafkaBroker, topic: str) -> LogFolder:
    (found,) = (one for one in log_directory(broker.data).folders if one.topic == topic)
    return found


def log_of(folder: LogFolder) -> ScannedLog:
    segments = []
    for base, name in in_place(segment_names(path.name for path in folder.path.iterdir()), {}).items():
        with (folder.path / name).open("rb") as file:
            segments.append(ScannedSegment(folder.path / name, base, scanned(file)))
    return scanned_log(folder, segments)


def records_of(log: ScannedLog) -> list[tuple[Any, ...]]:
    """As `consumed` has them."""
    reader, rows = Committed(log.start_offset, log.stable_end, log.transactions.aborted), []
    for segment in log.segments:
        with segment.path.open("rb") as file:
            rows += [row for part in reader.columns(file) for row in part.to_pylist()]
    return [
        (r["offset"], r["timestamp"], r["key"], r["value"], [(h["key"], h["value"]) for h in r["headers"] or ()])
        for r in rows
    ]


def consumed(broker: KafkaBroker, topic: str) -> list[tuple[Any, ...]]:
    """What a reader of committed records gets."""
    return [(m.offset(), m.timestamp()[1], m.key(), m.value(), m.headers() or []) for m in read_all(broker, topic)]


def produce(broker: KafkaBroker, topic: str, first: int, last: int, **config: Any) -> None:
    producer = broker.producer(**config)
    for n in range(first, last):
        value = None if n % 5 == 0 else b"value %d \xff" % n
        producer.produce(topic, key=b"k%d" % (n % 7), value=value, headers=HEADERS[n % 2])
    producer.flush()


def test_records_of_all_codecs_are_read(broker: KafkaBroker) -> None:
    topic = broker.make_topic(cleanup_policy="compact", min_cleanable_dirty_ratio=NOTHING_CLEANED)
    for number, codec in enumerate(NAMES.values()):
        produce(broker, topic, 100 * number, 100 * number + 100, compression_type=codec)
    log = log_of(folder_of(broker, topic))
    assert records_of(log) == consumed(broker, topic)
    assert (log.start_offset, log.end_offset) == broker.log_start_and_end(topic)
    assert (log.damage, log.cut) == ((), None)
    assert is_in_use(broker.data)
    assert folder_of(broker, topic).topic_id
    assert log.leader_epoch == 0


def test_transactions_over_several_segments(broker: KafkaBroker) -> None:
    topic = broker.make_topic(cleanup_policy="compact", min_cleanable_dirty_ratio=NOTHING_CLEANED, segment_ms="100")
    committed, aborted, left = (broker.producer(transactional_id=f"{topic}-{name}") for name in "cal")
    for producer in (committed, aborted, left):
        producer.init_transactions(30)
    for turn in range(4):
        for producer in (committed, aborted):
            producer.begin_transaction()
        for producer in (committed, aborted, committed):
            producer.produce(topic, key=b"k%d" % turn, value=b"v" * 100)
            producer.flush()
        produce(broker, topic, turn, turn + 2)
        aborted.abort_transaction(30)
        committed.commit_transaction(30)
    left.begin_transaction()
    offsets = list[int]()  # ends of the transactions before may be written after it
    left.produce(
        topic, key=b"open", value=b"never committed", on_delivery=lambda _, sent: offsets.append(sent.offset())
    )
    left.flush()
    (open_from,) = offsets
    produce(broker, topic, 0, 3)
    wait_until(lambda: broker.log_start_and_end(topic, committed=True)[1] == open_from, "ends are missing", 30)
    log = log_of(folder_of(broker, topic))
    assert len(log.segments) > 1
    assert records_of(log) == consumed(broker, topic)
    assert (log.start_offset, log.stable_end) == broker.log_start_and_end(topic, committed=True)
    assert len(log.transactions.aborted) == 4
    left.abort_transaction(30)


def test_a_log_that_a_cleaner_has_been_at(broker: KafkaBroker) -> None:
    topic = broker.make_topic(cleanup_policy="compact", min_cleanable_dirty_ratio=NOTHING_CLEANED, segment_ms="100")
    for start in range(0, 200, 50):
        produce(broker, topic, start, start + 50, compression_type="lz4")
        time.sleep(0.2)  # the next one begins a segment
    before = len(consumed(broker, topic))
    broker.alter_topic(topic, min_cleanable_dirty_ratio="0.0")
    wait_until(lambda: len(consumed(broker, topic)) < before, "nothing is cleaned", 60)
    broker.alter_topic(topic, min_cleanable_dirty_ratio=NOTHING_CLEANED)
    wait_until(lambda: records_of(log_of(folder_of(broker, topic))) == consumed(broker, topic), "files differ", 30)
    wait_until(lambda: folder_of(broker, topic).first_dirty is not None, "no checkpoint of a cleaner", 30)


def replace_records(folder: Path, data: Sequence[bytes]) -> None:
    """The only segment of a stopped broker's log becomes these batches; the broker makes its indexes."""
    for file in folder.iterdir():
        if file.suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
            file.unlink()
    (folder / f"{0:020}.log").write_bytes(b"".join(data))


@pytest.mark.timeout(300)
def test_a_broker_serves_what_is_written() -> None:
    """In all codecs, with gaps between offsets, and a batch whose records are all gone at the end."""
    with a_broker() as broker:
        topic = broker.make_topic(cleanup_policy="compact", min_cleanable_dirty_ratio=NOTHING_CLEANED)
        broker.stop()
        expected, data, offset = [], list[bytes](), 5
        for codec in NAMES:
            rows = []
            for n in range(50):
                headers = [{"key": "a", "value": None}, {"key": "b", "value": b"\xff"}] if n % 3 == 0 else None
                value = None if n % 7 == 0 else b"value %d" % n * 9
                rows.append((offset, 1_700_000_000_000 + n, 0, b"k%d" % n, value, headers))
                offset += 1 + n % 4
            expected += [(o, t, k, v, [(h["key"], h["value"]) for h in hs or ()]) for o, t, _, k, v, hs in rows]
            data += encoded(table_of(rows), codec=codec, leader_epoch=0, limits=BatchLimits(records=20))
            offset += 10
        data.append(empty_batch(offset, offset + 4, leader_epoch=0))
        folder = folder_of(broker, topic)
        replace_records(folder.path, data)
        assert not is_in_use(broker.data)
        assert log_of(folder).end_offset == offset + 5
        broker.start()
        assert consumed(broker, topic) == expected
        assert broker.log_start_and_end(topic)[1] == offset + 5
        produce(broker, topic, 0, 3)
        assert [row[0] for row in consumed(broker, topic)[-3:]] == [offset + 5, offset + 6, offset + 7]
