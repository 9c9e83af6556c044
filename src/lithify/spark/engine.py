"""The rewrite engine on Spark: the key pass of all logs in one job, the rewrite in another.

    open_round ─► find_survivors ─► counts to the driver, marks persisted in Spark
                                         │
                  rewrite(groups) ◄──────┘   ─► facts of new segments; the marks are let go

DataFrame API only, so that it runs on any session, Spark Connect included. A round without work
asks for no session. Rules C12, C38, C39 and C40 are kept in the tasks; nothing is committed here.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from lithify.columnar.access import FileAccess
from lithify.columnar.segment_file import SegmentSpec
from lithify.columnar.winners import HashRange
from lithify.compaction.groups import RewriteGroup, SegmentOutcome
from lithify.compaction.outcome import LogFindings
from lithify.compaction.planner import LogPlan
from lithify.errors import EngineError, LithifyError
from lithify.model.log import TopicState
from lithify.ports import Progress, RewrittenGroup, RunLimits
from lithify.spark.findings import log_findings
from lithify.spark.key_pass import RESULT_DDL, Counts, RangeTask, collect_counts, run_ranges, scan_of
from lithify.spark.progress import watched
from lithify.spark.rewrite import GROUP, OUTCOME, GroupTask, SourceTask, rewritten
from lithify.spark.sizing import KeyPassShape, key_pass_shape, packed, winners_memory
from lithify.spark.tasks import PAYLOAD, Pace, columns, job_errors, placed, share_of, task_frame

FULL_RECORDS = 1_000_000
"""Logs and ranges with fewer records share a task of the key pass."""

FULL_BYTES = 16 * 2**20
"""Groups with fewer bytes share a task of the rewrite."""

OPENING_COST_RECORDS = 20_000
"""Opening a segment takes about as long as reading so many keys."""


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Rounds on the session that `session` gives when a round first needs one.

    `slots` is how many tasks can run at once, `pace` the time that throttles in tasks go by.
    """

    session: Callable[[], SparkSession]
    access: FileAccess
    slots: int
    pace: Pace

    @contextmanager
    def open_round(
        self, state: TopicState, plans: Sequence[LogPlan], limits: RunLimits, run_id: str, progress: Progress
    ) -> Iterator[SparkRound]:
        """See `ports.RewriteEngine`. Starts nothing yet."""
        round_ = SparkRound(self, Run(state, tuple(plans), limits, run_id, progress))
        try:
            yield round_
        finally:
            round_.close()

    def key_ranges(self, plans: Sequence[LogPlan], limits: RunLimits) -> Mapping[int, int]:
        """See `ports.RewriteEngine`."""
        return {plan.partition: shape.reads for plan, shape in zip(plans, self.shapes(plans, limits), strict=True)}

    def shapes(self, plans: Sequence[LogPlan], limits: RunLimits) -> tuple[KeyPassShape, ...]:
        """How the key pass of each log is cut."""
        logs = sum(1 for plan in plans if plan.scanned)
        return tuple(
            key_pass_shape(plan, task_memory_bytes=limits.task_memory_bytes, slots=self.slots, logs=logs)
            for plan in plans
        )


@dataclass(frozen=True, slots=True)
class Run:
    """What a round was asked to do."""

    state: TopicState
    plans: tuple[LogPlan, ...]
    limits: RunLimits
    run_id: str
    progress: Progress


