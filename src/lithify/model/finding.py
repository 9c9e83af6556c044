"""One thing that a verification found to be wrong (C8), and what is to be counted for that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """What is wrong."""

    FILE_MISSING = "file_missing"
    FILE_DAMAGED = "file_damaged"
    OUT_OF_ORDER = "out_of_order"
    WRONG_METADATA = "wrong_metadata"
    RECORD_LOST = "record_lost"
    RECORD_ALTERED = "record_altered"
    RECORD_DUPLICATED = "record_duplicated"
    RECORD_UNKNOWN = "record_unknown"
    SUPERSEDED_KEPT = "superseded_kept"
    KEYLESS_KEPT = "keyless_kept"
    PAST_RETENTION_KEPT = "past_retention_kept"
    BELOW_START_KEPT = "below_start_kept"
    TOMBSTONE_REMOVED_EARLY = "tombstone_removed_early"
    EXPIRED_TOMBSTONE_KEPT = "expired_tombstone_kept"
    NOT_VERIFIED = "not_verified"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is wrong; `offset` and `path` where they apply."""

    partition: int
    kind: FindingKind
    message: str
    offset: int | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class TombstoneCount:
    """Which tombstones of a segment are to be counted: those in [start, end), by the steps of their log (C19)."""

    start: int
    end: int
    step_ends: tuple[int, ...]
    empty_is_tombstone: bool
