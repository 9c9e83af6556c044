"""The work that a topic requires, and when to look at it again (C28, C29, C31).

every log ─► due? ─► may it be tried?  ─► a round
              │            └─ no ─► when it may, or when a user releases it
              ├─ whole segments can go ─► retention, and a round only if the rest is due for one
              └─ not due ─► when the clock alone makes it due
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lithify.model.failure import LogFailure
from lithify.model.log import LogState, TopicState
from lithify.model.segment import Volume
from lithify.schedule.assessment import Assessment
from lithify.schedule.backoff import ALONE_AFTER, may_run

LAST_PRIORITY = (0, 0.0)


@dataclass(frozen=True, slots=True)
class RequiredWork:
    """The work that one topic requires."""

    rounds: tuple[int, ...] = ()
    """Partitions whose logs are due for a round and may be tried."""
    retains: bool = False
    """Whether whole segments can go without a round."""
    priority: tuple[int, float] = LAST_PRIORITY
    """Of its first log, as `Assessment.priority` sorts them."""
    overdue_ms: int = 0
    """How far the worst of them is past `max.compaction.lag.ms`."""
    volume: Volume = Volume()
    """Of the logs that are due for a round."""
    failing: bool = False
    """Whether one of them has failed more than once, and may fail those that share its job."""
    has_failed: bool = False
    """Whether failures are recorded, which a successful round clears."""
    look_at_ms: int | None = None
    """When to look again even without a commit; None is never."""


def required_work(
    state: TopicState, assessments: Mapping[int, Assessment], failures: Mapping[int, LogFailure], now_ms: int
) -> RequiredWork:
    """What to do for the topic at `now_ms`, whose logs are assessed as of then.

    A log without an assessment is one whose manifests cannot be read: it is failing.
    """
    rounds: list[LogState] = []
    retains = False
    look_at: list[int] = []
    order: list[tuple[int, float]] = []
    overdue_ms = 0
    for log in state.logs:
        assessment = assessments.get(log.partition)
        if assessment is None:
            look_at += [_tried_at_ms(failures[log.partition], now_ms)] if log.partition in failures else []
            continue
        verdict = assessment.verdict
        if not verdict.due:
            look_at += [] if verdict.due_at_ms is None else [verdict.due_at_ms]
            continue
        retains |= verdict.by_retention
        if not verdict.by_round:
            continue
        if may_run(failures.get(log.partition), now_ms):
            rounds.append(log)
            order.append(assessment.priority)
            overdue_ms = max(overdue_ms, verdict.overdue_ms)
        else:
            look_at.append(_tried_at_ms(failures[log.partition], now_ms))
    return RequiredWork(
        rounds=tuple(log.partition for log in rounds),
        retains=retains,
        priority=min(order, default=LAST_PRIORITY),
        overdue_ms=overdue_ms,
        volume=sum((log.volume for log in rounds), Volume()),
        failing=any(failures[log.partition].failures >= ALONE_AFTER for log in rounds if log.partition in failures),
        has_failed=bool(failures),
        look_at_ms=now_ms if rounds or retains else min(look_at, default=None),
    )


def _tried_at_ms(failure: LogFailure, now_ms: int) -> int:
    """When a failing log may be tried; a quarantined one is looked at each time, as a user may release it."""
    return now_ms if failure.quarantined else failure.retry_ms
