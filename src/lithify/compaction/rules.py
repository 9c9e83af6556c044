"""What decides about one record of a round: the rules, as numbers that a Spark task can carry.

`verdict` is the contract for a single record, given whether it wins its key. The oracle
(`survivors.py`) and every fast path are held to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Why a record below the horizon goes. Each loser is counted under the first that applies."""

    BELOW_START = "below_start"
    NO_KEY = "no_key"
    SUPERSEDED = "superseded"
    EXPIRED_TOMBSTONE = "expired_tombstone"
    PAST_RETENTION = "past_retention"


@dataclass(frozen=True, slots=True)
class SurvivorRules:
    """The rules of one round over one log, [log_start, horizon)."""

    log_start: int
    first_dirty: int
    horizon: int
    keep_keyless: bool
    empty_is_tombstone: bool
    tombstones_expire_below: int

    def verdict(self, offset: int, *, has_key: bool, wins: bool, tombstone: bool) -> Cause | None:
        """Why this record goes, or None if it stays. `offset` is below the horizon."""
        if offset < self.log_start:
            return Cause.BELOW_START  # C26
        if not has_key:
            return None if self.keep_keyless else Cause.NO_KEY  # C16
        if not wins:
            return Cause.SUPERSEDED  # C9
        if tombstone and offset < self.tombstones_expire_below:
            return Cause.EXPIRED_TOMBSTONE  # C18
        return None
