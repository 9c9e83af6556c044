"""What a round found and wrote, and the log state that follows from it.

    plan ─► findings (key pass) ─► grouping ─► written segments ─► LogOutcome ─► LogState

All numbers are per segment or per log: nothing here grows with records or keys (C38).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lithify.compaction.groups import Grouping
from lithify.compaction.planner import LogPlan
from lithify.compaction.rules import Cause
from lithify.compaction.steps import Steps, folded, with_round
from lithify.model.log import LogState, Position
from lithify.model.segment import Segment, volume_of
from lithify.model.settings import TopicSettings


@dataclass(frozen=True, slots=True)
class LogFindings:
    """What the key pass counted in the segments that it looked at."""

    survivors: Mapping[str, int]
    """By path of every scanned segment: how many of its records stay."""
    losers: Mapping[Cause, int]
    keyless_kept: int = 0
    dirty_tombstones: int = 0
    """Tombstones with a key in the dirty part, at or above the log start."""
    dirty_tombstones_kept: int = 0
    clean_tombstones_lost: tuple[int, ...] = ()
    """By tombstone step of the state that was planned on: tombstones with a key that go from the clean
    part, whatever the cause. Below the log start they count as well, since their step counts them."""
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class LogOutcome:
    """A round of one log, done but not committed. `written` has the new segments in offset order."""

    plan: LogPlan
    findings: LogFindings
    grouping: Grouping
    written: tuple[Segment, ...]
    bytes_read: int

    @property
    def result(self) -> tuple[Segment, ...]:
        """The segments below the horizon after the round, in offset order."""
        return tuple(sorted((*self.grouping.kept, *self.written), key=lambda s: s.base_offset))

    @property
    def changes(self) -> bool:
        """Whether there is anything to commit (C41)."""
        return self.plan.moves or self.grouping.changes


def steps_after(outcome: LogOutcome, settings: TopicSettings, now_ms: int) -> Steps:
    """The tombstone steps after the round, its own included, folded (C18, C19)."""
    base = outcome.plan.base
    lost = outcome.findings.clean_tombstones_lost or (0,) * len(base.steps)
    steps = tuple(replace(step, tombstones=step.tombstones - gone) for step, gone in zip(base.steps, lost, strict=True))
    if outcome.plan.moves:
        kept = outcome.findings.dirty_tombstones_kept
        steps = with_round(steps, horizon=outcome.plan.horizon.offset, now_ms=now_ms, tombstones=kept)
    # Where the log start has moved since the plan, what is below it is still there, and counted.
    return folded(steps, log_start=base.log_start_offset, retention_ms=settings.delete_retention_ms, now_ms=now_ms)


def state_after(
    outcome: LogOutcome,
    current: LogState,
    segments: tuple[Segment, ...],
    settings: TopicSettings,
    *,
    now_ms: int,
    last_record: Position | None,
) -> LogState:
    """The state of a log once `outcome` is laid over `current`, the newest state.

    `segments` are those of the log after the commit, appends of the meantime included.
    """
    moved = replace(
        current,
        first_dirty_offset=max(outcome.plan.horizon.offset, current.log_start_offset),
        steps=steps_after(outcome, settings, now_ms),
        last_record=last_record,
        last_round_ms=now_ms,
    )
    return measured(moved, segments)


def measured(state: LogState, segments: tuple[Segment, ...]) -> LogState:
    """`state` with its volumes taken from the log's segments (C27)."""
    clean = tuple(s for s in segments if s.end_offset <= state.first_dirty_offset)
    dirty = tuple(s for s in segments if s.end_offset > state.first_dirty_offset)
    return replace(
        state,
        clean=volume_of(clean),
        dirty=volume_of(dirty),
        oldest_dirty_timestamp_ms=min((s.min_timestamp_ms for s in dirty), default=None),
    )
