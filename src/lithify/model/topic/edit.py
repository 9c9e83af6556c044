"""What one commit changes, all of it or nothing (C6), and the version that it closes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from lithify.model.replicas.replica_of import ReplicaOf
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.sources.origin import Origin
from lithify.model.topic.log import LogState


class Verb(StrEnum):
    """What makes a commit."""

    APPEND = "append"
    COMPACT = "compact"
    RETAIN = "retain"
    DELETE_RECORDS = "delete-records"
    TRUNCATE = "truncate"
    ALTER = "alter"
    UNCOMPACT = "uncompact"
    UNDO = "undo"
    EXPIRE = "expire"
    SWEEP = "sweep"
    REPLICATE = "replicate"
    PROMOTE = "promote"
    TRUST_CLOCK = "trust-clock"


KEEPS_EPOCH = frozenset({Verb.APPEND, Verb.DELETE_RECORDS, Verb.EXPIRE, Verb.SWEEP, Verb.REPLICATE, Verb.PROMOTE})
"""Commits that do not invalidate a running round: below its horizon they change nothing (C44). Replicas have none."""
_ALWAYS_CLOSE = frozenset({Verb.COMPACT, Verb.UNDO, Verb.UNCOMPACT})  # what an unreadable view loses is not known


@dataclass(frozen=True, slots=True)
class TopicEdit:
    """What one commit changes. The store applies all of it to the version it was made on, or none.

    `logs` holds the new state of every log that changes or is new. `add` and `remove` are segments
    of the log, `view_add` and `view_remove` of the compacted view; one file may be named by both.
    `report_id` names a report that was stored before and that counts from this commit on.
    """

    run_id: str
    time_ms: int
    logs: Mapping[int, LogState]
    add: tuple[Segment, ...] = ()
    remove: tuple[Segment, ...] = ()
    view_add: tuple[Segment, ...] = ()
    view_remove: tuple[Segment, ...] = ()
    settings: TopicSettings | None = None
    own_settings: frozenset[str] | None = None  # None leaves them
    report_id: str | None = None
    verb: Verb = Verb.APPEND
    expire_closed_before_ms: int | None = None
    """Versions that were closed before this time expire."""
    closed_by_ms: int | None = None
    """Retained versions that a clock which was ahead has closed after this time count as closed by then (C46)."""
    clock_ms: int | None = None
    """The trusted time from then on (C46). The gate computes it if it is None."""
    written: tuple[Segment, ...] = ()
    """Files of `add` and `view_add` that no version has named yet: the gate checks that they still exist (C45)."""
    abandon: tuple[str, ...] | None = None  # the runs that can no longer commit; None leaves them
    features: tuple[str, ...] | None = None  # of the topic from then on; None leaves them
    origin: Origin | None = None  # whether it is a copy from then on (C70); None and `OWN` leave it
    replica: ReplicaOf | None = None  # what the topic is a replica of; None leaves it, `PROMOTE` drops it

    @property
    def closed_at_ms(self) -> int:
        """When the version it is made on counts as closed: not before the trusted time of earlier commits (C7)."""
        return self.time_ms if self.clock_ms is None else max(self.time_ms, self.clock_ms)

    def closing_time(self, closed_ms: int) -> int:
        """When a retained version with this `closed_ms` counts as closed from then on."""
        return closed_ms if self.closed_by_ms is None else min(closed_ms, self.closed_by_ms)

    @property
    def closes(self) -> bool:
        """Whether the version it is made on is kept for `versions`, `undo` and `verify`."""
        return bool(self.remove or self.view_remove) or self.verb in _ALWAYS_CLOSE

    def replica_after(self, before: ReplicaOf | None, base_version: int, version: int) -> ReplicaOf | None:
        """What `version`, which this edit makes on `base_version`, is a replica of (C64)."""
        if self.verb is Verb.PROMOTE:
            return None
        if self.replica is not None:
            return replace(self.replica, written_at=version)
        return None if before is None else before.restated(base_version, version)


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A version that a round or a removal of segments replaced, and the commit that closed it."""

    version: int
    closed_ms: int
    closed_by: str
    verb: Verb = Verb.COMPACT
    no_longer_named_bytes: int | None = None
    """Of the files that this commit stopped naming, and that the newest version does not name either; None if an
    earlier Lithify closed it, which did not say."""
