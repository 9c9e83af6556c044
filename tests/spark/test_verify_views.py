"""`verify` of topics whose rounds go by orders in headers, and of compacted views (C8, C10, C20, C22, C24, C33)."""

from __future__ import annotations

from pathlib import Path

import pytest

import lithify
from lithify.api.topic import Topic
from lithify.columnar.files.access import local_path
from lithify.model.finding import FindingKind
from lithify.model.segment import Segment
from lithify.model.topic.edit import TopicEdit
from spark.damage import replaced, with_value, without
from support.engines.kernel import compact_without_spark

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000


def record(n: int, order: int, *, deletes: bool = False) -> lithify.Record:
    """One of seven keys; the order is in a header, as old as may be."""
    value = None if deletes else b"value-%d" % n
    headers = (("v", order.to_bytes(8, "big", signed=True)),) if n % 6 else ()
    return lithify.Record(key=b"key-%d" % (n % 7), value=value, timestamp=1_700_000_000_000 - n, headers=headers)


@pytest.mark.parametrize(("mode", "strategy"), [("in-place", "header"), ("side-by-side", "timestamp")])
def test_late_records_and_held_tombstones_are_no_finding(tmp_path: Path, mode: str, strategy: str) -> None:
    """C10, C20, C22: rounds by order, tombstones that have to wait for what they beat, records that come late."""
    config = {"compaction.mode": mode, "compaction.strategy": strategy, "compaction.strategy.header": "v"}
    topic = lithify.open(str(tmp_path / "warehouse")).create_topic("orders", config=config)
    now_ms = topic.warehouse.clock.now_ms()
    topic.append([record(n, 50 - n, deletes=n == 4) for n in range(40)])
    compact_without_spark(topic, now_ms)
    topic.alter({"min.compaction.lag.bytes": 2**30})
    topic.append([record(n, 50 - n) for n in range(40, 80)])
    held = compact_without_spark(topic, now_ms + 2 * DAY_MS).logs[0]
    assert (held.tombstones_held, held.losers.expired_tombstone) == (1, 0)
    topic.alter({"min.compaction.lag.bytes": 0})
    assert compact_without_spark(topic, now_ms + 2 * DAY_MS).logs[0].losers.expired_tombstone == 1
    topic.append([record(n, 50 - n) for n in range(80, 120)])
    compact_without_spark(topic, now_ms + 2 * DAY_MS)
    assert [r.offset for r in topic.reader(0, compacted=True) if r.key == b"key-4"] == [81]
    newest, *_, oldest = topic.versions()
    for version in (newest, oldest):
        assert topic.verify(against=version.version).findings == ()


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Offsets 0 to 59 in a view of seven keys; then 60 to 69."""
    orders = lithify.open(str(tmp_path / "warehouse")).create_topic(
        "orders", config={"compaction.mode": "side-by-side"}
    )
    orders.append([record(n, n, deletes=n == 59) for n in range(60)])
    compact_without_spark(orders)
    orders.append([record(n, n) for n in range(60, 70)])
    return orders


def segment_of_view(topic: Topic) -> Segment:
    (segment,) = topic.warehouse.store.view(topic.state())
    return segment


def about_records(topic: Topic) -> set[tuple[FindingKind, int | None]]:
    return {(f.kind, f.offset) for f in topic.verify().findings if f.offset is not None}


def test_an_undamaged_view_is_clean(topic: Topic) -> None:
    report = topic.verify()
    assert report.findings == ()
    assert report.records == 7 + 70


def test_what_is_gone_from_a_view_is_named(topic: Topic) -> None:
    """C3, C5."""
    replaced(topic, segment_of_view(topic), without(58, 59), in_view=True)
    assert about_records(topic) == {(FindingKind.RECORD_LOST, 58), (FindingKind.TOMBSTONE_REMOVED_EARLY, 59)}


def test_a_backlog_that_is_not_what_the_view_has_is_named(topic: Topic) -> None:
    """C1, C33."""
    replaced(topic, topic.warehouse.store.segments(topic.state())[0], with_value(58, b"forged"))
    assert about_records(topic) == {(FindingKind.RECORD_ALTERED, 58)}


def test_a_view_that_is_another_one_is_named(topic: Topic) -> None:
    """C8: the metadata that names files is broken; the backlog is checked all the same."""
    warehouse, state = topic.warehouse, topic.state()
    gone = (segment_of_view(topic),)
    warehouse.store.commit(state, TopicEdit(run_id="damage", time_ms=0, logs={0: state.log(0)}, view_remove=gone))
    report = topic.verify()
    assert FindingKind.FILE_DAMAGED in {finding.kind for finding in report.findings}
    assert report.records == 70


def test_a_missing_file_of_a_view_is_named(topic: Topic) -> None:
    """C8."""
    segment = segment_of_view(topic)
    Path(str(local_path(segment.path))).unlink()
    (missing,) = topic.verify().findings
    assert (missing.kind, missing.path) == (FindingKind.FILE_MISSING, segment.path)
