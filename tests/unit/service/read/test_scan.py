"""Positions become offsets, offsets become tasks: nothing twice, nothing left out, nothing too large (C2, C7, C37)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.errors import OffsetOutOfRangeError, RefusedError, UnknownTopicError, UnknownVersionError
from lithify.model.cursor import AtTime
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.scan import (
    AsOfPoint,
    AsOfVersion,
    Everywhere,
    Filters,
    Listed,
    Matching,
    PerLog,
    ScanPiece,
    ScanSettings,
)
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.state import NewTopic
from lithify.service.change.cut import delete_records, truncate
from lithify.service.read import scan_plan
from lithify.service.write.append import append
from support.builders import a_segment
from support.topics.memory_topic import a_warehouse

NAME = TopicName("default", "t")
SETTINGS = ScanSettings()
LOSSY = ScanSettings(fail_on_data_loss=False)


@pytest.fixture
def warehouse():
    """Two logs, each of three segments of ten records, a millisecond apart."""
    made = a_warehouse(NAME, partitions=2, now_ms=1_000)
    for start in range(0, 30, 10):
        append(made, NAME, [Record(b"k", b"v", 100 + n, (), p) for p in range(2) for n in range(start, start + 10)])
    return made


def states(warehouse):
    return scan_plan.subscribed(warehouse, Listed((NAME,)))


def test_what_is_subscribed(warehouse):
    other = TopicName("shop", "t")
    warehouse.store.create_topic(NewTopic(other, "shop/t", TopicSettings(), 1, 0))
    assert [s.name for s in scan_plan.subscribed(warehouse, Listed((NAME, other, NAME)))] == [NAME, other]
    assert [s.name for s in scan_plan.subscribed(warehouse, Matching(".*/t"))] == [other]
    with pytest.raises(UnknownTopicError) as unknown:
        scan_plan.subscribed(warehouse, Listed((TopicName("shop", "tt"),)))
    assert unknown.value.hint == "did you mean shop/t?"


@pytest.mark.parametrize(
    ("position", "offset"),
    [("earliest", 4), ("latest", 30), (4, 4), (30, 30), (AtTime(109), 9), (AtTime(115), 15), (AtTime(999), 30)],
)
def test_what_a_position_means(warehouse, position, offset):
    for partition in range(2):
        delete_records(warehouse, NAME, partition, 4)
    assert scan_plan.offsets_at(warehouse, states(warehouse), Everywhere(position), SETTINGS) == {
        "t": {0: offset, 1: offset}
    }


def test_a_position_that_is_not_in_the_log(warehouse):
    delete_records(warehouse, NAME, 0, 4)
    for offset, nearest in ((3, 4), (31, 30)):
        bound = PerLog({"t": {0: offset, 1: 9}})
        with pytest.raises(OffsetOutOfRangeError, match=re.escape(f"t-0: offset {offset} is outside of [4, 30]")):
            scan_plan.offsets_at(warehouse, states(warehouse), bound, SETTINGS)
        assert scan_plan.offsets_at(warehouse, states(warehouse), bound, LOSSY) == {"t": {0: nearest, 1: 9}}


@pytest.mark.parametrize(
    ("positions", "error", "says"),
    [
        ({"t": {0: 1}}, RefusedError, "t-1: its offset is missing"),
        ({"t": {0: 1, 1: 1, 2: 1}}, RefusedError, "t-2: there is no such partition.*2 partitions"),
        ({}, RefusedError, "t-0: its offset is missing"),
        ({"t": {0: 1, 1: 1}, "u": {0: 1}}, UnknownTopicError, "u: it has offsets"),
    ],
)
def test_offsets_are_given_for_every_log_and_no_other(warehouse, positions, error, says):
    with pytest.raises(error, match=says):
        scan_plan.offsets_at(warehouse, states(warehouse), PerLog(positions), SETTINGS)


def test_a_time_without_a_record_after_it_is_an_error_for_a_start_unless_the_end_is_asked_for():
    """As with Spark's Kafka source, also for an empty log."""
    empty = a_warehouse(NAME, partitions=2, now_ms=1_000)
    append(empty, NAME, [Record(b"k", b"v", 100, (), 0)])
    at_time = PerLog({"t": {0: AtTime(100), 1: AtTime(100)}})
    with pytest.raises(OffsetOutOfRangeError, match=r"t-1: no record is at or after 1970-01-01T00:00:00.100Z.*=latest"):
        scan_plan.starts_at(empty, states(empty), at_time, SETTINGS)
    assert scan_plan.starts_at(empty, states(empty), at_time, ScanSettings(latest_without_match=True)) == {
        "t": {0: 0, 1: 0}
    }
    ends = PerLog({"t": {0: AtTime(100), 1: "latest"}})
    assert scan_plan.starts_at(empty, states(empty), ends, SETTINGS) == {"t": {0: 0, 1: 0}}


