"""The state of a topic's logs for people and scripts: what `lithify status` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LogStatus:
    """One log. Offsets as in `model.log`; bytes compressed; times epoch ms."""

    partition: int
    log_start_offset: int
    first_dirty_offset: int
    horizon: int
    horizon_limited_by: str
    horizon_held_by: str | None
    log_end_offset: int
    records: int
    bytes: int
    segments: int
    clean_bytes: int
    dirty_bytes: int
    dirty_ratio: float
    tombstones: int
    """Null values: those that a round has covered, and those in the dirty part."""
    next_tombstone_expiry_ms: int | None
    due: bool
    due_reason: str
    due_at_ms: int | None
    """When the clock alone makes it due; in the past if it has."""
    last_round_ms: int | None
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """All logs of a topic at one version."""

    topic: str
    version: int
    logs: tuple[LogStatus, ...]
    now_ms: int
    now_given: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """What a topic is: `lithify topic info` and `topic list`. Settings under Kafka's names."""

    topic: str
    original_name: str
    partitions: int
    version: int
    records: int
    bytes: int
    location: str
    created_ms: int
    config: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
