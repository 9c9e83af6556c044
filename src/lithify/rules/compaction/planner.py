"""What a round has to do, decided from metadata alone (C14, C30, C38).

    segments    |  clean, below D             |  dirty, D to H   |  above H: not touched
    read        |  only those that can lose   |  all             |

A clean segment can lose a record only to a dirty one with the same key, by an expired tombstone,
by a log start inside it, or by a changed rule on keyless records. Key bounds show
most of that without opening a file. `compact --plan` prints the same plan that a run executes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import compress

from lithify.model.groups.reads import NONE_NAMED, LogReads
from lithify.model.segment import Segment, volume_of
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState
from lithify.rules.compaction.decisions import MaskLimits
from lithify.rules.compaction.eligible.horizon import Horizon, compaction_horizon
from lithify.rules.compaction.eligible.required import round_clears
from lithify.rules.compaction.eligible.retention import gone_segments, may_age, start_after, values_expire_before_ms
from lithify.rules.compaction.holds import holding
from lithify.rules.compaction.key_bounds import KeyBounds, key_bounds_of
from lithify.rules.compaction.survivor_rules import Cause, SurvivorRules
from lithify.rules.compaction.tombstones import expiry_of, tombstones_expire_below


@dataclass(frozen=True, slots=True)
class LogPlan:
    """One round of one log, as planned on `base`.

    `clean` is what rounds have left: the log below D or, side by side, the view. `dirty` is what no
    round has covered, from D to the horizon. `looked_at` is the part of `clean` that can hold a loser.
    """

    base: LogState
    horizon: Horizon
    rules: SurvivorRules
    segments: tuple[Segment, ...]
    """All segments of the log."""
    clean: tuple[Segment, ...]
    dirty: tuple[Segment, ...]
    looked_at: tuple[Segment, ...]
    segment_bytes: int
    masks: MaskLimits = MaskLimits()
    rewrite_bytes: int | None = None
    """How much the round may rewrite; None is unlimited."""
    gone: tuple[Segment, ...] = ()
    """The front of the log, dropped whole and unread (C24, C26)."""
    above_horizon: tuple[Segment, ...] = ()
    """Segments above the horizon whose keys may hold expired tombstones (C20)."""
    chunks: tuple[Segment, ...] = ()
    """Segments below the horizon with chunks, which hold expired tombstones of their keys (C53)."""
    view: tuple[Segment, ...] | None = None
    """The view as it was planned on; None in place."""
    expires_tombstones: bool = False
    """The round reads all expired tombstones."""
    ages_values: bool = False
    """The round checks values of the clean part for their age (C24)."""
    clears_requirement: bool = False
    """The round clears a reason for which one is required (C26, C43)."""
    reads: LogReads = NONE_NAMED
    """How far the groups that the topic names have read the log (C61, C62)."""
    held_by: tuple[str, ...] = ()
    """Groups that hold tombstones which would have expired (C61)."""
    keeps_log: bool = False
    """Nothing of the log is dropped, also not what lies below its start: it is a copy, and only its source cuts it."""

    @property
    def partition(self) -> int:
        return self.base.partition

    @property
    def log_start(self) -> int:
        """S after the round (C24)."""
        return start_after(self.base, self.gone)

    @property
    def moves(self) -> bool:
        """Whether the round is the first to cover something (C19)."""
        return self.horizon.offset > self.base.first_dirty_offset or self.base.uncovered

    @property
    def scanned(self) -> tuple[Segment, ...]:
        """Segments whose keys the round reads, without those above the horizon."""
        return self.looked_at + self.dirty

    @property
    def sources(self) -> tuple[Segment, ...]:
        """Segments whose survivors the round puts together."""
        return self.clean + self.dirty

    @property
    def waiting(self) -> tuple[Segment, ...]:
        """Segments to rewrite for what their masks hide alone."""
        return self.masks.exceeded_by(self.clean, together=self.rewrite_bytes is not None)

    @property
    def view_gone(self) -> tuple[Segment, ...]:
        """Segments of the view that are dropped whole and unread (C26)."""
        return tuple(s for s in self.view or () if s.end_offset <= self.rules.log_start)

    @property
    def unread_losers(self) -> dict[Cause, int]:
        """Records dropped with whole segments of the compacted part, by cause."""
        gone = self.gone if self.view is None else self.view_gone
        below = tuple(s for s in gone if s.end_offset <= self.base.log_start_offset or self.view is not None)
        counts = {
            Cause.BELOW_START: volume_of(below).records,
            Cause.PAST_RETENTION: volume_of(gone).records - volume_of(below).records,
        }
        return {cause: count for cause, count in counts.items() if count}

    @property
    def is_idle(self) -> bool:
        """Nothing to read and nothing to record: a run on this state changes nothing (C41)."""
        work = self.moves or self.scanned or self.gone or self.view_gone or self.clears_requirement or self.waiting
        return not (work or self.expires_tombstones)  # the steps may count tombstones that were dropped unread

    @property
    def key_bytes(self) -> int:
        """What reading all keys once takes at most. The metadata of entries has no size in manifests."""
        return sum(map(self._scan_bytes, self.scanned + self.above_horizon)) + volume_of(self.chunks).size_bytes

    def _scan_bytes(self, segment: Segment) -> int:
        """What reading the keys of a segment takes at most: headers and timestamps have no size in metadata."""
        plain = not self.rules.is_ordered and self.rules.values_expire_before_ms is None
        return segment.mask_bytes + (segment.most_scan_bytes if plain else segment.size_bytes)


def plan_log(
    state: LogState,
    segments: tuple[Segment, ...],
    settings: TopicSettings,
    now_ms: int,
    view: tuple[Segment, ...] = (),
    reads: LogReads = NONE_NAMED,
) -> LogPlan:
    """The round that would run now over one log.

    `segments` are the log's, `view` has the segments of its compacted view, if it has one, in offset order.
    """
    gone = gone_segments(state, segments, settings, now_ms, reads.backlog_below)
    left = segments[len(gone) :]
    started = _started(state, start_after(state, gone))
    horizon = compaction_horizon(started, left, settings, now_ms)
    if settings.side_by_side:
        # The view has what this round covers after its commit, so retention need not wait (C33, C41).
        covered = replace(started, first_dirty_offset=horizon.offset)
        gone = gone_segments(covered, segments, settings, now_ms, reads.backlog_below)
    rules = _rules(started, horizon, settings, now_ms, reads)
    compacted = tuple(s for s in view if s.end_offset > rules.log_start) if settings.side_by_side else left
    clean = tuple(s for s in compacted if s.end_offset <= started.first_dirty_offset)
    dirty = tuple(s for s in left if started.first_dirty_offset < s.end_offset <= horizon.offset)
    clean, dirty = ((), clean + dirty) if state.uncovered else (clean, dirty)
    rules = _while_values_are_hidden(rules, clean + dirty, tuple(s for s in left if s.end_offset > horizon.offset))
    aging = {s.path for s in clean if may_age(s, rules.values_expire_before_ms, state.aged_before_ms)}
    whole = tuple(s for s in clean if s.base_offset >= rules.log_start and s.path not in aging)
    expiring = _expiring(started, horizon, rules, volume_of(whole).chunks)
    looked_at = _looked_at(clean, dirty, aging, rules, tombstones_expire=expiring)
    return LogPlan(
        base=state,
        horizon=horizon,
        rules=rules,
        segments=segments,
        clean=clean,
        dirty=dirty,
        looked_at=looked_at,
        segment_bytes=settings.segment_bytes,
        masks=MaskLimits.of(settings, rules.log_start),
        gone=gone,
        above_horizon=_above_horizon(left, looked_at + dirty, rules),
        chunks=_with_chunks(clean + dirty, looked_at + dirty, rules),
        view=view if settings.side_by_side else None,
        expires_tombstones=expiring,
        ages_values=bool(aging),
        clears_requirement=round_clears(state, segments, settings, horizon),
        reads=reads,
        held_by=holding(started, settings, reads, now_ms),
    )


def of_view_only(plan: LogPlan) -> LogPlan:
    """The same round where the log is a copy: it writes the view, and leaves the log as its source has it (C67)."""
    return replace(plan, gone=(), keeps_log=True)


def _started(state: LogState, log_start: int) -> LogState:
    """`state` once its log starts there."""
    return replace(state, log_start_offset=log_start, first_dirty_offset=max(log_start, state.first_dirty_offset))


def _rules(state: LogState, horizon: Horizon, settings: TopicSettings, now_ms: int, reads: LogReads) -> SurvivorRules:
    return SurvivorRules(
        # Trimming the backlog removes nothing from the view; only `delete-records` does (C26, C33).
        log_start=state.deleted_below if settings.side_by_side else state.log_start_offset,
        horizon=horizon.offset,
        keep_keyless=settings.null_key == "retain",
        empty_is_tombstone=settings.empty_is_tombstone,
        tombstones_expire_below=tombstones_expire_below(
            state.steps,
            horizon=horizon.offset,
            expiry=expiry_of(settings, reads),
            now_ms=now_ms,
        ),
        order=settings.order,
        values_expire_before_ms=values_expire_before_ms(settings, now_ms),
    )


def _while_values_are_hidden(
    rules: SurvivorRules, below: tuple[Segment, ...], above: tuple[Segment, ...]
) -> SurvivorRules:
    """The rules under which no tombstone expires while a whole entry is stored that may have any key (C53)."""
    may_be_beaten = below + above if rules.is_ordered else below
    hidden = any(segment.sealed for segment in may_be_beaten)
    return replace(rules, tombstones_expire_below=0) if hidden else rules


def _expiring(state: LogState, horizon: Horizon, rules: SurvivorRules, chunks: int) -> bool:
    """Whether the log may hold tombstones that can be dropped, as far as metadata can tell.

    `chunks` are those in clean segments that the round does not cut: it may remove the others, and then drops the
    tombstones that they held (C53).
    """
    held = state.held_below(horizon.offset, chunks) or 0
    expired = (s for s in state.steps if held < s.end_offset <= rules.tombstones_expire_below)
    return any(step.tombstones > 0 for step in expired)


def _above_horizon(
    segments: tuple[Segment, ...], scanned: tuple[Segment, ...], rules: SurvivorRules
) -> tuple[Segment, ...]:
    """Segments to read before an expired tombstone is dropped: it may beat their records at or above H (C20)."""
    if not rules.is_ordered or not any(may_expire(segment, rules) for segment in scanned):
        return ()
    return tuple(s for s in segments if s.end_offset > rules.horizon)


def _with_chunks(
    segments: tuple[Segment, ...], scanned: tuple[Segment, ...], rules: SurvivorRules
) -> tuple[Segment, ...]:
    """Segments to read before an expired tombstone is dropped: chunks in them may have its key (C53)."""
    if not any(may_expire(segment, rules) for segment in scanned):
        return ()
    return tuple(s for s in segments if s.chunks)


def may_expire(segment: Segment, rules: SurvivorRules) -> bool:
    """Whether a segment can hold tombstones that the round drops as expired, as far as metadata can tell."""
    return segment.base_offset < rules.tombstones_expire_below and segment.may_hold_tombstones(
        empty_is_tombstone=rules.empty_is_tombstone
    )


def _looked_at(
    clean: tuple[Segment, ...],
    dirty: tuple[Segment, ...],
    aging: Collection[str],
    rules: SurvivorRules,
    *,
    tombstones_expire: bool,
) -> tuple[Segment, ...]:
    """The clean segments that can hold a loser; `aging` are paths of those whose values may be too old."""
    dirty_keys = key_bounds_of(dirty)
    can_lose = (s.path in aging or _can_lose(s, dirty_keys, rules, tombstones_expire=tombstones_expire) for s in clean)
    return tuple(compress(clean, can_lose))


def _can_lose(segment: Segment, dirty_keys: KeyBounds, rules: SurvivorRules, *, tombstones_expire: bool) -> bool:
    """Whether a clean segment can hold a loser, as far as metadata can tell."""
    if segment.base_offset < rules.log_start:
        return True
    if segment.droppable_keyless and not rules.keep_keyless:
        return True
    if tombstones_expire and may_expire(segment, rules):
        return True
    return dirty_keys.may_meet(segment)
