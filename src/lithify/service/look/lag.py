"""What consumer groups have left to read, in records that are really there and in time (C59).

Reads metadata, and of each log the one segment that the position is within: its columns offset and timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lithify.errors import DamagedError, LithifyError, UnknownTopicError, UnusableEnvironmentError
from lithify.errors.defects import as_lithify_error
from lithify.model.groups.positions import Position
from lithify.model.groups.reads import TopicReads, reads_of
from lithify.model.names import LogId, TopicName
from lithify.model.segment import Segment, segments_of
from lithify.model.settings.units import format_time
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.groups import GroupLag
from lithify.rules.compaction.holds import holding
from lithify.rules.reading.continuation import Continuation, Continues, Gone, Untold, continuation, lost_error
from lithify.rules.reading.group_lag import Left, left_from
from lithify.rules.reading.pieces import Reading
from lithify.service.group_reads import of_this_log


def group_lag(warehouse: Warehouse, group: str, name: TopicName, positions: Sequence[Position]) -> list[GroupLag]:
    """The lag of a group in every log of a topic, and in those that no longer exist but have a position.

    A topic or log that cannot be read says why (C50). Raises `UnknownTopicError` for one without a position, and
    `UnusableEnvironmentError` if no topic can be read.
    """
    try:
        return _lags(warehouse, group, name, positions)
    except UnknownTopicError:
        raise
    except Exception as error:
        lithify_error = as_lithify_error(error, name)
        if isinstance(lithify_error, UnusableEnvironmentError):
            warehouse.store.topics()  # it is this topic alone, or else the same error ends it all
        by_partition = {position.log.partition: position for position in positions}
        partitions = sorted({*by_partition, *_partitions(warehouse, name)}) or [0]
        return [_unknown(group, LogId(name, p), by_partition.get(p), lithify_error) for p in partitions]


def _partitions(warehouse: Warehouse, name: TopicName) -> Iterable[int]:
    """The lags of a topic that cannot be read whole; none if even its metadata cannot be read."""
    with suppress(Exception):
        return warehouse.store.load(name).partitions
    return ()


def _lags(warehouse: Warehouse, group: str, name: TopicName, positions: Sequence[Position]) -> list[GroupLag]:
    by_partition = {position.log.partition: position for position in positions}
    try:
        state = warehouse.store.load(name)
    except UnknownTopicError:
        if not positions:
            raise
        return [_gone(position) for position in positions]
    segments = warehouse.store.segments(state)
    compacted = any(position.compacted for position in positions)
    view = warehouse.store.view(state) if compacted and state.settings.side_by_side else ()
    reads = reads_of(state, of_this_log(positions, state, warehouse.store))
    look = _Look(warehouse, state, group, segments, view, reads, warehouse.clock.now_ms())
    logs = [_lag(look, partition, by_partition.get(partition)) for partition in state.partitions]
    return logs + [_gone(position) for p, position in sorted(by_partition.items()) if p not in state.partitions]


@dataclass(frozen=True, slots=True)
class _Look:
    """A topic as it is read."""

    warehouse: Warehouse
    state: TopicState
    group: str
    segments: tuple[Segment, ...]
    view: tuple[Segment, ...]
    reads: TopicReads
    """Of this group; others that the topic names count as if they had read nothing."""
    now_ms: int


def _lag(look: _Look, partition: int, position: Position | None) -> GroupLag:
    log = look.state.log(partition)
    how = Reading(compacted=position is not None and position.compacted)
    found: Continuation = Continues() if position is None else _continuation(look.state, position)
    error = None if position is None else _lost(look.state, position, found)
    records: int | None = None
    lag_ms: int | None = None
    if isinstance(found, Continues | Untold):  # clients of Kafka go on nevertheless
        try:
            left = _left(look, log, how, how.start(log) if position is None else position.cursor.offset)
            records, lag_ms = left.records, 0 if left.oldest_ms is None else max(0, look.now_ms - left.oldest_ms)
        except DamagedError as damage:
            error = damage
    return GroupLag(
        group=look.group,
        topic=str(look.state.name),
        partition=partition,
        position=None if position is None else position.cursor.offset,
        log_end_offset=log.log_end_offset,
        lag=records,
        lag_ms=lag_ms,
        holds_tombstones=_holds(look, log),
        committed_at=None if position is None else format_time(position.committed_ms),
        error=None if error is None else str(error),
        error_code=None if error is None else error.code,
    )


def _holds(look: _Look, log: LogState) -> bool:
    """Whether the group holds tombstones of the log that would have expired (C61)."""
    return look.group in holding(log, look.state.settings, look.reads.of(log.partition), look.now_ms)


def _left(look: _Look, log: LogState, how: Reading, offset: int) -> Left:
    here, viewed = segments_of(look.segments, log.partition), segments_of(look.view, log.partition)
    found, files = left_from(log, here, viewed, how, offset), look.warehouse.files
    left = sum((files.left(part.segment, part.start_offset) for part in found.parts), found.left)
    for segment in found.masked:
        if left.oldest_ms is None or segment.min_timestamp_ms < left.oldest_ms:
            left += replace(files.left(segment, segment.base_offset), records=0)
    return left


def _continuation(state: TopicState, position: Position) -> Continuation:
    log = state.log(position.log.partition)
    return continuation(position.cursor, state, log, compacted=position.compacted)


def _lost(state: TopicState, position: Position, found: Continuation) -> LithifyError | None:
    """Why the group cannot continue; None if it can."""
    if isinstance(found, Continues):
        return None
    hint = f"continue there with `lithify group reset {position.group} {state.name} --to earliest`"
    return lost_error(position.log, position.cursor, found, hint)


def _gone(position: Position) -> GroupLag:
    hint = f"delete the position with `lithify group delete {position.group} {position.log.topic}`"
    lost = lost_error(position.log, position.cursor, Gone(), hint)
    return _unknown(position.group, position.log, position, lost)


def _unknown(group: str, log: LogId, position: Position | None, error: LithifyError) -> GroupLag:
    """Of a log that cannot be read, or is gone."""
    return GroupLag(
        group=group,
        topic=str(log.topic),
        partition=log.partition,
        position=None if position is None else position.cursor.offset,
        log_end_offset=None,
        lag=None,
        lag_ms=None,
        holds_tombstones=None,
        committed_at=None if position is None else format_time(position.committed_ms),
        error=str(error),
        error_code=error.code,
    )
