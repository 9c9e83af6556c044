"""`verify` finds what was damaged on purpose, and names it (C1, C3, C4, C5, C8)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lithify
from lithify.api.topic import Topic
from lithify.columnar.files.access import local_path
from lithify.model.log import TopicEdit
from lithify.model.segment import Segment
from lithify.reports.verification import Finding, FindingKind
from support.engines.kernel import compact_without_spark
from support.generated.chosen_keys import of_one_spark_group_hash

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000


def records(first: int, last: int) -> list[lithify.Record]:
    """Offsets first to last of one log: twelve keys in turn, every fifth record a tombstone."""
    return [
        lithify.Record(
            key=b"key-%d" % (n % 12),
            value=None if n % 5 == 4 else b"value-%d" % n,
            timestamp=1_700_000_000_000 + n,
            headers=(("n", b"%d" % n),) if n % 3 == 0 else (),
        )
        for n in range(first, last)
    ]


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Offsets 0 to 59, compacted; then 60 to 79, not yet."""
    orders = lithify.open(str(tmp_path / "warehouse")).create_topic("orders")
    orders.append(records(0, 30))
    orders.append(records(30, 60))
    compact_without_spark(orders)
    orders.append(records(60, 80))
    return orders


def test_keys_that_spark_hashes_alike_take_no_longer_than_others(tmp_path: Path) -> None:
    """A producer knows which hashes Spark has, and which offsets they get."""
    count, seconds = 100_000, []
    for name, keys in (("first", [b"%08d" % n for n in range(count)]), ("chosen", of_one_spark_group_hash(count))):
        made = lithify.open(str(tmp_path / name)).create_topic("orders")
        made.append([lithify.Record(key, b"v", 1) for key in keys])
        compact_without_spark(made)
        begun = time.monotonic()
        assert made.verify().clean
        seconds.append(time.monotonic() - begun)
    assert seconds[1] < 2 * seconds[0] + 5


def segments(topic: Topic) -> tuple[Segment, ...]:
    return topic.warehouse.store.segments(topic.state())


def rewritten_in_place(segment: Segment, change: Callable[[pa.Table], pa.Table]) -> None:
    """The same file with other content, as a stray program would leave it."""
    path = local_path(segment.path)
    assert path is not None
    table = pq.read_table(path, partitioning=None)
    pq.write_table(change(table), path, compression="zstd")


def replaced(topic: Topic, segment: Segment, change: Callable[[pa.Table], pa.Table]) -> None:
    """A commit that puts another file in the place of a segment: what a defect of ours would do."""
    warehouse, state = topic.warehouse, topic.state()
    (batch,) = warehouse.files.read(segment, 0)
    table = change(batch.to_arrow()).drop_columns(["value_size"])
    arrivals = warehouse.files.receive(state, table, now_ms=0, keep_offsets=True)[0]
    written = warehouse.files.write(state, arrivals, segment.base_offset, "damage")
    warehouse.store.commit(
        state, TopicEdit(run_id="damage", time_ms=0, logs={0: state.log(0)}, add=written, remove=(segment,))
    )


def found(topic: Topic, against: int | None = None) -> dict[FindingKind, list[Finding]]:
    kinds: dict[FindingKind, list[Finding]] = {}
    for finding in topic.verify(against=against).findings:
        kinds.setdefault(finding.kind, []).append(finding)
    return kinds


def without(offset: int) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.filter(pc.field("offset") != offset)


def with_value(offset: int, value: bytes) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = pc.if_else(pc.equal(table["offset"], offset), pa.scalar(value, pa.binary()), table["value"])
        return table.set_column(table.column_names.index("value"), table.schema.field("value"), values)

    return change


def test_an_undamaged_log_is_clean(topic: Topic) -> None:
    report = topic.verify()
    assert report.findings == ()
    assert report.clean
    assert (report.records, report.against) == (12 + 20, topic.versions()[0].version)


def test_several_rounds_and_expired_tombstones_are_clean(topic: Topic) -> None:
    """C5, C18: tombstones that went in time are no finding, against any kept version."""
    first = topic.versions()[-1].version
    topic.compact()
    topic.append(records(80, 90))
    topic.compact(now_ms=topic.warehouse.clock.now_ms() + 2 * DAY_MS)
    assert topic.history()[0].logs[0].losers.expired_tombstone > 0
    assert topic.verify().findings == ()
    assert topic.verify(against=first).findings == ()


