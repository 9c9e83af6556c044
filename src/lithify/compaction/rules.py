"""The rules that decide about one record of a round, as numbers that travel to Spark tasks.

`verdict` is the contract for a single record, given whether it wins its key. The oracle
(`survivors.py`) and every fast path must agree with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lithify.model.log import LogState
from lithify.model.settings.topic_settings import Strategy, TopicSettings


class Cause(StrEnum):
    """Why a record below the horizon is dropped. Each loser is counted under the first that applies."""

    BELOW_START = "below_start"
    NO_KEY = "no_key"
    SUPERSEDED = "superseded"
    EXPIRED_TOMBSTONE = "expired_tombstone"
    PAST_RETENTION = "past_retention"


@dataclass(frozen=True, slots=True)
class SurvivorRules:
    """The rules of one round over one log, [log_start, horizon).

    Records with a timestamp below `values_expire_before_ms` are past retention, unless they are
    tombstones (C24); None is no limit. `order_header` counts with strategy `header` (C10).
    """

    log_start: int
    first_dirty: int
    horizon: int
    keep_keyless: bool
    empty_is_tombstone: bool
    tombstones_expire_below: int
    strategy: Strategy = "offset"
    order_header: str = ""
    values_expire_before_ms: int | None = None

    def verdict(self, fate: Fate) -> Cause | None:
        """Why a record is dropped, or None if it stays. Its offset is below the horizon."""
        if fate.offset < self.log_start:
            return Cause.BELOW_START  # C26
        if not fate.has_key and not self.keep_keyless:
            return Cause.NO_KEY  # C16
        if fate.has_key and not fate.wins:
            return Cause.SUPERSEDED  # C9, C10
        if fate.has_key and fate.tombstone:
            expired = fate.offset < self.tombstones_expire_below and not fate.held  # C20
            return Cause.EXPIRED_TOMBSTONE if expired else None  # C18
        if self.values_expire_before_ms is not None and fate.timestamp_ms < self.values_expire_before_ms:
            return Cause.PAST_RETENTION  # C24
        return None


def table_rules(state: LogState, settings: TopicSettings) -> SurvivorRules:
    """The rules that leave the latest value of every live key of a log, or of its view and the backlog from D on."""
    return SurvivorRules(
        log_start=state.compacted_start,
        first_dirty=state.compacted_start,
        horizon=state.log_end_offset,
        keep_keyless=False,
        empty_is_tombstone=settings.empty_is_tombstone,
        tombstones_expire_below=state.log_end_offset,
        strategy=settings.compaction_strategy,
        order_header=settings.compaction_strategy_header,
    )


@dataclass(frozen=True, slots=True)
class Fate:
    """The facts of one record that the rules need. `held`: it beats a record at or above the horizon (C20)."""

    offset: int
    timestamp_ms: int
    has_key: bool
    wins: bool
    tombstone: bool
    held: bool = False
