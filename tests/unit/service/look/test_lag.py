"""The lag of a group is what a reader would really get from its position (C59)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lithify.model.cursor import UNTOLD, Cursor
from lithify.model.groups.positions import Position
from lithify.model.names import LogId
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.reports.groups import GroupLag
from lithify.rules.reading.pieces import Reading
from lithify.service.change.cut import delete_records, truncate
from lithify.service.look.lag import group_lag
from lithify.service.read.fetch import open_log
from support.faults.topics import IN_PLACE, MAKERS, NAME, SIDE_BY_SIDE, prepared
from support.topics.memory_topic import ORDERS, MemoryTopic

pytestmark = pytest.mark.long


@pytest.fixture(params=[(make, mode) for make in MAKERS for mode in ("in place", "side by side")], ids="-".join)
def warehouse(request: pytest.FixtureRequest, tmp_path: Path) -> Warehouse:
    make, mode = request.param
    ready = prepared(MAKERS[make], tmp_path, IN_PLACE if mode == "in place" else SIDE_BY_SIDE)
    delete_records(ready, NAME, 1, 13)  # in the middle of a segment
    return ready


def at(warehouse: Warehouse, offset: int, *, partition: int = 0, compacted: bool = False) -> Position:
    state = warehouse.store.load(NAME)
    cursor = Cursor.of(state, state.log(partition), offset)
    return Position("g", LogId(NAME, partition), cursor, compacted, 5)


def lag_at(warehouse: Warehouse, position: Position) -> GroupLag:
    return group_lag(warehouse, "g", NAME, [position])[position.log.partition]


@pytest.mark.parametrize("compacted", [False, True])
def test_the_records_left_are_those_that_a_reader_gets(warehouse: Warehouse, compacted: bool) -> None:
    state, how = warehouse.store.load(NAME), Reading(compacted=compacted)
    for log in state.logs:
        for offset in range(how.start(log), log.log_end_offset + 1):
            position = at(warehouse, offset, partition=log.partition, compacted=compacted)
            read = list(open_log(warehouse, state, log.partition, position.cursor, how))
            oldest_ms = min((r.timestamp for r in read if r.timestamp is not None), default=None)
            lag_ms = 0 if oldest_ms is None else warehouse.clock.now_ms() - oldest_ms
            found = lag_at(warehouse, position)
            assert (found.lag, found.lag_ms, found.error) == (len(read), lag_ms, None)
            assert (found.position, found.log_end_offset) == (offset, log.log_end_offset)


def test_a_log_without_a_position_is_read_from_its_start(warehouse: Warehouse) -> None:
    state = warehouse.store.load(NAME)
    for log, found in zip(state.logs, group_lag(warehouse, "g", NAME, []), strict=True):
        assert found.lag == len(list(open_log(warehouse, state, log.partition)))
        assert (found.position, found.committed_at) == (None, None)


def test_a_record_of_the_future_does_not_make_it_negative(warehouse: Warehouse) -> None:
    warehouse.clock.set(0)  # type: ignore[attr-defined]
    assert group_lag(warehouse, "g", NAME, [])[0].lag_ms == 0


def test_a_position_where_the_group_cannot_continue_says_why(warehouse: Warehouse) -> None:
    end = warehouse.store.load(NAME).log(0).log_end_offset
    behind = at(warehouse, end)
    trimmed = at(warehouse, 12, partition=1)
    truncate(warehouse, NAME, 0, end - 1)
    found = lag_at(warehouse, behind)
    assert (found.lag, found.lag_ms) == (None, None)
    assert "truncated below" in (found.error or "")
    assert "the log starts at 13 now" in (lag_at(warehouse, trimmed).error or "")
    warehouse.store.drop_topic(NAME)
    (gone,) = group_lag(warehouse, "g", NAME, [behind])
    assert (gone.log_end_offset, gone.position) == (None, end)
    assert "its topic was deleted or recreated" in (gone.error or "")


def test_clients_of_kafka_that_have_missed_deletes_have_a_lag(warehouse: Warehouse) -> None:
    """C49: they go on, so it is shown beside what who continues with Lithify is told."""
    position = at(warehouse, 13, partition=1)
    untold = replace(position, cursor=replace(position.cursor, epoch=UNTOLD))
    found = lag_at(warehouse, untold)
    assert found.lag == lag_at(warehouse, position).lag
    assert "clients of Kafka have read it up to offset 13" in (found.error or "")


def test_a_partition_that_the_recreated_topic_does_not_have(warehouse: Warehouse) -> None:
    found = group_lag(warehouse, "g", NAME, [at(warehouse, 0, partition=1), at(warehouse, 0)])
    assert [lag.partition for lag in found] == [0, 1]
    strange = Position("g", LogId(NAME, 7), at(warehouse, 0).cursor, False, 5)
    assert "its topic was deleted or recreated" in (group_lag(warehouse, "g", NAME, [strange])[2].error or "")


def test_the_oldest_record_is_one_that_no_mask_hides() -> None:
    topic = MemoryTopic(now_ms=10_000, segment_max_dead_ratio=1, segment_bytes=1_000)
    for first in (2_000, 1_000, 3_000):
        topic.append([Record(b"%d" % (first + n), b"v" * 70, first + n) for n in range(9)])
    topic.append([Record(b"%d" % key, b"w" * 600, 9_000) for key in (1_000, 1_001, 2_000)])
    topic.compact()
    assert [s.mask and s.mask.dead for s in topic.segments()] == [1, 2, None, None, None]
    for offset in range(31):
        left = list(topic.reader(0, offset))
        (found,) = group_lag(topic.warehouse, "g", ORDERS, [at(topic.warehouse, offset)])
        oldest_ms = min((r.timestamp or 0 for r in left), default=10_000)
        assert (found.lag, found.lag_ms) == (len(left), 10_000 - oldest_ms)
