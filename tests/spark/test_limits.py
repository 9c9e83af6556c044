"""Bounds on the work: rates, what the driver collects, how tasks are cut (C38, C40)."""

from __future__ import annotations

import time
from random import Random

import pytest

from lithify.model.record import Record
from lithify.model.settings.table import ByColumn, Order
from lithify.ports.engine import RunLimits
from lithify.rules.compaction.key_pass_shape import LEAST_RECORDS, MAX_READS, key_pass_shape, key_pass_shapes
from lithify.rules.compaction.plan_bounds import bounds_of
from lithify.spark.tasks import partitions, spread
from support.builders import a_segment, some_rules
from support.topics.stored_topics import StoredTopic


def incompressible(random: Random, count: int, size: int) -> list[Record]:
    return [Record(b"%d" % random.randrange(count // 2), random.randbytes(size)) for _ in range(count)]


@pytest.fixture
def two_logs(tmp_path):
    topic, random = StoredTopic(tmp_path), Random(1)
    for partition in (0, 0, 1, 1):
        topic.append(partition, incompressible(random, 200, 2000))
    return topic


def test_reading_keeps_to_its_rate_over_all_tasks(engine, two_logs):
    whole = sum(s.size_bytes for segments in two_logs.segments for s in segments)
    started = time.monotonic()
    outcomes = two_logs.round(engine, limits=RunLimits(read_rate_bytes=whole // 3))
    took = time.monotonic() - started
    read = sum(outcome.bytes_read for outcome in outcomes.values())
    assert read > whole * 0.9
    assert took >= read / (whole // 3)


def test_writing_keeps_to_its_rate_over_all_tasks(engine, two_logs):
    whole = sum(s.size_bytes for segments in two_logs.segments for s in segments)
    started = time.monotonic()
    outcomes = two_logs.round(engine, limits=RunLimits(write_rate_bytes=whole // 3))
    took = time.monotonic() - started
    written = sum(s.size_bytes for outcome in outcomes.values() for s in outcome.written)
    assert written > 0
    assert took >= 0.99 * written / (whole // 3)


def test_the_driver_collects_nothing_of_the_size_of_records(engine, topic, monkeypatch):
    sizes = []
    kind = type(engine.session().range(1))
    to_arrow = kind.toArrow

    def weighed(frame):
        table = to_arrow(frame)
        sizes.append((table.num_rows, table.nbytes))
        return table

    monkeypatch.setattr(kind, "toArrow", weighed)
    random = Random(2)
    collected = []
    for count in (2_000, 20_000):
        for _ in range(2):
            topic.append(0, [Record(random.randbytes(8), b"v") for _ in range(count)])
            topic.append(0, [Record(b"%d" % random.randrange(100), b"v") for _ in range(10)])
        sizes.clear()
        topic.round(engine)
        collected.append(sum(size for _, size in sizes))
        assert max(rows for rows, _ in sizes) < 20
    assert 0 < collected[1] < 2 * collected[0]


def test_a_round_reads_the_keys_as_often_as_its_plan_says(engine, topic):
    topic.append(0, [Record(b"%d" % i, b"v") for i in range(1000)])
    plans = topic.plans()
    (planned,) = key_pass_shapes(plans, RunLimits().task_memory_bytes, slots=2)
    outcome = topic.round(engine)[0]
    assert planned.reads == 1
    assert outcome.findings.bytes_read <= planned.reads * sum(s.scan_bytes for s in plans[0].scanned)
    assert outcome.bytes_read <= bounds_of(plans[0], planned.reads).bytes_read


def test_progress_ends_with_all_of_it(engine, two_logs):
    seen = []
    two_logs.round(engine, progress=lambda *step: seen.append(step))
    phases = {phase for phase, _, _ in seen}
    assert phases == {"key_pass", "rewrite"}
    for phase in phases:
        steps = [(done, total) for name, done, total in seen if name == phase]
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1] > 0
        assert len({total for _, total in steps}) == 1
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)


def test_progress_is_in_bytes_to_read(engine, topic):
    topic.append(0, [Record(b"%d" % (i % 100), b"v") for i in range(1000)])
    (segment,) = topic.segments[0]
    seen = {}
    topic.round(engine, progress=lambda phase, _done, total: seen.update({phase: total}))
    assert seen == {"key_pass": segment.scan_bytes, "rewrite": segment.size_bytes}


def test_the_job_group_of_the_caller_is_as_it_was(engine, session, two_logs):
    context = session.sparkContext
    context.setJobGroup("mine", "my own work")
    two_logs.round(engine)
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    assert context.getLocalProperty("spark.job.description") == "my own work"


class APlan:
    """As much of a plan as its size."""

    def __init__(
        self, dirty: int, *, clean: int = 0, scan_bytes: int = 0, above_horizon: int = 0, order: Order | None = None
    ) -> None:
        self.rules = some_rules(1, order=order)
        self.above_horizon = (a_segment(records=above_horizon),) if above_horizon else ()
        self.dirty = (a_segment(records=dirty, scan_bytes=scan_bytes),)
        self.looked_at = (a_segment(records=clean),) if clean else ()
        self.scanned = self.looked_at + self.dirty
        self.chunks = ()


def shape(dirty: int, *, slots: int = 2, logs: int = 1, memory: int = 2**30, **sizes):
    return key_pass_shape(APlan(dirty, **sizes), task_memory_bytes=memory, slots=slots, logs=logs)


def test_small_logs_are_one_range_and_large_ones_use_the_slots():
    assert shape(LEAST_RECORDS, slots=64).ranges == 1
    assert shape(4 * LEAST_RECORDS, slots=2).ranges == 2
    assert shape(4 * LEAST_RECORDS, slots=64).ranges == 4
    assert shape(4 * LEAST_RECORDS, slots=64, logs=64).ranges == 1
    assert shape(100 * LEAST_RECORDS, slots=64, memory=2**40).ranges == MAX_READS


def test_ranges_follow_the_memory_of_a_task_and_the_dirty_part():
    assert shape(20_000_000).ranges == 2
    assert shape(20_000_000, memory=2**28).ranges == 4
    assert shape(10_000_000, slots=1, scan_bytes=29 * 10_000_000).ranges == 1  # keys of 16 bytes, not compressed
    assert shape(20_000_000, slots=1, scan_bytes=29 * 20_000_000).ranges == 2
    assert shape(1_000_000, clean=10**9).ranges == 2
    assert shape(1_000_000, scan_bytes=2**30).ranges >= 3


def test_versions_take_memory_as_well_and_keys_that_wait_do_not():
    """C20, C38."""
    assert shape(30_000_000, order=ByColumn("timestamp")).ranges == 3
    assert shape(30_000_000, order=ByColumn("timestamp"), above_horizon=10**9).ranges == 3
    assert shape(1_000_000, order=ByColumn("timestamp"), clean=10**9).ranges == 2


def test_keys_are_read_once_where_ranges_are_many():
    many = shape(10**9)
    assert many.shuffled
    assert many.reads == 1
    assert many.ranges > MAX_READS
    assert not shape(50_000_000).shuffled
    assert shape(50_000_000).reads == shape(50_000_000).ranges


def test_small_pieces_of_work_share_a_task_and_large_ones_do_not():
    assert spread([100, 1, 60, 2, 3], full=50) == [0, 2, 1, 2, 2]
    assert partitions(spread([10] * 100, full=50)) == 20
    assert spread([], full=50) == []


def test_no_more_tasks_than_allowed_evenly_filled():
    parts = spread([5, 4, 3, 3, 3], full=1, at_most=2)
    loads = [sum(cost for cost, part in zip([5, 4, 3, 3, 3], parts, strict=True) if part == p) for p in (0, 1)]
    assert sorted(loads) == [8, 10]
