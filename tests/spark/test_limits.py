"""Bounds on the work: rates, what the driver collects, how tasks are cut (C38, C40)."""

from __future__ import annotations

import time
from random import Random

import pytest

from lithify.model.record import Record
from lithify.ports.engine import RunLimits
from lithify.rules.compaction.key_pass_shape import key_pass_shapes
from lithify.rules.compaction.plan_bounds import bounds_of
from lithify.spark.tasks import partitions, spread
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


def test_small_pieces_of_work_share_a_task_and_large_ones_do_not():
    assert spread([100, 1, 60, 2, 3], full=50) == [0, 3, 1, 3, 2]
    assert partitions(spread([10] * 100, full=50)) == 20
    assert spread([], full=50) == []


def test_each_slot_gets_as_many_tasks_as_any_other():
    assert partitions(spread([10] * 100, full=50, slots=16)) == 32
    assert partitions(spread([100] * 3, full=50, slots=2)) == 3  # none is divided


def test_small_pieces_are_divided_among_idle_slots_unless_they_are_tiny():
    assert spread([3] * 9, full=50, slots=2, least=4) == [0, 1] * 4 + [0]
    assert partitions(spread([3] * 9, full=50, slots=16, least=4)) == 6
    assert partitions(spread([3] * 9, full=50, slots=2)) == 1
    assert partitions(spread([1] * 7, full=50, slots=2, least=4)) == 1


def test_no_more_tasks_than_allowed_evenly_filled():
    parts = spread([5, 4, 3, 3, 3], full=1, at_most=2)
    loads = [sum(cost for cost, part in zip([5, 4, 3, 3, 3], parts, strict=True) if part == p) for p in (0, 1)]
    assert sorted(loads) == [8, 10]
