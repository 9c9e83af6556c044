"""The rewrite engine on Spark: one job for the key pass of all logs, another for all rewrites.

    open_round ─► find_survivors ─► counts collected by the driver, dead positions persisted in Spark, or few collected
                                         │
                  rewrite(...) ◄─────────┘   ─► facts of new segments; the positions are released

Uses only the DataFrame API, so that it runs on any session, including Spark Connect. A round without work
opens no session. The tasks keep rules C12, C38, C39 and C40. Commits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lithify.columnar.keypass.tally import log_findings
from lithify.columnar.segment.writer import SegmentSpec
from lithify.errors import EngineError, LithifyError
from lithify.model.names import LogId
from lithify.ports.engine import PlannedLog, Progress, Rewrites, Rewritten, RunLimits, Written
from lithify.ports.profile import SESSION, Profile, TaskSpent
from lithify.rules.compaction.decisions import AddMask, CountedSegment, Rewrite
from lithify.rules.compaction.key_pass_shape import key_pass_shapes
from lithify.rules.compaction.outcome import LogFindings
from lithify.rules.compaction.planner import LogPlan
from lithify.spark.keypass.job import LogWork, key_pass_job
from lithify.spark.keypass.results import Counts, collect_all, collect_counts
from lithify.spark.rewrite_job import MaskTask, RewriteTask, SourceTask, WriteTask, collect_outcomes, rewritten
from lithify.spark.session.ended_session import JVM_GONE
from lithify.spark.session.job_progress import Watch, watched
from lithify.spark.tasks import TaskPace, Workers, job_errors, partitions, spread

FULL_BYTES = 16 * 2**20
"""Rewrites of fewer bytes share a Spark task."""
LEAST_BYTES = 4 * 2**20
"""While slots are idle, they share one only below this."""
RECORDS_PER_BYTE = 4
"""Of a segment that gets a mask, which take as long as one byte of a rewrite."""


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Runs rounds; calls `session` when a round first needs a Spark session."""

    session: Callable[[], SparkSession]
    workers: Workers
    profile: Profile | None = None
    """Gets what tasks take, which measure it if `workers` has gauges."""

    @contextmanager
    def open_round(
        self, logs: Sequence[PlannedLog], limits: RunLimits, run_id: str, progress: Progress
    ) -> Iterator[SparkRound]:
        """See `ports.engine.RewriteEngine`. Starts no job."""
        round_ = SparkRound(self, Job(tuple(logs), limits, run_id, progress))
        try:
            yield round_
        finally:
            round_.close()


@dataclass(frozen=True, slots=True)
class Job:
    """The input of a round. Tasks identify a log by its index in `logs`."""

    logs: tuple[PlannedLog, ...]
    limits: RunLimits
    run_id: str
    progress: Progress

    @property
    def plans(self) -> tuple[LogPlan, ...]:
        return tuple(log.plan for log in self.logs)


