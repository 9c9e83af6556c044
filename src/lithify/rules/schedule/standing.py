"""The standing of logs and topics, and which is the worst: a summary of the catalog (C28, C29, C31).

assessment of a log ───────┬─► waiting, clean
failure of its last round ─┴─► quarantined, overdue, failing, due

A topic stands as its worst log does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lithify.model.failure import LogFailure
from lithify.model.names import in_order
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.reports.overview import LogStanding, Standing, TopicOverview
from lithify.rules.schedule.assessment import Assessment, Due

RANKS = {standing: rank for rank, standing in enumerate(Standing)}
NEVER_MS = 2**63


def log_standing(state: LogState, assessment: Assessment, failure: LogFailure | None) -> LogStanding:
    """How one log stands."""
    verdict = assessment.verdict
    return LogStanding(
        partition=state.partition,
        standing=_standing(state, verdict, failure),
        why=verdict.reason,
        overdue_ms=verdict.overdue_ms,
        due_at_ms=verdict.due_at_ms,
        dirty_ratio=round(assessment.dirtiness.ratio, 4),
        failures=0 if failure is None else failure.failures,
        error=None if failure is None else failure.error,
        error_code=None if failure is None else failure.error_code,
    )


def topic_overview(state: TopicState, standings: Sequence[LogStanding]) -> TopicOverview:
    """The topic as its worst log stands; it has at least one."""
    worst = min(standings, key=_log_order)
    return TopicOverview(
        topic=str(state.name),
        state=worst.standing,
        partition=worst.partition,
        why=worst.why,
        overdue_ms=worst.overdue_ms,
        due_at_ms=worst.due_at_ms,
        dirty_ratio=worst.dirty_ratio if state.settings.compacts else None,
        failures=worst.failures,
        error=worst.error,
        error_code=worst.error_code,
        logs=len(state.logs),
        logs_in_state=sum(log.standing is worst.standing for log in standings),
        records=sum(log.volume.records for log in state.logs),
        bytes=sum(log.volume.size_bytes for log in state.logs),
    )


def worst_first(topics: Iterable[TopicOverview]) -> tuple[TopicOverview, ...]:
    """Worst standing first, then the most overdue, the soonest due and the dirtiest (C29)."""
    return tuple(
        sorted(
            topics,
            key=lambda t: (*_order(t.state, t.overdue_ms, t.due_at_ms, t.dirty_ratio or 0.0), in_order(t.topic)),
        )
    )


def _standing(state: LogState, verdict: Due, failure: LogFailure | None) -> Standing:
    if failure is not None and failure.quarantined:
        return Standing.QUARANTINED
    if verdict.overdue_ms > 0:
        return Standing.OVERDUE
    if failure is not None:
        return Standing.FAILING
    if verdict.due:
        return Standing.DUE
    if verdict.due_at_ms is not None or state.dirty.records > 0:
        return Standing.WAITING
    return Standing.CLEAN


def _log_order(log: LogStanding) -> tuple[int, int, int, float, int]:
    return (*_order(log.standing, log.overdue_ms, log.due_at_ms, log.dirty_ratio), log.partition)


def _order(standing: Standing, overdue_ms: int, due_at_ms: int | None, ratio: float) -> tuple[int, int, int, float]:
    soonest_ms = (NEVER_MS if due_at_ms is None else due_at_ms) if standing is Standing.WAITING else 0
    return RANKS[standing], -overdue_ms, soonest_ms, -ratio
