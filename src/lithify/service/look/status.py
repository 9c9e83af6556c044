"""The state of a topic's logs, of the topic, and its retained versions: `status`, `topic info`, `versions` (C6, C7).

Reads metadata only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from lithify.errors import LithifyError, UnknownTopicError, UnknownVersionError
from lithify.errors.defects import as_lithify_error
from lithify.model.failure import LogFailure
from lithify.model.groups.reads import LogReads
from lithify.model.names import TopicName, in_order
from lithify.model.segment import Segment, by_partition, volume_of
from lithify.model.settings.inheritance import origins
from lithify.model.settings.stream_attributes import StreamAttributes
from lithify.model.settings.topic_settings import to_config
from lithify.model.sources.origin import origin_text
from lithify.model.topic.edit import KeptVersion
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import LogStore, Warehouse
from lithify.reports.status import GroupHold, LogStatus, TopicStatus, ViewStatus
from lithify.reports.topics import TopicInfo, VersionReport, version_report, volumes_of
from lithify.rules.compaction.eligible.retention import segments_awaiting_round
from lithify.rules.compaction.holds import Hold, holds
from lithify.rules.compaction.tombstones import delete_retention_point
from lithify.rules.lifecycle.own_views import why_not_compacting
from lithify.rules.schedule.assessment import OF_A_REPLICA, assess, entries_that_may_hide_values
from lithify.service.creation import all_attributes
from lithify.service.documents import failures_of
from lithify.service.group_reads import read_groups
from lithify.service.look.space import space_of
from lithify.waits.parallel import for_each

T = TypeVar("T")


def topic_status(warehouse: Warehouse, state: TopicState, *, now_ms: int | None = None) -> TopicStatus:
    """Every log of `state`: offsets, what limits the horizon, whether it is due and why (C21, C27, C28, C31)."""
    segments = by_partition(warehouse.store.segments(state))
    failures = failures_of(warehouse.store, state)
    reads = read_groups(warehouse, state)
    judged_ms = warehouse.clock.now_ms() if now_ms is None else now_ms
    logs = tuple(
        _with_failure(
            _log_status(state, log, segments.get(log.partition, ()), judged_ms, reads.of(log.partition)),
            failures.get(log.partition),
        )
        for log in state.logs
    )
    return TopicStatus(
        topic=str(state.name),
        version=state.version,
        cleanup_policy=state.settings.cleanup_policy,
        compaction_mode=state.settings.compaction_mode,
        logs=logs,
        now_ms=judged_ms,
        now_given=now_ms is not None,
        groups_error=reads.error,
        space=space_of(warehouse.store, state),
    )


def topic_info(warehouse: Warehouse, state: TopicState) -> TopicInfo:
    """Partitions, sizes and settings of the topic, from its newest metadata, and the attributes of its stream."""
    (info,) = infos_of(warehouse.store, [state])
    return replace(info, space=space_of(warehouse.store, state))


TellFailure = Callable[[str, LithifyError], None]
"""Told of a topic that could not be read, by name."""


def topic_infos(warehouse: Warehouse, failed: TellFailure | None = None) -> tuple[TopicInfo, ...]:
    """The same of all topics by name. The attributes of all streams are read at once.

    With `failed` it is told of each topic that cannot be read, and the others are returned.
    """
    states, errors = read_topics(warehouse.store, lambda state: state)
    tell_failures(errors, failed)
    return infos_of(warehouse.store, [states[name] for name in sorted(states, key=in_order)])


def tell_failures(errors: Mapping[TopicName, LithifyError], failed: TellFailure | None) -> None:
    """Tells of topics that could not be read, by name. Raises the first of their errors if nobody is to be told."""
    for name in sorted(errors, key=in_order):
        if failed is None:
            raise errors[name]
        failed(str(name), errors[name])


def infos_of(store: LogStore, states: Sequence[TopicState]) -> tuple[TopicInfo, ...]:
    """What topics are, without their space. The attributes of their streams are read at once."""
    known = all_attributes(store, {state.name.stream for state in states})
    return tuple(_info(state, known.get(state.name.stream)) for state in states)


def _info(state: TopicState, attributes: StreamAttributes | LithifyError | None) -> TopicInfo:
    logs, views = volumes_of(state)
    inherited = attributes.inherited if isinstance(attributes, StreamAttributes) else {}
    setting_origins = origins(state.settings, state.own_settings, inherited)
    return TopicInfo(
        topic=str(state.name),
        original_name=state.original_name or str(state.name),
        table=f"{state.name.stream}.{state.name.topic}",
        partitions=len(state.logs),
        version=state.version,
        records=logs.records,
        bytes=logs.size_bytes,
        view_records=None if views is None else views.records,
        view_bytes=None if views is None else views.size_bytes,
        location=state.location,
        created_ms=state.created_ms,
        config=to_config(state.settings),
        config_from={name: str(origin) for name, origin in setting_origins.items()},
        source=None if state.replica is None else state.replica.source,
        source_version=None if state.replica is None else state.replica.version,
        compacts_by_itself=None if state.replica is None else state.replica.compacts,
        not_compacting=why_not_compacting(state),
        copy_of=origin_text(state.origin) or None,
    )


def _log_status(
    state: TopicState, log: LogState, segments: tuple[Segment, ...], now_ms: int, reads: LogReads
) -> LogStatus:
    settings = state.round_settings
    assessment = assess(log, segments, settings, now_ms, reads)
    horizon, dirt, verdict = assessment.horizon, assessment.dirtiness, assessment.verdict
    if not state.takes_rounds:
        verdict = OF_A_REPLICA
    in_dirty_part = sum(s.null_values for s in segments if s.end_offset > log.first_dirty_offset)
    return LogStatus(
        partition=log.partition,
        log_start_offset=log.log_start_offset,
        first_dirty_offset=log.first_dirty_offset,
        horizon=horizon.offset,
        horizon_limited_by=horizon.limited_by,
        horizon_held_by=horizon.held_by,
        log_end_offset=log.log_end_offset,
        records=log.volume.records,
        bytes=log.volume.size_bytes,
        segments=len(segments),
        masked_records=sum(s.records_in_file - s.records for s in segments),
        clean_bytes=dirt.clean_bytes,
        dirty_bytes=dirt.dirty_bytes,
        dirty_ratio=round(dirt.ratio, 4),
        tombstones=log.tombstones + in_dirty_part,
        delete_retention_point=delete_retention_point(log),
        next_tombstone_expiry_ms=assessment.next_tombstone_expiry_ms,
        tombstones_held_below=log.held_below(horizon.offset),
        holds=tuple(map(_group_hold, holds(log, settings, reads, now_ms))),
        backlog_read_below=reads.backlog_below if reads.trimming else None,
        passed_through=entries_that_may_hide_values(log, settings),
        chunks=log.compacted_volume.chunks,
        retention_waiting_bytes=volume_of(segments_awaiting_round(log, segments, settings, now_ms)).size_bytes,
        owed=log.round_required or None,
        due=verdict.due,
        due_reason=verdict.reason,
        due_at_ms=verdict.due_at_ms,
        overdue_ms=verdict.overdue_ms,
        last_round_ms=log.last_round_ms,
        last_round_id=log.last_round or None,
        view=_view_status(log),
    )


def _group_hold(hold: Hold) -> GroupHold:
    read = hold.read
    return GroupHold(
        group=read.group,
        position=None if read.committed_ms is None else read.offset,
        committed_ms=read.committed_ms,
        tombstones=hold.tombstones,
        since_ms=hold.since_ms,
        until_ms=hold.until_ms,
        missed_below=hold.missed_below,
    )


def _with_failure(status: LogStatus, failure: LogFailure | None) -> LogStatus:
    if failure is None:
        return status
    return replace(
        status,
        failures=failure.failures,
        failed_ms=failure.last_ms,
        retry_ms=None if failure.quarantined else failure.retry_ms,
        error=failure.error,
        error_code=failure.error_code,
        quarantined=failure.quarantined,
    )


def _view_status(log: LogState) -> ViewStatus | None:
    if log.view is None:
        return None
    view = log.view
    return ViewStatus(view.volume.records, view.volume.size_bytes, view.first_offset, log.compacted_start)


def kept_versions(warehouse: Warehouse, name: TopicName) -> tuple[VersionReport, ...]:
    """Every retained version, newest first. Raises `UnknownTopicError`."""
    newest = warehouse.store.load(name)
    states = ((kept, _kept_state(warehouse, name, kept)) for kept in warehouse.store.versions(name))
    retention_ms = newest.settings.versions_retention_ms
    return tuple(version_report(kept, state, retention_ms) for kept, state in states if state is not None)


def _kept_state(warehouse: Warehouse, name: TopicName, kept: KeptVersion) -> TopicState | None:
    try:
        return warehouse.store.load_version(name, kept.version)
    except UnknownVersionError:  # it expired in another commit since it was listed
        return None


def read_topics(
    store: LogStore,
    read: Callable[[TopicState], T],
    known: Callable[[TopicName, str | None], TopicState | None] = lambda _name, _token: None,
) -> tuple[dict[TopicName, T], dict[TopicName, LithifyError]]:
    """What `read` returns for each topic of the catalog, and the errors of those that cannot be read (C50).

    A topic whose state at its token is `known` is not loaded. Raises `WarehouseError` if the catalog cannot be reached.
    """
    by_topic: dict[TopicName, T] = {}
    errors: dict[TopicName, LithifyError] = {}

    def read_one(at: tuple[TopicName, str | None]) -> None:
        name, token = at
        try:
            by_topic[name] = read(store.load_at(name, token))
        except UnknownTopicError:
            pass  # deleted meanwhile, or no topic
        except Exception as error:
            errors[name] = as_lithify_error(error, name)

    unread: list[tuple[TopicName, str | None]] = []
    for name, token in store.change_tokens():
        state = known(name, token)
        if state is None:
            unread.append((name, token))
        else:
            by_topic[name] = read(state)
    for_each(read_one, unread, store.at_once)
    return by_topic, errors
