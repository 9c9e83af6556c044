"""A round of one topic: `compact`, and its plan (C30)."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.compaction.planner import LogPlan
from lithify.errors import LithifyError
from lithify.model.log import TopicState
from lithify.model.names import TopicName
from lithify.ports.engine import Progress, RewriteEngine, RunLimits
from lithify.ports.store import Warehouse
from lithify.reports.round import RoundReport
from lithify.service.round.planning import plan_rounds
from lithify.service.round.run import Run, run_rounds, silent


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What was asked for. `now_ms` judges lags and expiry; None is the clock."""

    partitions: tuple[int, ...] | None = None
    now_ms: int | None = None
    limits: RunLimits = RunLimits()


def plan_run(warehouse: Warehouse, state: TopicState, request: RunRequest) -> tuple[LogPlan, ...]:
    """The rounds that a run would do now. Raises what `plan_rounds` does."""
    now_ms = warehouse.clock.now_ms() if request.now_ms is None else request.now_ms
    return plan_rounds(warehouse, state, request.partitions, now_ms)


def compact(
    warehouse: Warehouse,
    engine: RewriteEngine,
    name: TopicName,
    request: RunRequest,
    progress: Progress = silent,
) -> RoundReport:
    """One round now over the logs of a topic, whatever their dirty ratio (C30).

    A log that fails has an `error` in the report. Raises `UnknownTopicError`, `PolicyError`, or
    `UnknownOutcomeError` if the answer to the commit was lost for good.
    """
    run = Run(warehouse, engine, request.limits, request.now_ms, progress)
    result = run_rounds(run, {name: request.partitions})[name]
    if isinstance(result, LithifyError):
        raise result
    return result.report
