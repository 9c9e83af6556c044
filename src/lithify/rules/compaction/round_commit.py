"""Whether a round that was planned on one version may commit on a newer one (C44), and the log's state then.

LogOutcome ─┬─► conflict, late append or deletion: plan again
newest ─────┘   else ─► LogState: the round laid over the newest version, appends of the meantime included
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.model.log_arithmetic import last_readable, measured, view_of
from lithify.model.missed import DroppedDeletes, Undone
from lithify.model.segment import Segment
from lithify.model.settings.table import ByColumn
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import HeldTombstones, LastRecord, LogState, View
from lithify.rules.compaction.eligible.required import stored_deletion
from lithify.rules.compaction.key_bounds import key_bounds_of
from lithify.rules.compaction.outcome import LogOutcome
from lithify.rules.compaction.planner import LogPlan
from lithify.rules.compaction.survivor_rules import Cause
from lithify.rules.compaction.tombstones import Drops, Steps, folded, held_at_most_ms, with_drop, with_round

LATE_APPEND = "records were appended that an expired tombstone may beat"
"""Why a round is planned again that no other commit invalidates: it would drop that tombstone (C20)."""
LATE_DELETION = "records were deleted that may have superseded later ones"
"""Why a round is planned again: it would drop the later ones, which are the latest of their keys now (C10, C26)."""


def conflict(
    plan: LogPlan, current: LogState, commits: int, segments: tuple[Segment, ...], view: tuple[Segment, ...] = ()
) -> str | None:
    """Why the round must be planned again, or None if it may commit.

    `current`, `segments` and `view` are the newest of the same log, under the same table identity and settings.
    `commits` is the number of versions since the planned one. Every commit that invalidates the round has raised the
    epoch; an append or `delete-records` does not raise it. The other checks give a more precise reason, and cover
    commits of a Lithify without epochs.
    """
    if current.generation != plan.base.generation:
        return "the log was truncated"
    if _went_back(plan.base, current, commits):
        return "an earlier version was restored, and written to"
    if current.first_dirty_offset != plan.base.first_dirty_offset and not _start_moved(plan, current):
        return "another round was committed"
    if plan.view is not None and [s.id for s in plan.view] != [s.id for s in view]:
        return "the compacted view was changed"
    here = {segment.id for segment in segments}
    there = here | {segment.id for segment in view}
    missing = [s.path for s in plan.gone if s.id not in here] + [s.path for s in plan.sources if s.id not in there]
    gone = next(iter(missing), None)
    if gone is not None:
        return f"a segment was replaced in the meantime: {gone}"
    if current.epoch != plan.base.epoch:
        return "a round was committed or undone, or the log was cut or altered"
    return None


def late_append(outcome: LogOutcome, segments: tuple[Segment, ...]) -> str | None:
    """Why the round must be planned again although nothing conflicts with it, or None if it may commit.

    It has not seen the records that were appended since it was planned, so under C10 it may drop a tombstone that
    beats one of them (C20). The metadata of `segments`, the newest of the same log, shows whether it may.
    """
    rules, end = outcome.plan.rules, outcome.plan.base.log_end_offset
    appended = [segment for segment in segments if segment.end_offset > end]
    if not (rules.is_ordered and appended and outcome.deletes_dropped_below):
        return None
    if rules.order == ByColumn("timestamp"):  # of equal timestamps the later offset wins
        newest_ms = max(segment.max_timestamp_ms for segment in outcome.had_expired_deletes)
        appended = [s for s in appended if s.min_timestamp_ms < newest_ms or s.sealed]
    keys = key_bounds_of(outcome.had_expired_deletes)
    # Bounds do not include the keys of what was passed through (C53).
    return LATE_APPEND if any(s.passed_through or keys.may_meet(s) for s in appended) else None


def late_deletion(outcome: LogOutcome, current: LogState) -> str | None:
    """Why the round must be planned again after `delete-records`, or None if it may commit.

    By offset only later records supersede, which are still there; under C10 those below the new start may have.
    """
    plan, left = outcome.plan, outcome.findings.survivors
    start = current.log_start_offset if plan.view is None else current.deleted_below
    superseded = outcome.findings.losers.get(Cause.SUPERSEDED)
    if not (plan.rules.is_ordered and start > plan.rules.log_start and superseded):
        return None
    return LATE_DELETION if any(s.end_offset > start and left[s.path] < s.records for s in plan.scanned) else None


def _went_back(planned: LogState, current: LogState, commits: int) -> bool:
    """Whether `current` has not come from `planned` by commits: its catalog was restored, and counts on from there.

    Commits raise S and, without a truncation, E. Each leaves its run, of which a log remembers the latest.
    """
    if commits < 1 or any(current.lacks_run(run_id, commits) for run_id in planned.run_ids[-1:]):
        return True
    return current.log_end_offset < planned.log_end_offset or current.log_start_offset < planned.log_start_offset


def _start_moved(plan: LogPlan, current: LogState) -> bool:
    """`delete-records` moves S, and D with it where it overtakes it (C26): no conflict."""
    moved = current.log_start_offset > plan.base.log_start_offset
    return moved and current.first_dirty_offset == max(current.log_start_offset, plan.base.first_dirty_offset)


@dataclass(frozen=True, slots=True)
class After:
    """What is read from the newest version when a round is applied to it.

    `segments` are the log's after the commit, including later appends; the last records are the log's and
    the view's.
    """

    segments: tuple[Segment, ...]
    last_record: LastRecord | None
    view_last_record: LastRecord | None = None


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """By when a round judges, as its clock said, or `--now`, and what its commit is dated by."""

    now_ms: int
    """The earlier of what the clock said at its plan and at its commit: it may have been set in between."""
    dated_ms: int
    """Not earlier than the commits before it (C18): the clock may be behind theirs."""


def state_after(
    outcome: LogOutcome, current: LogState, after: After, settings: TopicSettings, *, run_id: str, times: RoundTimes
) -> LogState:
    """The state of a log once `outcome` is laid over `current`, the newest state."""
    plan = outcome.plan
    log_start = max(current.log_start_offset, plan.log_start)
    view = None if plan.view is None else _view_after(outcome, current, after.view_last_record)
    moved = replace(
        current,
        log_start_offset=log_start,
        first_dirty_offset=max(plan.horizon.offset, log_start),
        steps=steps_after(outcome, settings, times),
        last_record=last_readable(after.last_record, log_start),
        last_round_ms=times.dated_ms,
        last_round=run_id,
        losers_removed=current.losers_removed or (view is None and outcome.removes_losers),
        uncovered=False,
        held=_held_after(outcome),
        aged_before_ms=plan.rules.values_expire_before_ms,
        view=view,
        dropped=_drops_after(outcome, current),
        undone=_undone_after(plan, current.undone),
    )
    # What was deleted while the round went on, or lies above its horizon, requires another one (C26).
    reason = stored_deletion(moved, () if plan.keeps_log else after.segments, outcome.result)
    return measured(replace(moved, round_required=reason), after.segments)


def steps_after(outcome: LogOutcome, settings: TopicSettings, times: RoundTimes) -> Steps:
    """The tombstone steps after the round, its own included, folded (C18, C19).

    Folded by the clock that rounds judge by: if steps became one before it says that they have expired, that one would
    become later with each round, and its tombstones would never be removed.
    """
    plan, findings = outcome.plan, outcome.findings
    lost = findings.clean_tombstones_lost or (0,) * len(plan.base.steps)
    steps = tuple(
        replace(step, tombstones=step.tombstones - gone) for step, gone in zip(plan.base.steps, lost, strict=True)
    )
    if plan.expires_tombstones:
        steps = _counted_anew(steps, plan.rules.tombstones_expire_below, findings.clean_tombstones_held)
    if plan.moves:
        kept = findings.dirty_tombstones_kept
        steps = with_round(steps, horizon=plan.horizon.offset, now_ms=times.dated_ms, tombstones=kept)
    # Where the log start has moved since the plan, what is below it is still there, and counted.
    return folded(steps, log_start=plan.rules.log_start, held_ms=held_at_most_ms(settings), now_ms=times.now_ms)


def _counted_anew(steps: Steps, expire_below: int, left: int) -> Steps:
    """The steps that have expired. Every tombstone of them was read: exactly `left` are left."""
    expired = [index for index, step in enumerate(steps) if step.end_offset <= expire_below]
    last = expired[-1] if expired else None
    return tuple(
        replace(step, tombstones=left if index == last else 0) if index in expired else step
        for index, step in enumerate(steps)
    )


def _held_after(outcome: LogOutcome) -> HeldTombstones | None:
    """What is held, reaching over steps that have expired since and count nothing: they become one with its own."""
    held, expire_below = outcome.held, outcome.plan.rules.tombstones_expire_below
    return held and replace(held, below=max(held.below, expire_below))


def _drops_after(outcome: LogOutcome, current: LogState) -> Drops:
    below = outcome.deletes_dropped_below
    if below == 0:
        return current.dropped
    return with_drop(current.dropped, DroppedDeletes(current.next_epoch, below, outcome.plan.view is not None))


def _undone_after(plan: LogPlan, undone: Undone | None) -> Undone | None:
    """None if readers could pass the same values after this round as after those that were undone."""
    if undone is None or (undone.below <= plan.horizon.offset and (undone.of_view or plan.view is None)):
        return None
    return undone


def _view_after(outcome: LogOutcome, current: LogState, last_record: LastRecord | None) -> View:
    """The view that a round leaves; it covers the log from where the first round began (C37)."""
    base, before = outcome.plan.base, current.view
    start = base.log_start_offset if base.view is None else base.view.start_offset
    lacks = outcome.removes_losers or (before is not None and before.losers_removed)
    return view_of(outcome.result, last_record, start, losers_removed=lacks)
