"""What a round found and wrote (the state of the log that follows from it: `round_commit`).

    plan ─► findings (key pass) ─► decisions ─► applied (new segments) ─► LogOutcome

All numbers are per segment or per log: nothing here grows with records or keys (C38).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from lithify.model.segment import Segment, volume_of, without
from lithify.model.topic.log import HeldTombstones
from lithify.rules.compaction.decisions import (
    AddMask,
    CountedSegment,
    Decision,
    Drop,
    Keep,
    Rewrite,
    decide,
    segments_of,
)
from lithify.rules.compaction.planner import LogPlan, may_expire
from lithify.rules.compaction.survivor_rules import Cause


@dataclass(frozen=True, slots=True)
class LogFindings:
    """What the key pass counted in the segments that it read."""

    survivors: Mapping[str, int]
    """By path of every scanned segment: how many of its records remain."""
    losers: Mapping[Cause, int]
    keyless_kept: int = 0
    keyless_expired: int = 0
    """Of the losers past retention, those without a key."""
    dirty_tombstones: int = 0
    """Tombstones with a key in the dirty part, at or above the log start."""
    dirty_tombstones_kept: int = 0
    clean_tombstones_lost: tuple[int, ...] = ()
    """By tombstone step of the state that was planned on: tombstones with a key that are removed from the
    clean part, whatever the cause. Below the log start they count as well, since their step counts them."""
    clean_tombstones_held: int = 0
    """Expired tombstones of the clean part that must remain (C20, C53); in the dirty part, these count as kept."""
    tombstones_held: int = 0
    """Such tombstones of both parts."""
    tombstones_held_by_chunks: int = 0
    """The held tombstones for which chunks below the horizon suffice (C53)."""
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
    return decide(
        counted,
        segment_bytes=plan.segment_bytes,
        moves=plan.moves,
        masks=plan.masks,
        rewrite_bytes=plan.rewrite_bytes,
    )


Done = Mapping[Rewrite | AddMask, tuple[Segment, ...]]
"""The new segments of each rewrite in offset order, and each segment with its new mask."""


def applied(decisions: Iterable[Decision], written: Done) -> tuple[Applied, ...]:
    """The decisions, done."""
    return tuple(Applied(decision, _left_by(decision, written)) for decision in decisions)


def _left_by(decision: Decision, written: Done) -> tuple[Segment, ...]:
    match decision:
        case Keep(segment):
            return (segment,)
        case Rewrite() | AddMask():
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
        """The new segments and those with new masks, in offset order."""
        return tuple(segment for done in self._changed for segment in done.segments)

    @property
    def waiting(self) -> tuple[Segment, ...]:
        """Segments that the next round rewrites, as this one could write no more bytes."""
        return self.plan.masks.exceeded_by(self.result, together=self.plan.rewrite_bytes is not None)

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
        """Segments that the view has now: new ones, and segments of the backlog that have no loser (C39)."""
        return () if self.plan.view is None else without(self.result, self.plan.view)

    @property
    def _changed(self) -> tuple[Applied, ...]:
        return tuple(done for done in self.applied if not isinstance(done.decision, Keep))

    @property
    def held(self) -> HeldTombstones | None:
        """What is known now of expired tombstones that had to remain (C20, C53)."""
        plan, findings = self.plan, self.findings
        before, below, horizon = plan.base.held, plan.rules.tombstones_expire_below, plan.horizon.offset
        waits = findings.tombstones_held > findings.tombstones_held_by_chunks
        if before is not None and before.chunks and not plan.expires_tombstones and plan.base.held_below(horizon):
            if not plan.moves:
                return before
            # Not all earlier ones were read: they remain as long as no chunk is removed, in this round either.
            chunks = before.chunks + volume_of(plan.dirty).chunks
            return HeldTombstones(below, horizon, chunks, waits or before.waits) if below else None
        if findings.tombstones_held:
            chunks = volume_of(self.result).chunks if findings.tombstones_held_by_chunks else 0
            return HeldTombstones(below, horizon, chunks, waits)
        return None if plan.expires_tombstones or plan.moves else before

    @property
    def deletes_dropped_below(self) -> int:
        """Above the last delete that expired in the round (C49); 0 if none did."""
        ends = (segment.end_offset for segment in self.had_expired_deletes)
        return min(self.plan.rules.tombstones_expire_below, max(ends, default=0))

    @property
    def had_expired_deletes(self) -> tuple[Segment, ...]:
        """Every segment that lost deletes which expired, and perhaps others; none if none expired."""
        left = self.findings.survivors
        if not self.findings.losers.get(Cause.EXPIRED_TOMBSTONE):
            return ()
        return tuple(s for s in self.plan.scanned if left[s.path] < s.records and may_expire(s, self.plan.rules))

    @property
    def removes_losers(self) -> bool:
        """Whether records at or above the log start are removed, except what retention drops with whole segments."""
        return any(count for cause, count in self.findings.losers.items() if cause is not Cause.BELOW_START)

    @property
    def missed_by(self) -> tuple[str, ...]:
        """The groups that should have held tombstones which the round drops, had that not taken too long (C61)."""
        below = self.deletes_dropped_below
        return tuple(read.group for read in self.plan.reads.holding if read.offset < below)

    @property
    def changes(self) -> bool:
        """Whether there is anything to commit (C41)."""
        plan = self.plan
        cuts = plan.gone or self.view_removed or plan.clears_requirement
        counts = self.held != plan.base.held or _counted_too_many(self) or plan.ages_values
        return bool(plan.moves or self._changed or cuts or counts)


def _counted_too_many(outcome: LogOutcome) -> bool:
    """Whether steps that have expired count tombstones that went unread: the log would be due for ever (C21)."""
    plan = outcome.plan
    if not plan.expires_tombstones:
        return False
    expired = (step for step in plan.base.steps if step.end_offset <= plan.rules.tombstones_expire_below)
    return sum(step.tombstones for step in expired) != outcome.findings.clean_tombstones_held