def test_a_start_above_the_end_is_refused_by_name():
    scan_plan.check_ranges({"t": {0: 4, 1: 5}}, {"t": {0: 4, 1: 6}})
    with pytest.raises(RefusedError, match="t-1: the start, offset 7, is above the end, offset 6"):
        scan_plan.check_ranges({"t": {0: 4, 1: 7}}, {"t": {0: 4, 1: 6}})


ONE = ScanSettings(assigned={"t": frozenset({1})})


def test_of_assigned_partitions_alone_offsets_are_given(warehouse):
    assert scan_plan.offsets_at(warehouse, states(warehouse), PerLog({"t": {1: 3}}), ONE) == {"t": {1: 3}}
    for positions in ({0: 3, 1: 3}, {}):
        with pytest.raises(RefusedError, match=r"t-[01]: .* of the 1 partitions to read"):
            scan_plan.offsets_at(warehouse, states(warehouse), PerLog({"t": positions}), ONE)
    with pytest.raises(UnknownTopicError, match="t has no partition 2"):
        none = ScanSettings(assigned={"t": frozenset({1, 2})})
        scan_plan.offsets_at(warehouse, states(warehouse), Everywhere("earliest"), none)


def as_of(warehouse, point, settings=SETTINGS):
    tasks = scan_plan.plan_as_of(warehouse, states(warehouse), point, settings)
    return [(t.version, t.partition, p.start_offset, p.end_offset) for t in tasks for p in t.pieces]


def test_a_point_in_the_past_is_read_in_a_version_that_covers_it(warehouse):
    newest = states(warehouse)[0].version
    upto_15 = [(newest, p, a, b) for p in range(2) for a, b in ((0, 10), (10, 15))]
    assert as_of(warehouse, AsOfPoint(AtTime(115))) == upto_15
    assert as_of(warehouse, AsOfPoint({"t": {0: 15, 1: 15}})) == upto_15
    assert as_of(warehouse, AsOfPoint(AtTime(115)), ONE) == upto_15[2:]
    assert as_of(warehouse, AsOfPoint(15), ONE) == upto_15[2:]
    with pytest.raises(RefusedError, match="offset 15 belongs to one log"):
        as_of(warehouse, AsOfPoint(15))
    with pytest.raises(RefusedError, match="t: its offsets are missing"):
        as_of(warehouse, AsOfPoint({"u": {0: 1}}))


def test_a_kept_version_is_read_as_it_was(warehouse):
    before = states(warehouse)[0].version
    truncate(warehouse, NAME, 0, 20)
    append(warehouse, NAME, [Record(b"k", b"v", 200, (), 0)])
    whole = [(before, p, n, n + 10) for p in range(2) for n in range(0, 30, 10)]
    assert as_of(warehouse, AsOfVersion(before)) == whole
    assert as_of(warehouse, AsOfVersion(before), ONE) == whole[3:]
    with pytest.raises(UnknownVersionError):
        as_of(warehouse, AsOfVersion(before - 1))
    append_to_other(warehouse)
    with pytest.raises(RefusedError, match="belongs to one topic"):
        scan_plan.plan_as_of(warehouse, scan_plan.subscribed(warehouse, Matching(".*t")), AsOfVersion(before), SETTINGS)


def append_to_other(warehouse):
    warehouse.store.create_topic(NewTopic(TopicName("shop", "t"), "shop/t", TopicSettings(), 1, 0))


def planned(warehouse, start, end, settings=SETTINGS):
    """(partition, first, end) of every piece of every task."""
    tasks = scan_plan.plan_tasks(warehouse, states(warehouse), {"t": start}, {"t": end}, settings)
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


def test_a_task_has_as_many_offsets_as_are_asked_for_at_most(warehouse):
    tasks = planned(warehouse, {0: 0}, {0: 30}, ScanSettings(max_task_offsets=7))
    assert max(sum(b - a for _, a, b in task) for task in tasks) <= 7
    assert [n for task in tasks for _, a, b in task for n in range(a, b)] == list(range(30))
    assert len(planned(warehouse, {0: 0}, {0: 30}, ScanSettings(max_task_offsets=30))) == 1


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


def test_what_a_log_no_longer_has_is_not_planned(warehouse):
    """Whether that is an error was decided before."""
    delete_records(warehouse, NAME, 0, 6)
    assert planned(warehouse, {0: 5, 2: 0}, {0: 40, 2: 3}) == [[(0, 6, 10), (0, 10, 20), (0, 20, 30)]]


@given(st.integers(0, 50), st.integers(1, 50), st.integers(1, 80))
def test_a_piece_is_cut_into_neighbours(start, length, parts):
    piece = ScanPiece(a_segment(base=start, end=start + length), start, start + length)
    cut = piece.split(parts)
    assert [n for p in cut for n in range(p.start_offset, p.end_offset)] == list(range(start, start + length))
    assert len(cut) == min(parts, length)
