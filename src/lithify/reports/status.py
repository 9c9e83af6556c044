"""A topic, its logs and its kept versions: what `lithify status`, `topic info` and `versions` print.

Bytes are compressed sizes, times epoch ms.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.segment import Volume
from lithify.model.topic.edit import KeptVersion, Verb
from lithify.model.topic.state import TopicState
from lithify.reports.report import Report
from lithify.reports.space import Space


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """The compacted view of a log, up to its first dirty offset (C33)."""

    records: int
    bytes: int
    first_offset: int | None
    """Null while it has no records."""
    start_offset: int
    """Where a reader of compacted data starts (C37)."""


@dataclass(frozen=True, slots=True)
class GroupHold:
    """A group of `tombstone.hold.groups` and one log (C61)."""

    group: str
    position: int | None
    """The offset below which it has read everything; null without a position that counts: it has read nothing."""
    committed_ms: int | None
    tombstones: int
    """How many it holds at most, which would have expired by `delete.retention.ms`."""
    since_ms: int | None
    """When the first of them would have; null if it holds none."""
    until_ms: int | None
    """When the first of them goes although it has not read it; null if it holds none, or for ever."""
    missed_below: int | None
    """Deletes that it has not read are gone, by `tombstone.hold.max.ms`: below this offset. Null if none are."""


@dataclass(frozen=True, slots=True)
class LogStatus:
    """One log. Offsets as in `model.topic.log`; bytes compressed; times epoch ms.

    Side by side, records, bytes and segments are of the backlog, `clean_bytes` those of the view.
    """

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
    """Null values: those that a round has covered and left, at most, and those in the dirty part."""
    delete_retention_point: int
    """Deletes below this offset may be gone: a consumer that has not read them in time has to start again (C49)."""
    next_tombstone_expiry_ms: int | None
    tombstones_held_below: int | None
    """Expired tombstones below this offset stay: records that they beat wait above the horizon (C20)."""
    holds: tuple[GroupHold, ...]
    """What each group of `tombstone.hold.groups` holds (C61)."""
    backlog_read_below: int | None
    """All groups of `backlog.trim.groups` have read what is below; null where none is named (C62)."""
    passed_through: int
    """Whole entries of Pulsar that may hide what tombstones delete: while there are any, none expires (C53)."""
    retention_waiting_bytes: int
    """Bytes of the backlog that are past retention and wait for a round, which the view needs first (C33)."""
    owed: str | None
    """Why a round is required at any dirty ratio: a setting changed (C43), records were deleted (C26)."""
    due: bool
    due_reason: str
    due_at_ms: int | None
    """When the clock alone makes it due; in the past if it has."""
    overdue_ms: int
    """How far it is past `max.compaction.lag.ms` (C29)."""
    last_round_ms: int | None
    last_round_id: str | None
    """The `run_id` of the last round that was committed and not undone."""
    view: ViewStatus | None
    """Null in place, and side by side before the first round."""
    failures: int = 0
    """Rounds that failed in a row, since the last successful one (C31)."""
    failed_ms: int | None = None
    """When the last of them failed."""
    retry_ms: int | None = None
    """Cleaners do not retry it before this time; null if nothing failed, or if it is quarantined."""
    error: str | None = None
    """Why the last one failed."""
    error_code: str | None = None
    quarantined: bool = False
    """Whether cleaners skip it until it is released; since `failed_ms`."""


@dataclass(frozen=True, slots=True)
class TopicStatus(Report):
    """All logs of a topic at one version."""

    topic: str
    version: int
    cleanup_policy: str
    compaction_mode: str
    logs: tuple[LogStatus, ...]
    now_ms: int
    now_given: bool = False
    groups_error: str | None = None
    """Why positions of groups could not be read: as if they had read nothing (C61, C62)."""
    space: Space | None = None
    """What the whole topic takes, with earlier versions."""


@dataclass(frozen=True, slots=True)
class TopicInfo(Report):
    """What a topic is: `lithify topic info` and `topic list`. Settings under Kafka's names."""

    topic: str
    original_name: str
    table: str
    """In the catalog: `load_table` of PyIceberg takes it."""
    partitions: int
    version: int
    records: int
    bytes: int
    view_records: int | None
    """Of the compacted views; null where there is none."""
    view_bytes: int | None
    location: str
    created_ms: int
    config: dict[str, str]
    config_from: dict[str, str]
    """Where each setting's value comes from: `topic`, `stream` or `default` (C56)."""
    source: str | None
    """Of a replica: the warehouse of the topic that it is a copy of (C63)."""
    source_version: int | None
    """The version of that topic that the replica has."""
    compacts_by_itself: bool | None
    """Of a replica: whether it has rounds of its own (C67)."""
    not_compacting: str | None
    """Of one that is to: why it has none."""
    copy_of: str | None = None
    """The Kafka topic that it is a copy of (C70)."""
    space: Space | None = None
    """What it takes with earlier versions; null in `topic list`, which reads only the topic's metadata."""


@dataclass(frozen=True, slots=True)
class VersionReport(Report):
    """A kept version: what it holds, and the commit that closed it."""

    topic: str
    version: int
    closed_ms: int
    closed_by: str
    """The run of that commit: of a round, the `run_id` of its report."""
    verb: Verb
    records: int
    bytes: int
    view_records: int | None
    view_bytes: int | None
    """Of the compacted views; null where there is none."""
    files_stay_until_ms: int
    """Its files stay at least until then, also if the version expires before (C6)."""


def volumes_of(state: TopicState) -> tuple[Volume, Volume | None]:
    """Of all logs, and of their compacted views; None where there is no view."""
    views = [log.view.volume for log in state.logs if log.view is not None]
    return sum((log.volume for log in state.logs), Volume()), sum(views, Volume()) if views else None


def version_report(kept: KeptVersion, state: TopicState, versions_retention_ms: int) -> VersionReport:
    """The report of a kept version, whose state is `state`."""
    logs, views = volumes_of(state)
    return VersionReport(
        topic=str(state.name),
        version=kept.version,
        closed_ms=kept.closed_ms,
        closed_by=kept.closed_by,
        verb=kept.verb,
        records=logs.records,
        bytes=logs.size_bytes,
        view_records=None if views is None else views.records,
        view_bytes=None if views is None else views.size_bytes,
        files_stay_until_ms=kept.closed_ms + versions_retention_ms,
    )
