"""Commits a round: all its logs in one swap, except those that other commits changed meanwhile (C44).

planned on version 7          newest is 9
log 0: D 40, files a b        log 0: D 40, files a b x    commits (x was appended)
log 1: D 10, files c d        log 1: D 55, files e        left out, to be planned again
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lithify.errors import ConflictError
from lithify.model.segment import Segment, by_partition, segments_of, without
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.rounds.round import RoundReport
from lithify.rules.compaction.outcome import LogOutcome
from lithify.rules.compaction.planner import LogPlan
from lithify.rules.compaction.round_commit import After, RoundTimes, conflict, late_append, late_deletion, state_after
from lithify.service.clock_check import check_clock
from lithify.service.commit import commit
from lithify.service.documents import put_report
from lithify.service.last_record import last_record

MakeReport = Callable[[int, tuple[int, ...]], RoundReport]
"""Given the version and the partitions that it changes: the report to store with it."""

Logs = Mapping[int, tuple[Segment, ...]]
"""By partition, the segments of a log, of logs that have any."""


@dataclass(frozen=True, slots=True)
class PlannedAt:
    """Of which version, and at what time, epoch ms, plans were made. `is_given`: `--now` gave the time."""

    version: TopicState
    now_ms: int
    is_given: bool


@dataclass(frozen=True, slots=True)
class CommittedRound:
    """The newest version, the partitions committed, and the logs left out, with the reason, to be planned again."""

    state: TopicState
    committed: tuple[int, ...]
    left_out: Mapping[int, str] = field(default_factory=dict)


def commit_round(
    warehouse: Warehouse,
    planned: PlannedAt,
    outcomes: Mapping[int, LogOutcome],
    *,
    run_id: str,
    make_report: MakeReport,
) -> CommittedRound:
    """Commits what can be committed of `outcomes`. Raises what `commit` raises, or `ClockError`.

    Without `--now` the clock is read just before the swap, since tombstones age from the commit on (C18). If it is
    behind the times of earlier commits, the commit gets their time.
    """
    planned_on = planned.version
    left_out: dict[int, str] = {}

    def decide(newest: TopicState) -> TopicEdit | None:
        left_out.clear()
        plans = {p: outcome.plan for p, outcome in outcomes.items()}
        segments = _segments_of(warehouse, planned_on, newest, plans)
        conflicts = _conflicts(warehouse, planned_on, newest, plans, segments)
        left_out.update(_late(newest, outcomes, segments) | conflicts)
        good = {p: outcome for p, outcome in outcomes.items() if p not in left_out}
        if not good:
            return None
        commit_ms = warehouse.clock.now_ms()
        if not planned.is_given:
            check_clock(warehouse.clock, newest, commit_ms)  # it may have leapt since the plan (C46)
        times = _times(newest, commit_ms, planned)
        put_report(warehouse.store, newest, run_id, make_report(newest.version + 1, tuple(good)))
        results = good.values()
        return TopicEdit(
            run_id=run_id,
            time_ms=commit_ms,  # retention of replaced files counts from the commit, whatever --now says (C7)
            logs={p: _new_state(warehouse, newest, segments.get(p, ()), o, run_id, times) for p, o in good.items()},
            add=tuple(segment for outcome in results for segment in outcome.added),
            remove=tuple(segment for outcome in results for segment in outcome.removed),
            view_add=tuple(segment for outcome in results for segment in outcome.view_added),
            view_remove=tuple(segment for outcome in results for segment in outcome.view_removed),
            report_id=run_id,
            verb=Verb.COMPACT,
            written=tuple(segment for outcome in results for segment in outcome.written),
        )

    state = commit(warehouse, planned_on.name, run_id, decide)
    return CommittedRound(state, tuple(p for p in outcomes if p not in left_out), dict(left_out))


def overtaken(
    warehouse: Warehouse, planned_on: TopicState, plans: Mapping[int, LogPlan]
) -> tuple[TopicState, dict[int, str]]:
    """The newest version, and by partition why the round of a log cannot be committed on it any more.

    Raises what `load` and `segments` raise, or `ConflictError` if the topic was recreated.
    """
    newest = warehouse.store.load(planned_on.name)
    segments = by_partition(warehouse.store.segments(newest, [p for p in plans if p in newest.partitions]))
    return newest, _conflicts(warehouse, planned_on, newest, plans, segments)


def _segments_of(
    warehouse: Warehouse, planned_on: TopicState, newest: TopicState, plans: Mapping[int, LogPlan]
) -> Logs:
    """The newest segments of the planned logs: without a commit in the meantime, those that the plans have."""
    if newest == planned_on:
        return {partition: plan.segments for partition, plan in plans.items()}
    return by_partition(warehouse.store.segments(newest, list(plans)))


def _conflicts(
    warehouse: Warehouse,
    planned_on: TopicState,
    newest: TopicState,
    plans: Mapping[int, LogPlan],
    segments: Logs,
) -> dict[int, str]:
    """By partition, why the round of a log cannot be committed on the newest version."""
    if newest.identity != planned_on.identity:
        raise ConflictError(f"{newest.name}: the topic was deleted and recreated during the round")
    if newest.settings != planned_on.settings:
        return dict.fromkeys(plans, "a setting was changed")
    if newest == planned_on:  # its version's number alone would not do: a restored catalog counts on from an older one
        return {}
    view = by_partition(warehouse.store.view(newest, list(plans)) if newest.settings.side_by_side else ())
    commits = newest.version - planned_on.version
    reasons = {
        p: conflict(plan, newest.log(p), commits, segments.get(p, ()), view.get(p, ())) for p, plan in plans.items()
    }
    return {partition: reason for partition, reason in reasons.items() if reason is not None}


def _late(newest: TopicState, outcomes: Mapping[int, LogOutcome], segments: Logs) -> dict[int, str]:
    """By partition, why a log is planned again for records that were appended or deleted since."""
    reasons = {
        p: late_append(outcome, segments.get(p, ())) or late_deletion(outcome, newest.log(p))
        for p, outcome in outcomes.items()
    }
    return {partition: reason for partition, reason in reasons.items() if reason is not None}


def _times(newest: TopicState, commit_ms: int, planned: PlannedAt) -> RoundTimes:
    if planned.is_given:
        return RoundTimes(planned.now_ms, planned.now_ms)
    return RoundTimes(min(planned.now_ms, commit_ms), max(commit_ms, newest.clock_ms or 0))


def _new_state(
    warehouse: Warehouse,
    newest: TopicState,
    segments: tuple[Segment, ...],
    outcome: LogOutcome,
    run_id: str,
    times: RoundTimes,
) -> LogState:
    """The state of one log with the round; `segments` are its own in the newest version."""
    partition = outcome.plan.partition
    current = newest.log(partition)
    left = segments_of((*without(segments, outcome.removed), *outcome.added), partition)
    after = After(left, last_record(warehouse, left, current.last_record))
    if outcome.plan.view is not None:
        known = None if current.view is None else current.view.last_record
        known = current.last_record if known is None else known
        after = replace(after, view_last_record=last_record(warehouse, outcome.result, known))
    return state_after(outcome, current, after, newest.settings, run_id=run_id, times=times)