class SparkRound:
    """A running round; see `ports.engine.Round`. Keeps the dead positions, in Spark or few here, until it is closed."""

    def __init__(self, engine: SparkEngine, job: Job) -> None:
        self._engine = engine
        self._job = job
        scanned = (segment for plan in job.plans for segment in plan.scanned)
        self._numbers = {segment.id: number for number, segment in enumerate(scanned)}
        self._dead: DataFrame | pa.Table | None = None

    def find_survivors(self) -> Mapping[LogId, LogFindings | LithifyError]:
        """Runs the key pass. Raises `EngineError` if the whole job fails."""
        logs = self._logs()
        counts = Counts({}, {})
        if logs:
            with nullcontext() if self._engine.profile is None else self._engine.profile.phase(SESSION):
                session = self._engine.session()
            read_bytes = sum(log.plan.key_bytes * log.shape.reads for log in logs)
            with job_errors():
                job = key_pass_job(session, self._engine.workers, self._job.limits, logs)
                with watched(session, self._watch("key_pass", job.stages, read_bytes)):
                    if job.is_small:
                        counts, self._dead = collect_all(job.results)
                    else:
                        self._dead = job.results.persist()
                        counts = collect_counts(self._dead)
        for unit, spent in counts.spent:
            self._tell(self._job.logs[unit], spent)
        return {log.id: self._findings(unit, log.plan, counts) for unit, log in enumerate(self._job.logs)}

    def rewrite(self, rewrites: Rewrites) -> Written:
        """See `ports.engine.Round`. Raises `EngineError` if the whole job fails."""
        every = [(log, one) for log in self._job.logs for one in rewrites.get(log.id, ())]
        written = iter(self._rewritten(every))
        return {log.id: tuple(next(written) for _ in rewrites[log.id]) for log in self._job.logs if log.id in rewrites}

    def _rewritten(self, every: Sequence[tuple[PlannedLog, Rewrite | AddMask]]) -> Sequence[Rewritten | LithifyError]:
        """The outcome of each rewrite, in order; all run in one job."""
        if not every:
            return ()
        costs = [_cost(one) for _, one in every]
        parts = self._spread(costs)
        pace = self._engine.workers.task_pace(self._job.limits, partitions(parts))
        tasks = [self._task(number, log, one, pace) for number, (log, one) in enumerate(every)]
        session = self._engine.session()
        watch = self._watch("rewrite", (partitions(parts),), sum(costs))
        with job_errors(), watched(session, watch):
            outcomes, spent = collect_outcomes(rewritten(session, tasks, parts, self._dead))
        if sorted(outcomes) != list(range(len(every))):
            raise EngineError(f"{len(every)} rewrites were started, but {len(outcomes)} returned")
        for task in spent:
            self._tell(every[task.part][0], task)
        return tuple(outcomes[number] for number in range(len(every)))

    def close(self) -> None:
        """Releases the dead positions."""
        if self._dead is not None and not isinstance(self._dead, pa.Table):
            # If Spark has ended, they are gone; that must not hide the outcome of the round.
            with suppress(PySparkException, *JVM_GONE):
                self._dead.unpersist()
        self._dead = None

    def _logs(self) -> list[LogWork]:
        workers, memory_bytes = self._engine.workers, self._job.limits.task_memory_bytes
        one_machine = workers.one_machine
        shapes = key_pass_shapes(self._job.plans, memory_bytes, workers.slots, one_machine=one_machine)
        return [
            LogWork(unit, self._numbers[plan.scanned[0].id], plan, shape)
            for unit, (plan, shape) in enumerate(zip(self._job.plans, shapes, strict=True))
            if plan.scanned
        ]

    def _findings(self, unit: int, plan: LogPlan, counts: Counts) -> LogFindings | LithifyError:
        changes = {s.path: counts.changes.get(self._numbers[s.id], 0) for s in plan.scanned}
        return log_findings(plan, counts.tallies.get(unit, ()), changes)

    def _spread(self, costs: Sequence[int]) -> list[int]:
        """The Spark partition of each rewrite, by their costs.

        With a rate limit there are at most as many partitions as slots, so that all tasks together keep to it
        however many the cluster runs at once (C40).
        """
        limits = self._job.limits
        limited = limits.read_rate_bytes is not None or limits.write_rate_bytes is not None
        slots = self._engine.workers.slots
        return spread(costs, FULL_BYTES, slots, least=LEAST_BYTES, at_most=slots if limited else None)

    def _task(self, number: int, log: PlannedLog, one: Rewrite | AddMask, pace: TaskPace) -> WriteTask:
        spec, access = SegmentSpec.of(log.topic, one.partition, self._job.run_id), self._engine.workers.access
        match one:
            case AddMask(source):
                return MaskTask(number, access, spec, self._source(source), pace)
            case Rewrite(sources):
                return RewriteTask(number, access, spec, tuple(map(self._source, sources)), pace)
            case _:
                assert_never(one)

    def _source(self, counted: CountedSegment) -> SourceTask:
        number = self._numbers.get(counted.segment.id) if counted.has_losers else None
        return SourceTask(counted.segment, counted.survivors, number)

    def _tell(self, log: PlannedLog, spent: TaskSpent) -> None:
        if self._engine.profile is not None:
            self._engine.profile.task(log.id, spent)

    def _watch(self, phase: str, stages: tuple[int, ...], size_bytes: int) -> Watch:
        return Watch(f"{self._job.run_id}-{phase}", phase, stages, size_bytes, self._job.progress)


def _cost(one: Rewrite | AddMask) -> int:
    """Bytes to read; to find the places in a file that a mask names takes as long as reading some."""
    match one:
        case AddMask(source):
            return source.segment.mask_bytes + source.segment.records_in_file // RECORDS_PER_BYTE
        case Rewrite():
            return sum(segment.size_bytes for segment in one.segments)
        case _:
            assert_never(one)
