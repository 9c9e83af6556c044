"""How far the replica of one topic is, as a daemon has noted it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lithify.model.names import TopicName


class ReplicaStanding(StrEnum):
    """The state of the replica of one topic. A daemon notes the first three; the others follow."""

    COPYING = "copying"
    """The first copy is under way."""
    REPLICATING = "replicating"
    """It keeps up with its source."""
    FAILED = "failed"
    """The last pass failed; it is retried."""
    WAITING = "waiting"
    """No daemon has checked it yet, or none runs."""
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class TopicProgress:
    """The replica of one topic, as of `updated_ms`. Times in epoch ms of the machine of its daemon."""

    replica: str
    topic: TopicName
    standing: ReplicaStanding
    updated_ms: int
    daemon: str
    version: int | None = None
    """The version of the source that the replica had."""
    behind_since_ms: int | None = None
    """Since when the source has a newer version; None while it has none."""
    copied_bytes: int = 0
    to_copy_bytes: int = 0
    """What the pass that is under way has copied, and what it copies in all."""
    failures: int = 0
    """Passes in a row that failed."""
    error: str | None = None
    retry_ms: int | None = None
    """The next pass does not begin before this time."""
    groups_error: str | None = None
    """Why positions of groups could not be copied the last time; the copies of the topic continue."""
