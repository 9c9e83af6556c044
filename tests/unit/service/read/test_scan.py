"""Positions become offsets, offsets become tasks: nothing twice, nothing left out, nothing too large (C2, C7, C37)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.errors import LogTruncatedError, OffsetOutOfRangeError, RefusedError, UnknownTopicError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.scan import Everywhere, Filters, Listed, Matching, PerLog, ScanPiece, ScanSettings
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.start_position import AtTime
from lithify.service.change.cut import delete_records, truncate
from lithify.service.read import scan
from lithify.service.read.watched import Watched
from lithify.service.write.append import append
from lithify.store.memory import MemoryWarehouse
from support.builders import a_segment
from support.fake_clock import FakeClock

NAME = TopicName("default", "t")
SETTINGS = ScanSettings()
LOSSY = ScanSettings(fail_on_data_loss=False)


@pytest.fixture
def warehouse():
    """Two logs, each of three segments of ten records, a millisecond apart."""
    clock = FakeClock(1_000)
    made = MemoryWarehouse(clock.new_id, clock.now_ms).with_clock(clock)
    made.store.create_topic(NAME, "t", TopicSettings(), 2, 0)
    for start in range(0, 30, 10):
        append(made, NAME, [Record(b"k", b"v", 100 + n, (), p) for p in range(2) for n in range(start, start + 10)])
    return made


def states(warehouse):
    return scan.subscribed(warehouse, Listed((NAME,)))


def test_what_is_subscribed(warehouse):
    other = TopicName("shop", "t")
    warehouse.store.create_topic(other, "shop/t", TopicSettings(), 1, 0)
    assert [s.name for s in scan.subscribed(warehouse, Listed((NAME, other, NAME)))] == [NAME, other]
    assert [s.name for s in scan.subscribed(warehouse, Matching(".*/t"))] == [other]
    with pytest.raises(UnknownTopicError):
        scan.subscribed(warehouse, Listed((TopicName("default", "none"),)))


@pytest.mark.parametrize(
    ("position", "offset"), [("earliest", 4), ("latest", 30), (4, 4), (30, 30), (AtTime(115), 15), (AtTime(999), 30)]
)
def test_what_a_position_means(warehouse, position, offset):
    for partition in range(2):
        delete_records(warehouse, NAME, partition, 4)
    assert scan.offsets_at(warehouse, states(warehouse), Everywhere(position), SETTINGS) == {
        "t": {0: offset, 1: offset}
    }


def test_a_position_that_is_not_in_the_log(warehouse):
    delete_records(warehouse, NAME, 0, 4)
    for offset, nearest in ((3, 4), (31, 30)):
        bound = PerLog({"t": {0: offset, 1: 9}})
        with pytest.raises(OffsetOutOfRangeError, match=re.escape(f"t-0: offset {offset} is outside of [4, 30]")):
            scan.offsets_at(warehouse, states(warehouse), bound, SETTINGS)
        assert scan.offsets_at(warehouse, states(warehouse), bound, LOSSY) == {"t": {0: nearest, 1: 9}}


@pytest.mark.parametrize(
    ("positions", "error", "says"),
    [
        ({"t": {0: 1}}, RefusedError, "t-1: its offset is not given"),
        ({"t": {0: 1, 1: 1, 2: 1}}, RefusedError, "t-2: there is no such partition.*2 partitions"),
        ({}, RefusedError, "t-0: its offset is not given"),
        ({"t": {0: 1, 1: 1}, "u": {0: 1}}, UnknownTopicError, "u: offsets are given for it"),
    ],
)
def test_offsets_are_given_for_every_log_and_no_other(warehouse, positions, error, says):
    with pytest.raises(error, match=says):
        scan.offsets_at(warehouse, states(warehouse), PerLog(positions), SETTINGS)


def planned(warehouse, start, end, settings=SETTINGS):
    """(partition, first, end) of every piece of every task."""
    tasks = scan.plan_tasks(warehouse, states(warehouse), {"t": start}, {"t": end}, settings)
    return [[(t.partition, p.start_offset, p.end_offset) for p in t.pieces] for t in tasks]


def test_tasks_have_the_parts_of_segments_in_the_range(warehouse):
    assert planned(warehouse, {0: 5, 1: 30}, {0: 25, 1: 30}) == [[(0, 5, 10), (0, 10, 20), (0, 20, 25)]]
    assert planned(warehouse, {0: 5}, {0: 5}) == []
    assert planned(warehouse, {0: 0}, {0: 10}) == [[(0, 0, 10)]]  # the log that has no end is not read


def test_a_log_that_is_new_is_read_from_its_first_record(warehouse):
    delete_records(warehouse, NAME, 1, 12)
    assert planned(warehouse, {0: 30}, {0: 30, 1: 30}) == [[(1, 12, 20), (1, 20, 30)]]


def test_as_many_tasks_as_are_asked_for(warehouse):
    tasks = planned(warehouse, {0: 0, 1: 0}, {0: 30, 1: 30}, ScanSettings(min_tasks=12))
    assert len(tasks) >= 12
    pieces = [piece for task in tasks for piece in task]
    assert [(p, n) for p, a, b in pieces for n in range(a, b)] == [(p, n) for p in range(2) for n in range(30)]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(partitions=frozenset({1, 7})), [(1, 0, 10), (1, 10, 20), (1, 20, 30)]),
        (Filters(partitions=frozenset({0}), min_offset=12, end_offset=14), [(0, 12, 14)]),
        (Filters(partitions=frozenset({0}), min_timestamp_ms=110, max_timestamp_ms=119), [(0, 10, 20)]),
        (Filters(partitions=frozenset({0}), max_timestamp_ms=110), [(0, 0, 10), (0, 10, 20)]),
        (Filters(min_offset=5, end_offset=5), []),
    ],
)
def test_filters_leave_out_what_metadata_rules_out(warehouse, filters, expected):
    tasks = planned(warehouse, {0: 0, 1: 0}, {0: 30, 1: 30}, replace(SETTINGS, filters=filters))
    assert [piece for task in tasks for piece in task] == expected


def test_a_place_that_is_lost_is_named(warehouse):
    """C7."""
    delete_records(warehouse, NAME, 0, 6)
    with pytest.raises(LogTruncatedError, match="t-0: the log starts at 6 now, behind the position 5"):
        planned(warehouse, {0: 5}, {0: 30})
    with pytest.raises(LogTruncatedError, match="t-0: the log ends at 30 now, before 31"):
        planned(warehouse, {0: 6}, {0: 31})
    with pytest.raises(LogTruncatedError, match="t-2: the log that is being read is gone"):
        planned(warehouse, {2: 0}, {2: 3})
    assert planned(warehouse, {0: 5, 2: 0}, {0: 40, 2: 3}, LOSSY) == [[(0, 6, 10), (0, 10, 20), (0, 20, 30)]]


def test_a_stream_notices_what_its_offsets_do_not_show(warehouse):
    """C7: other records at the same offsets."""
    watched = Watched()
    watched.look(states(warehouse), {"t": {0: 25, 1: 5}})
    truncate(warehouse, NAME, 1, 10)  # above the position
    truncate(warehouse, NAME, 0, 20)
    append(warehouse, NAME, [Record(b"k", b"w", 1, (), 0)] * 20)
    watched.look(states(warehouse), {"t": {0: 20, 1: 5}})
    truncate(warehouse, NAME, 0, 20)
    append(warehouse, NAME, [Record(b"k", b"x", 1, (), 0)] * 20)
    with pytest.raises(
        LogTruncatedError, match=r"t-0: the log was truncated.*ends at 40 now, and the stream stood at 25"
    ):
        watched.look(states(warehouse), {"t": {0: 25, 1: 5}})


def test_a_stream_notices_another_topic_of_the_same_name(warehouse):
    watched = Watched()
    watched.look(states(warehouse), {"t": {0: 5, 1: 5}})
    warehouse.store.drop_topic(NAME)
    warehouse.store.create_topic(NAME, "t", TopicSettings(), 2, 0)
    with pytest.raises(LogTruncatedError, match="deleted and made again"):
        watched.look(states(warehouse), {"t": {0: 0, 1: 0}})
    with pytest.raises(LogTruncatedError, match="t-7: the log that is being read is gone"):
        watched.look(states(warehouse), {"t": {7: 0}})


def test_a_stream_notices_a_log_that_ends_below_its_position(warehouse):
    Watched().look(states(warehouse), {"t": {0: 30}})
    with pytest.raises(LogTruncatedError, match=r"t-0: .* ends at 30 now, and the stream stood at 31"):
        Watched().look(states(warehouse), {"t": {0: 31}})


@given(st.integers(0, 50), st.integers(1, 50), st.integers(1, 80))
def test_a_piece_is_cut_into_neighbours(start, length, parts):
    piece = ScanPiece(a_segment(base=start, end=start + length), start, start + length)
    cut = piece.split(parts)
    assert [n for p in cut for n in range(p.start_offset, p.end_offset)] == list(range(start, start + length))
    assert len(cut) == min(parts, length)