def test_a_record_lost_from_the_compacted_part_is_named(topic: Topic) -> None:
    """C3: the winner of a key is gone."""
    against = topic.versions()[0].version
    replaced(topic, segments(topic)[0], without(58))
    (lost,) = found(topic, against)[FindingKind.RECORD_LOST]
    assert (lost.partition, lost.offset) == (0, 58)
    assert "orders-0, offset 58" in lost.message


def test_a_record_lost_above_the_first_dirty_offset_is_named(topic: Topic) -> None:
    """C3: a record that no round has touched is gone."""
    replaced(topic, segments(topic)[-1], without(70))
    assert [f.offset for f in found(topic)[FindingKind.RECORD_LOST]] == [70]


def test_an_altered_record_is_named(topic: Topic) -> None:
    """C1: the same offset has another value."""
    against = topic.versions()[0].version
    replaced(topic, segments(topic)[0], with_value(58, b"forged!!"))
    assert [f.offset for f in found(topic, against)[FindingKind.RECORD_ALTERED]] == [58]


def test_a_tombstone_removed_early_is_named(topic: Topic) -> None:
    """C5: it has not been readable for delete.retention.ms yet."""
    against = topic.versions()[0].version
    replaced(topic, segments(topic)[0], without(59))
    assert [f.offset for f in found(topic, against)[FindingKind.TOMBSTONE_REMOVED_EARLY]] == [59]


def test_a_superseded_record_that_came_back_is_named(topic: Topic) -> None:
    """C4: a key has two records below the first dirty offset."""
    version = topic.versions()[0].version
    before = topic.warehouse.store.segments(topic.warehouse.store.load_version(topic.topic_name, version))
    (old,) = topic.warehouse.files.read(before[1], 0)
    replaced(topic, segments(topic)[0], lambda _: old.to_arrow())
    kept = found(topic, version)[FindingKind.SUPERSEDED_KEPT]
    assert [f.offset for f in kept] == list(range(30, 48))


def test_a_missing_file_is_named(topic: Topic) -> None:
    """C8."""
    segment = segments(topic)[0]
    Path(str(local_path(segment.path))).unlink()
    (missing,) = topic.verify().findings  # that all of its records are gone goes without saying
    assert (missing.kind, missing.path) == (FindingKind.FILE_MISSING, segment.path)


def test_a_file_cut_short_is_named(topic: Topic) -> None:
    """C8."""
    segment = segments(topic)[0]
    path = Path(str(local_path(segment.path)))
    path.write_bytes(path.read_bytes()[:-100])
    assert [f.path for f in found(topic)[FindingKind.FILE_DAMAGED]] == [segment.path]


def test_a_file_with_other_content_is_named(topic: Topic) -> None:
    """C8: one more byte in a value is enough."""
    segment = segments(topic)[0]
    rewritten_in_place(segment, with_value(58, b"value-58!"))
    assert {f.path for f in found(topic)[FindingKind.FILE_DAMAGED]} == {segment.path}


def test_records_out_of_order_are_named(topic: Topic) -> None:
    """C1: readers rely on ascending offsets."""
    segment = segments(topic)[0]
    rewritten_in_place(segment, lambda table: table.take(list(reversed(range(table.num_rows)))))
    assert [f.path for f in found(topic)[FindingKind.FILE_DAMAGED]] == [segment.path]


def test_a_wrong_count_in_the_metadata_is_named(topic: Topic) -> None:
    state = topic.state()
    wrong = replace(state.log(0), clean=replace(state.log(0).clean, records=5))
    topic.warehouse.store.commit(state, TopicEdit(run_id="damage", time_ms=0, logs={0: wrong}))
    (finding,) = found(topic)[FindingKind.WRONG_METADATA]
    assert "clean" in finding.message


def test_a_flipped_bit_is_named(topic: Topic) -> None:
    """C8: pages carry checksums, so that the same file read twice can still be told from what was written."""
    segment = segments(topic)[-1]
    path = Path(str(local_path(segment.path)))
    data = bytearray(path.read_bytes())
    data[len(data) // 8] ^= 1
    path.write_bytes(bytes(data))
    assert [f.path for f in found(topic)[FindingKind.FILE_DAMAGED]] == [segment.path]