class SparkRound:
    """One round under way; see `ports.Round`. Holds on to the marks until it is closed."""

    def __init__(self, engine: SparkEngine, run: Run) -> None:
        self._engine = engine
        self._run = run
        scanned = (segment for plan in run.plans for segment in plan.scanned)
        self._numbers = {segment.path: number for number, segment in enumerate(scanned)}
        self._dirty = {segment.path for plan in run.plans for segment in plan.dirty}
        self._marks: DataFrame | None = None

    def find_survivors(self) -> Mapping[int, LogFindings | LithifyError]:
        """The key pass. Raises `EngineError` if the job as a whole fails."""
        tasks = self._range_tasks()
        counts = Counts({}, {})
        if tasks:
            parts, rate = self._spread([_cost(task) for task in tasks], FULL_RECORDS, self._run.limits.read_rate_bytes)
            session = self._engine.session()
            with job_errors(), self._watched(session, "key_pass", parts):
                work = task_frame(session, parts, [replace(task, read_rate_bytes=rate) for task in tasks])
                self._marks = placed(work, parts).select(PAYLOAD).mapInArrow(run_ranges, RESULT_DDL).persist()
                counts = collect_counts(self._marks)
        return {plan.partition: self._findings(unit, plan, counts) for unit, plan in enumerate(self._run.plans)}

    def rewrite(self, groups: Sequence[RewriteGroup]) -> tuple[RewrittenGroup | LithifyError, ...]:
        """See `ports.Round`. Raises `EngineError` if the job as a whole fails."""
        if not groups:
            return ()
        limits = self._run.limits
        costs = [sum(source.segment.size_bytes for source in group.sources) for group in groups]
        parts, read_rate = self._spread(costs, FULL_BYTES, limits.read_rate_bytes, limits.write_rate_bytes)
        write_rate = share_of(limits.write_rate_bytes, max(parts) + 1)
        tasks = [self._group_task(number, group, read_rate, write_rate) for number, group in enumerate(groups)]
        session = self._engine.session()
        with job_errors(), self._watched(session, "rewrite", parts):
            rows = rewritten(session, tasks, parts, self._marks).toArrow()
        outcomes = {group: pickle.loads(outcome) for group, outcome in columns(iter(rows.to_batches()), GROUP, OUTCOME)}
        if len(outcomes) != len(groups):
            raise EngineError(f"{len(groups)} groups were to be rewritten, {len(outcomes)} came back")
        return tuple(outcomes[number] for number in range(len(groups)))

    def close(self) -> None:
        """Lets the marks go."""
        if self._marks is not None:
            self._marks.unpersist()
            self._marks = None

    def _range_tasks(self) -> list[RangeTask]:
        run, engine = self._run, self._engine
        tasks = []
        for unit, (plan, shape) in enumerate(zip(run.plans, engine.shapes(run.plans, run.limits), strict=True)):
            tasks += [
                RangeTask(
                    unit=unit,
                    first_segment=self._numbers[plan.scanned[0].path],
                    access=engine.access,
                    log=scan_of(plan),
                    hash_range=HashRange(index, shape.ranges),
                    memory_bytes=winners_memory(run.limits.task_memory_bytes),
                    read_rate_bytes=None,
                    pace=engine.pace,
                )
                for index in range(shape.ranges if plan.scanned else 0)
            ]
        return tasks

    def _group_task(
        self, number: int, group: RewriteGroup, read_rate: float | None, write_rate: float | None
    ) -> GroupTask:
        settings = self._run.state.settings
        return GroupTask(
            group=number,
            access=self._engine.access,
            spec=SegmentSpec(
                location=self._run.state.location,
                run_id=self._run.run_id,
                partition=group.partition,
                segment_bytes=settings.segment_bytes,
                compression=settings.compression_type,
            ),
            sources=tuple(self._source(outcome) for outcome in group.sources),
            read_rate_bytes=read_rate,
            write_rate_bytes=write_rate,
            pace=self._engine.pace,
        )

    def _source(self, outcome: SegmentOutcome) -> SourceTask:
        path = outcome.segment.path
        dirty = path in self._dirty
        number = self._numbers.get(path) if dirty or outcome.has_losers else None
        return SourceTask(outcome.segment, outcome.survivors, number, marks_losers=not dirty)

    def _findings(self, unit: int, plan: LogPlan, counts: Counts) -> LogFindings | LithifyError:
        marked = {s.path: counts.marked.get(self._numbers[s.path], 0) for s in plan.scanned}
        return log_findings(plan, counts.tallies.get(unit, ()), marked)

    def _spread(self, costs: Sequence[int], full: int, *rates: int | None) -> tuple[list[int], float | None]:
        """The Spark partition of each task, and the first of the rates for each of them.

        Under a rate there are no more partitions than slots, so that however many tasks the
        cluster would run at once, together they keep to the rate (C40).
        """
        limited = any(rate is not None for rate in rates)
        parts = packed(costs, full=full, at_most=self._engine.slots if limited else None)
        return parts, share_of(rates[0], max(parts) + 1)

    def _watched(self, session: SparkSession, phase: str, parts: Sequence[int]) -> AbstractContextManager[None]:
        run = self._run
        return watched(session, f"{run.run_id}-{phase}", phase, max(parts) + 1, run.progress)


def _cost(task: RangeTask) -> int:
    return sum(segment.records + OPENING_COST_RECORDS for segment in task.log.segments)
