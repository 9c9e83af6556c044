"""The key pass of a run: divides its logs into tasks and combines these into one Spark job (C38).

logs with few ranges  ─► one task per range ─────────────────────────────────┐
logs with many        ─► one task per segment ─► shuffle ─► one task per range ─► union ─► results

A small key pass is one Spark task without a shuffle, whose results are all sent to the driver. For it, the setup of
a stage, a shuffle or a stored frame in Spark takes longer than the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession

from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass.key_comparison import KeyComparison
from lithify.columnar.keypass.key_scan import LogScan
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.segment.dead_records import ordinal_starts
from lithify.model.segment import Segment
from lithify.ports.engine import RunLimits
from lithify.rules.compaction.key_pass_shape import KeyPassShape, is_alone, keys_read, most_dead, winners_memory
from lithify.rules.compaction.planner import LogPlan
from lithify.spark.keypass.direct import RangeTask, direct_winners
from lithify.spark.keypass.shuffle import BlocksTask, SegmentTask, shuffled_winners
from lithify.spark.payloads import Unpacking
from lithify.spark.tasks import TaskPace, Workers, partitions, placed, placed_tasks, spread, task_frame

FULL_RECORDS = 1_000_000
"""Ranges and segments with fewer records share a Spark task."""

OPENING_COST_RECORDS = 20_000
"""Cost of opening a segment, as the number of keys that could be read in that time."""


@dataclass(frozen=True, slots=True)
class LogWork:
    """Log number `unit` of the run; `first_segment` is the number in the run of its first scanned segment."""

    unit: int
    first_segment: int
    plan: LogPlan
    shape: KeyPassShape

    @property
    def scan(self) -> LogScan:
        steps = tuple(step.end_offset for step in self.plan.base.steps)
        plan = self.plan
        return LogScan(plan.rules, plan.looked_at, plan.dirty, steps, plan.above_horizon, plan.chunks)

    @property
    def read(self) -> tuple[Segment, ...]:
        """Segments whose keys are read."""
        return self.plan.scanned + self.plan.above_horizon + self.plan.chunks

    @property
    def ranges(self) -> list[HashRange]:
        return [HashRange(index, self.shape.ranges) for index in range(self.shape.ranges)]


@dataclass(frozen=True, slots=True)
class KeyPassJob:
    """A lazy frame of `results.RESULT`, and the numbers of tasks of its two stages.

    The first number counts tasks that find winners, the second one tasks that shuffle keys to them.
    """

    results: DataFrame
    stages: tuple[int, ...]
    is_small: bool
    """Whether the dead positions, of `FULL_RECORDS` records at most, can come to the driver."""


def key_pass_job(session: SparkSession, workers: Workers, limits: RunLimits, logs: Sequence[LogWork]) -> KeyPassJob:
    """One job for all of `logs`, which are not empty. Does not run it."""
    direct = [log for log in logs if not log.shape.shuffled]
    shuffled = [log for log in logs if log.shape.shuffled]
    at_most = None if limits.read_rate_bytes is None else workers.slots
    range_costs = [_cost(log) for log in direct for _ in log.ranges]
    range_parts = spread(range_costs, FULL_RECORDS, workers.slots, at_most=at_most)
    segment_costs = [_cost_of(s) for log in shuffled for s in log.read]
    segment_parts = spread(segment_costs, FULL_RECORDS, workers.slots, at_most=at_most)
    readers = partitions(range_parts) + partitions(segment_parts)
    finder = WinnerFinder(winners_memory(limits.task_memory_bytes), workers.new_id())
    reading = _Reading(workers, finder, limits, workers.task_pace(limits, readers))
    unpack = Unpacking(workers.access)
    results = []
    finding = partitions(range_parts)
    if direct:
        tasks = task_frame(session, range_parts, [task for log in direct for task in reading.range_tasks(log)])
        results.append(direct_winners(placed_tasks(tasks, finding), unpack))
    if shuffled:
        senders: list[SegmentTask] = []
        finders: list[BlocksTask] = []
        for log in shuffled:
            senders += reading.segment_tasks(log, first_part=len(finders))
            finders += reading.blocks_tasks(log)
        sending = placed(task_frame(session, segment_parts, senders), partitions(segment_parts))
        ranges = task_frame(session, range(len(finders)), finders)
        results.append(shuffled_winners(sending, ranges, len(finders), unpack))
        finding += len(finders)
    found = reduce(lambda some, more: some.unionByName(more), results)
    is_small = not shuffled and sum(most_dead(log.plan) + _opening_cost(log) for log in direct) <= FULL_RECORDS
    return KeyPassJob(found, (finding, partitions(segment_parts)), is_small)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The values that all tasks of one key pass share."""

    workers: Workers
    finder: WinnerFinder
    limits: RunLimits
    pace: TaskPace

    def range_tasks(self, log: LogWork) -> list[RangeTask]:
        ahead, alone = log.shape.ahead, is_alone(log.plan)
        memory_bytes = winners_memory(self.limits.task_memory_bytes, alone=alone, ahead=ahead)
        finder = replace(self.finder, compare=partial(KeyComparison, ahead=ahead), memory_bytes=memory_bytes)
        return [
            RangeTask(
                unit=log.unit,
                first_segment=log.first_segment,
                access=self.workers.access,
                log=log.scan,
                hash_range=hash_range,
                finder=finder,
                pace=self.pace,
            )
            for hash_range in log.ranges
        ]

    def segment_tasks(self, log: LogWork, first_part: int) -> list[SegmentTask]:
        parts = tuple(range(first_part, first_part + log.shape.ranges))
        return [
            SegmentTask(
                unit=log.unit,
                segment=log.first_segment + index,
                access=self.workers.access,
                log=alone,
                portion=portion,
                parts=parts,
                finder=self.finder,
                pace=self.pace,
            )
            for index, (portion, alone) in enumerate(log.scan.pieces())
        ]

    def blocks_tasks(self, log: LogWork) -> list[BlocksTask]:
        starts = ordinal_starts(log.plan.scanned)
        return [
            BlocksTask(log.unit, log.first_segment, log.plan.rules, starts, hash_range, self.finder, self.pace)
            for hash_range in log.ranges
        ]


def _cost(log: LogWork) -> int:
    return keys_read(log.plan) + _opening_cost(log)


def _opening_cost(log: LogWork) -> int:
    return OPENING_COST_RECORDS * len(log.read)


def _cost_of(segment: Segment) -> int:
    return segment.records + OPENING_COST_RECORDS
