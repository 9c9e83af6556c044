"""What a round found and wrote, and the log state that follows from it.

    plan ─► findings (key pass) ─► decisions ─► applied (new segments) ─► LogOutcome ─► LogState

All numbers are per segment or per log: nothing here grows with records or keys (C38).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from lithify.compaction.decisions import CountedSegment, Decision, Drop, Keep, Rewrite, decide, segments_of
from lithify.compaction.eligible.required import stored_deletion
from lithify.compaction.planner import LogPlan
from lithify.compaction.rules import Cause
from lithify.compaction.tombstones import Drops, Steps, folded, with_drop, with_round
from lithify.model.log import DroppedDeletes, HeldTombstones, LastRecord, LogState
from lithify.model.log_arithmetic import last_readable, measured, view_of
from lithify.model.segment import Segment, without
from lithify.model.settings.topic_settings import TopicSettings


@dataclass(frozen=True, slots=True)
class LogFindings:
    """What the key pass counted in the segments that it looked at."""

    survivors: Mapping[str, int]
    """By path of every scanned segment: how many of its records stay."""
    losers: Mapping[Cause, int]
    keyless_kept: int = 0
    keyless_expired: int = 0
    """Of the losers past retention, those without a key."""
    dirty_tombstones: int = 0
    """Tombstones with a key in the dirty part, at or above the log start."""
    dirty_tombstones_kept: int = 0
    clean_tombstones_lost: tuple[int, ...] = ()
    """By tombstone step of the state that was planned on: tombstones with a key that go from the clean
    part, whatever the cause. Below the log start they count as well, since their step counts them."""
    clean_tombstones_held: int = 0
    """Expired tombstones of the clean part that have to stay (C20); such a one of the dirty part is kept."""
    tombstones_held: int = 0
    """Those of both parts."""
    tombstones_unversioned: int = 0
    """Tombstones without an order in their headers that lost (C11)."""
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class Applied:
    """A decision and the segments that are there now, in offset order."""

    decision: Decision
    segments: tuple[Segment, ...]


def decisions_of(plan: LogPlan, findings: LogFindings) -> tuple[Decision, ...]:
    """What becomes of the segments of a plan; one whose keys were not read has no loser."""
    counted = (CountedSegment(s, findings.survivors.get(s.path, s.records)) for s in plan.sources)
    return decide(counted, segment_bytes=plan.segment_bytes, moves=plan.moves)


def applied(decisions: Iterable[Decision], written: Mapping[Rewrite, tuple[Segment, ...]]) -> tuple[Applied, ...]:
    """The decisions, done; `written` has the new segments of each rewrite in offset order."""
    return tuple(Applied(decision, _left_by(decision, written)) for decision in decisions)


def _left_by(decision: Decision, written: Mapping[Rewrite, tuple[Segment, ...]]) -> tuple[Segment, ...]:
    match decision:
        case Keep(segment):
            return (segment,)
        case Rewrite():
            return written[decision]
        case Drop():
            return ()
        case _:
            assert_never(decision)


@dataclass(frozen=True, slots=True)
class LogOutcome:
    """A round of one log, done but not committed."""

    plan: LogPlan
    findings: LogFindings
    applied: tuple[Applied, ...]
    bytes_read: int

    @property
    def result(self) -> tuple[Segment, ...]:
        """The segments below the horizon after the round (side by side: the view), in offset order."""
        return tuple(segment for done in self.applied for segment in done.segments)

    @property
    def written(self) -> tuple[Segment, ...]:
        """The new segments, in offset order."""
        return tuple(segment for done in self._changed for segment in done.segments)

    @property
    def removed(self) -> tuple[Segment, ...]:
        """Segments that the log no longer has."""
        if self.plan.view is not None:
            return self.plan.gone
        return self.plan.gone + tuple(s for done in self._changed for s in segments_of(done.decision))

    @property
    def added(self) -> tuple[Segment, ...]:
        """Segments that the log has instead."""
        return () if self.plan.view is not None else self.written

    @property
    def view_removed(self) -> tuple[Segment, ...]:
        """Segments that the view no longer has."""
        return without(self.plan.view or (), self.result)

    @property
    def view_added(self) -> tuple[Segment, ...]:
        """Segments that the view has now: new ones, and those of the backlog that have no loser (C39)."""
        return () if self.plan.view is None else without(self.result, self.plan.view)

    @property
    def _changed(self) -> tuple[Applied, ...]:
        return tuple(done for done in self.applied if not isinstance(done.decision, Keep))

    @property
    def held(self) -> HeldTombstones | None:
        """What is known now of expired tombstones that had to stay (C20)."""
        plan = self.plan
        if self.findings.tombstones_held:
            return HeldTombstones(plan.rules.tombstones_expire_below, plan.horizon.offset)
        return None if plan.expires_tombstones or plan.moves else plan.base.held

    @property
    def deletes_dropped_below(self) -> int:
        """Above the last delete that expired in the round (C49); 0 if none did."""
        rules, left = self.plan.rules, self.findings.survivors
        if not self.findings.losers.get(Cause.EXPIRED_TOMBSTONE):
            return 0
        lost = (s for s in self.plan.scanned if left[s.path] < s.records)
        held = (s.end_offset for s in lost if s.may_hold_tombstones(empty_is_tombstone=rules.empty_is_tombstone))
        return min(rules.tombstones_expire_below, max(held))

    @property
    def changes(self) -> bool:
        """Whether there is anything to commit (C41)."""
        plan = self.plan
        cuts = plan.gone or self.view_removed or plan.clears_requirement
        counts = self.held != plan.base.held or _counted_too_many(self) or plan.ages_values
        return bool(plan.moves or self._changed or cuts or counts)


def steps_after(outcome: LogOutcome, settings: TopicSettings, now_ms: int) -> Steps:
    """The tombstone steps after the round, its own included, folded (C18, C19)."""
    plan, found = outcome.plan, outcome.findings
    lost = found.clean_tombstones_lost or (0,) * len(plan.base.steps)
    steps = tuple(
        replace(step, tombstones=step.tombstones - gone) for step, gone in zip(plan.base.steps, lost, strict=True)
    )
    if plan.expires_tombstones:
        steps = _counted_anew(steps, plan.rules.tombstones_expire_below, found.clean_tombstones_held)
    if plan.moves:
        kept = found.dirty_tombstones_kept
        steps = with_round(steps, horizon=plan.horizon.offset, now_ms=now_ms, tombstones=kept)
    # Where the log start has moved since the plan, what is below it is still there, and counted.
    return folded(steps, log_start=plan.rules.log_start, retention_ms=settings.delete_retention_ms, now_ms=now_ms)


def _counted_too_many(outcome: LogOutcome) -> bool:
    """Whether steps that have expired count tombstones that went unread: the log would be due for ever (C21)."""
    plan = outcome.plan
    if not plan.expires_tombstones:
        return False
    expired = (step for step in plan.base.steps if step.end_offset <= plan.rules.tombstones_expire_below)
    return sum(step.tombstones for step in expired) != outcome.findings.clean_tombstones_held


def _counted_anew(steps: Steps, expire_below: int, left: int) -> Steps:
    """The steps that have expired, of which every tombstone was looked at: exactly `left` are left."""
    expired = [index for index, step in enumerate(steps) if step.end_offset <= expire_below]
    last = expired[-1] if expired else None
    return tuple(
        replace(step, tombstones=left if index == last else 0) if index in expired else step
        for index, step in enumerate(steps)
    )


@dataclass(frozen=True, slots=True)
class After:
    """What is read off the newest version when a round is laid over it.

    `segments` are those of the log after the commit, appends of the meantime included; the last
    records are those of the log and of the view.
    """

    segments: tuple[Segment, ...]
    last_record: LastRecord | None
    view_last_record: LastRecord | None = None


def state_after(
    outcome: LogOutcome, current: LogState, after: After, settings: TopicSettings, *, run_id: str, now_ms: int
) -> LogState:
    """The state of a log once `outcome` is laid over `current`, the newest state."""
    plan = outcome.plan
    log_start = max(current.log_start_offset, plan.log_start)
    moved = replace(
        current,
        log_start_offset=log_start,
        first_dirty_offset=max(plan.horizon.offset, log_start),
        steps=steps_after(outcome, settings, now_ms),
        last_record=last_readable(after.last_record, log_start),
        last_round_ms=now_ms,
        last_round=run_id,
        uncovered=False,
        held=_held_after(outcome),
        aged_before_ms=plan.rules.values_expire_before_ms,
        view=None if plan.view is None else view_of(outcome.result, after.view_last_record, _view_start(plan.base)),
        dropped=_drops_after(outcome, current),
    )
    # What was deleted while the round went on, or lies above its horizon, requires another one (C26).
    reason = stored_deletion(moved, after.segments, outcome.result)
    return measured(replace(moved, round_required=reason), after.segments)


def _held_after(outcome: LogOutcome) -> HeldTombstones | None:
    """What is held, reaching over steps that have expired since and count nothing: they become one with its own."""
    held, expire_below = outcome.held, outcome.plan.rules.tombstones_expire_below
    return held and replace(held, below=max(held.below, expire_below))


def _drops_after(outcome: LogOutcome, current: LogState) -> Drops:
    below = outcome.deletes_dropped_below
    if below == 0:
        return current.dropped
    return with_drop(current.dropped, DroppedDeletes(current.next_epoch, below, outcome.plan.view is not None))


def _view_start(base: LogState) -> int:
    """From where on a view covers a log that a round was planned on (C37)."""
    return base.log_start_offset if base.view is None else base.view.start_offset
