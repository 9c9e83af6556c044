"""What daemons know of their topics, in figures: made of what they have in memory anyway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """A topic as the last check that read it has found it. Bytes compressed, times epoch ms."""

    is_readable: bool = True
    dirty_bytes: int = 0
    """0 in topics that are not compacted here."""
    dirty_ratio: float = 0.0
    """Of its dirtiest log, as `status` has it."""
    dirty_since_ms: int | None = None
    """The timestamp of its oldest dirty record; None if nothing is dirty."""
    overdue_since_ms: int | None = None
    due_logs: int = 0
    quarantined_logs: int = 0
    quarantined_bytes: int = 0
    """The dirty bytes of these logs."""


UNREADABLE = TopicFigures(is_readable=False)


@dataclass(frozen=True, slots=True)
class CleanerFigures:
    """A cleaner at one moment."""

    looked_ms: int | None
    """When a check was last completed, in epoch ms; before it the topics are not all there."""
    topics: Mapping[str, TopicFigures]
    running_topics: int
    held_leases: int
    cleaners: int
    """Running ones, this one included."""


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """A replica daemon at one moment."""

    looked_ms: int | None
    topics: int
    failed: int
    behind_since_ms: Mapping[str, int]
    """By topic, since when its replica that is furthest behind lacks something, in epoch ms."""
