"""What a round has to do, decided from metadata alone (C14, C30, C38).

    segments    |  clean, below D             |  dirty, D to H   |  above H: not touched
    looked at   |  only those that can lose   |  all             |

A clean segment can lose a record only to a dirty one with the same key, by an expired tombstone,
by a log start that moved into it, or by a rule on keyless records that changed. Key bounds tell
most of that without opening a file. The plan is what `compact --plan` prints and a run executes.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.compaction.horizon import Horizon, compaction_horizon
from lithify.compaction.key_ranges import KeyRanges, key_ranges_of
from lithify.compaction.rules import SurvivorRules
from lithify.compaction.steps import tombstones_expire_below
from lithify.model.log import LogState
from lithify.model.segment import Segment
from lithify.model.settings import TopicSettings

FOOTER_BYTES = 16_384
"""Room for the header and footer of one written segment, in the upper bounds of a plan."""


@dataclass(frozen=True, slots=True)
class LogPlan:
    """One round of one log, as planned on `base`.

    `clean` and `dirty` are all segments wholly below the horizon; `looked_at` are those of `clean`
    that can hold a loser.
    """

    base: LogState
    horizon: Horizon
    rules: SurvivorRules
    clean: tuple[Segment, ...]
    dirty: tuple[Segment, ...]
    looked_at: tuple[Segment, ...]
    segment_bytes: int

    @property
    def partition(self) -> int:
        return self.base.partition

    @property
    def moves(self) -> bool:
        """Whether the first dirty offset moves (C19)."""
        return self.horizon.offset > self.base.first_dirty_offset

    @property
    def scanned(self) -> tuple[Segment, ...]:
        """Segments whose keys the round reads."""
        return self.looked_at + self.dirty

    @property
    def sources(self) -> tuple[Segment, ...]:
        """Segments that the round may replace."""
        return self.clean + self.dirty

    @property
    def is_idle(self) -> bool:
        """Nothing to read and nothing to record: a run on this state changes nothing (C41)."""
        return not self.moves and not self.scanned

    def bounds(self, key_ranges: int) -> PlanBounds:
        """Upper bounds of what the run costs if it reads the keys `key_ranges` times (C30)."""
        touched = self._touched if self.moves or self.scanned else ()
        whole = sum(s.size_bytes for s in touched)
        return PlanBounds(
            segments_rewritten=len(touched),
            bytes_read=whole + key_ranges * sum(s.scan_bytes for s in self.scanned),
            bytes_written=whole + FOOTER_BYTES * len(touched),
        )

    @property
    def _touched(self) -> tuple[Segment, ...]:
        """What the run may rewrite: to remove a loser from it, or to merge it with another (C39)."""
        scanned = {segment.path for segment in self.scanned}
        return tuple(s for s in self.sources if s.path in scanned or s.size_bytes < self.segment_bytes)


@dataclass(frozen=True, slots=True)
class PlanBounds:
    """At most this much, for the state that was planned on. Bytes are compressed."""

    segments_rewritten: int
    bytes_read: int
    bytes_written: int


def plan_log(state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int) -> LogPlan:
    """The round that would run now over one log, whose `segments` are in offset order."""
    horizon = compaction_horizon(state, segments, settings, now_ms)
    rules = SurvivorRules(
        log_start=state.log_start_offset,
        first_dirty=state.first_dirty_offset,
        horizon=horizon.offset,
        keep_keyless=settings.null_key == "retain",
        empty_is_tombstone=settings.empty_is_tombstone,
        tombstones_expire_below=tombstones_expire_below(
            state.steps,
            horizon=horizon.offset,
            retention_ms=settings.delete_retention_ms,
            now_ms=now_ms,
        ),
    )
    below = tuple(s for s in segments if s.end_offset <= horizon.offset)
    clean = tuple(s for s in below if s.end_offset <= state.first_dirty_offset)
    dirty = below[len(clean) :]
    expiring = sum(s.tombstones for s in state.steps if s.end_offset <= rules.tombstones_expire_below) > 0
    dirty_keys = key_ranges_of(dirty)
    looked_at = tuple(s for s in clean if _can_lose(s, dirty_keys, rules, tombstones_expire=expiring))
    return LogPlan(state, horizon, rules, clean, dirty, looked_at, settings.segment_bytes)


def _can_lose(segment: Segment, dirty_keys: KeyRanges, rules: SurvivorRules, *, tombstones_expire: bool) -> bool:
    """Whether a clean segment can hold a loser, as far as metadata can tell."""
    if segment.base_offset < rules.log_start:
        return True
    if segment.null_keys and not rules.keep_keyless:
        return True
    below_expiry = tombstones_expire and segment.base_offset < rules.tombstones_expire_below
    if below_expiry and segment.may_hold_tombstones(empty_is_tombstone=rules.empty_is_tombstone):
        return True
    return dirty_keys.may_meet(segment)
