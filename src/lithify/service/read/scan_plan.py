"""Plans parallel reads: bounds become offsets, offsets become tasks over segments (C2, C7, C33).

    newest version   [ seg ][ seg ][   seg   ][seg]
    [start, end)         xxxxxxxxxxxxxxxxxx
    tasks                [ 1 ][  2  ][ 3 ]              bounded by bytes, never more than one log

Offsets are permanent (C1), so [start, end) has the same records in every version, except those that
a round has removed. A stream plans each batch on the newest version and neither repeats nor skips a
record. It reads metadata only; a bound in time also reads one segment of each log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lithify.errors import LithifyError, OffsetOutOfRangeError, RefusedError, UnknownTopicError
from lithify.model.cursor import AtTime, Start, checked_offset
from lithify.model.message import MessageId, MessagePosition
from lithify.model.names import LogId, TopicName, parse_topic
from lithify.model.scan import (
    AsOf,
    AsOfPoint,
    AsOfVersion,
    Bound,
    Everywhere,
    Listed,
    Matching,
    Offsets,
    PerLog,
    ScanPiece,
    ScanSettings,
    ScanTask,
    Subscription,
)
from lithify.model.segment import Segment, by_partition
from lithify.model.settings.units import format_time
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.reading.pieces import Reading, pieces_of
from lithify.service.creation import name_the_nearest
from lithify.service.read.as_of import AsOf as LogAsOf
from lithify.service.read.as_of import as_of
from lithify.service.read.open_version import OpenVersion
from lithify.service.read.version_reader import VersionReader, swept_error

TASK_BYTES = 128 * 2**20
"""Compressed bytes that a task reads: Spark's own default for files."""


def subscribed(warehouse: Warehouse, subscription: Subscription) -> tuple[TopicState, ...]:
    """The newest versions of the topics, by name. Raises `UnknownTopicError` for one that is listed and not there."""
    match subscription:
        case Listed(topics):
            names: Iterable[TopicName] = topics
        case Matching(pattern):
            names = [n for n in warehouse.store.topics() if any(re.fullmatch(pattern, s) for s in (str(n), n.stored))]
    return tuple(_loaded(warehouse, name) for name in sorted(set(names)))


def _loaded(warehouse: Warehouse, name: TopicName) -> TopicState:
    try:
        return warehouse.store.load(name)
    except UnknownTopicError as error:
        name_the_nearest(warehouse.store, name, error)
        raise


def offsets_at(
    warehouse: Warehouse, states: Iterable[TopicState], bound: Bound, settings: ScanSettings
) -> dict[str, dict[int, int]]:
    """The offsets that a bound means in these versions.

    Raises `OffsetOutOfRangeError` for an offset that is not in the log, unless data may be lost, and
    `RefusedError` or `UnknownTopicError` if the bound names other logs than there are.
    """
    by_name = {str(state.name): state for state in states}
    read = {name: settings.partitions(state) for name, state in by_name.items()}
    if isinstance(bound, PerLog):
        _check_named(bound, read)
    offsets: dict[str, dict[int, int]] = {}
    for name, state in by_name.items():
        version = OpenVersion(warehouse, state, read[name], Reading(compacted=settings.compacted))
        at = {partition: _position(bound, name, partition) for partition in read[name]}
        offsets[name] = {p: _offset(warehouse, version, p, position, settings) for p, position in at.items()}
    return offsets


def starts_at(
    warehouse: Warehouse, states: Sequence[TopicState], bound: Bound, settings: ScanSettings
) -> dict[str, dict[int, int]]:
    """`offsets_at` of the bound where a read starts.

    Raises `OffsetOutOfRangeError` too for a time at or after which a log has no record, as Spark's Kafka source does.
    """
    offsets = offsets_at(warehouse, states, bound, settings)
    for state in states if not settings.latest_without_match else ():
        for partition, offset in offsets[str(state.name)].items():
            position = _position(bound, str(state.name), partition)
            if isinstance(position, AtTime) and offset == state.log(partition).log_end_offset:
                raise OffsetOutOfRangeError(
                    f"{LogId(state.name, partition)}: no record is at or after {format_time(position.timestamp_ms)}",
                    hint="set startingOffsetsByTimestampStrategy=latest to start at the end of such a log",
                )
    return offsets


def check_ranges(start: Offsets, end: Offsets) -> None:
    """Raises `RefusedError` if a log would be read from an offset to one below it."""
    for topic, logs in start.items():
        for partition, first in logs.items():
            if first > end[topic][partition]:
                raise RefusedError(
                    f"{LogId(parse_topic(topic).name, partition)}: the start, offset {first}, is above the end, offset"
                    f" {end[topic][partition]}",
                    hint="start at or below the end",
                )


def plan_tasks(
    warehouse: Warehouse, states: Iterable[TopicState], start: Offsets, end: Offsets, settings: ScanSettings
) -> tuple[ScanTask, ...]:
    """Tasks that read the records of these versions in [start, end), log by log.

    A log that is not in `end` is not read; one that is not in `start` is new, and read from its first record on.
    """
    logs: list[tuple[TopicState, int, list[ScanPiece]]] = []
    for state in states:
        ranges = _ranges(state, start.get(str(state.name), {}), end.get(str(state.name), {}), settings)
        logs += [(state, p, pieces) for p, pieces in _pieces(warehouse, state, ranges, settings) if pieces]
    total = sum(piece.size_bytes for _, _, pieces in logs for piece in pieces)
    most = min(TASK_BYTES, max(1, -(-total // (settings.min_tasks or 1))))
    return tuple(
        ScanTask(str(state.name), partition, state.version, group)
        for state, partition, pieces in logs
        for group in _grouped(pieces, most, settings.max_task_offsets or 2**63)
    )


def why_missing(warehouse: Warehouse, task: ScanTask, segment: Segment) -> LithifyError | None:
    """As `swept_error`, of a segment that a task could not read."""
    hint = f"start the query again; it was at {task.pieces[0].start_offset}"
    return swept_error(warehouse, LogId(parse_topic(task.topic).name, task.partition), task.version, [segment], hint)


def plan_as_of(
    warehouse: Warehouse, states: Sequence[TopicState], point: AsOf, settings: ScanSettings
) -> tuple[ScanTask, ...]:
    """Tasks that read topics as they were: in a version, or up to a point with all that counted there (C69).

    Raises what `load_version` and `as_of` raise.
    """
    if isinstance(point, AsOfVersion):
        if len(states) != 1:
            raise RefusedError(f"version {point.version} belongs to one topic", hint="read the topics one by one")
        old = warehouse.store.load_version(states[0].name, point.version)
        ends = {p: old.log(p).log_end_offset for p in settings.partitions(old)}
        return plan_tasks(warehouse, [old], {}, {str(old.name): ends}, settings)
    parts: dict[tuple[TopicName, int, bool], tuple[TopicState, dict[int, int]]] = {}
    for state in states:
        for log in _logs_as_of(warehouse, state, point, settings):
            part = log.state.name, log.state.version, log.how.compacted
            parts.setdefault(part, (log.state, {}))[1][log.partition] = log.end
    return tuple(
        task
        for (name, _, compacted), (old, ends) in parts.items()
        for task in plan_tasks(warehouse, [old], {}, {str(name): ends}, replace(settings, compacted=compacted))
    )


def _logs_as_of(warehouse: Warehouse, state: TopicState, point: AsOfPoint, settings: ScanSettings) -> list[LogAsOf]:
    if isinstance(point.at, Mapping) and str(state.name) not in point.at:
        raise RefusedError(f"{state.name}: its offsets are missing")
    at = point.at[str(state.name)] if isinstance(point.at, Mapping) else point.at
    wanted = [None] if settings.assigned is None else settings.partitions(state)
    return [log for p in wanted for log in as_of(warehouse, state.name, at, p, compacted=settings.compacted)]


def _check_named(bound: PerLog, read: Mapping[str, Sequence[int]]) -> None:
    for name in bound.positions:
        if name not in read:
            raise UnknownTopicError(f"{name}: it has offsets, but is not among the topics to read")
    for name, partitions in read.items():
        given, there = set(bound.positions.get(name, {})), set(partitions)
        if given != there:
            wrong = sorted(given - there) or sorted(there - given)
            what = "there is no such partition to read" if given - there else "its offset is missing"
            raise RefusedError(
                f"{LogId(parse_topic(name).name, wrong[0])}: {what}",
                hint=f"pass an offset for each of the {len(there)} partitions to read",
            )


def _position(bound: Bound, topic: str, partition: int) -> Start:
    match bound:
        case Everywhere(position):
            return position
        case PerLog(positions):
            return positions[topic][partition]


def _offset(warehouse: Warehouse, version: OpenVersion, partition: int, position: Start, settings: ScanSettings) -> int:
    log = version.state.log(partition)
    how = Reading(compacted=settings.compacted)
    start, end = how.start(log), log.log_end_offset
    match position:
        case "earliest":
            return start
        case "latest":
            return end
        case AtTime() | MessageId() | MessagePosition():
            try:
                return VersionReader(warehouse, version, partition, position, how).position
            except OffsetOutOfRangeError:  # an id that was not copied yet
                if settings.fail_on_data_loss:
                    raise
                return end
        case _:
            if not settings.fail_on_data_loss:
                return min(max(position, start), end)
            return checked_offset(LogId(version.state.name, partition), start, end, position)


def _ranges(
    state: TopicState, start: Mapping[int, int], end: Mapping[int, int], settings: ScanSettings
) -> dict[int, tuple[int, int]]:
    """By partition what is read of it, where there is anything to read."""
    ranges = {}
    for partition, wanted_end in end.items():
        if partition not in state.partitions:
            continue
        wanted = start.get(partition, 0), wanted_end
        if wanted[0] >= wanted[1]:
            continue
        low, high = settings.filters.clipped(*wanted)
        chosen = settings.filters.partitions is None or partition in settings.filters.partitions
        if chosen and low < high:
            ranges[partition] = low, high
    return ranges


def _pieces(
    warehouse: Warehouse, state: TopicState, ranges: Mapping[int, tuple[int, int]], settings: ScanSettings
) -> Iterator[tuple[int, list[ScanPiece]]]:
    """By partition the parts of segments with its offsets, in order; those without a wanted record are left out."""
    if not ranges:
        return
    how = Reading(compacted=settings.compacted)
    segments = by_partition(warehouse.store.segments(state, list(ranges)))
    viewed = [p for p in ranges if how.reads_view(state.log(p))]
    view = by_partition(warehouse.store.view(state, viewed) if viewed else ())
    for partition, (start, end) in ranges.items():
        pieces = []
        for piece in pieces_of(state.log(partition), segments.get(partition, ()), view.get(partition, ()), how):
            segment = piece.segment
            low, high = max(start, piece.start_offset, segment.base_offset), min(end, segment.end_offset)
            if low < high and settings.filters.may_be_in(segment):
                pieces.append(ScanPiece(segment, low, high))
        yield partition, pieces


def _grouped(pieces: Iterable[ScanPiece], most_bytes: int, most_offsets: int) -> Iterator[tuple[ScanPiece, ...]]:
    """Groups of adjacent pieces of at most about `most_bytes` and `most_offsets`; larger pieces are split."""
    group: list[ScanPiece] = []
    for whole in pieces:
        for piece in whole.split(max(-(-whole.size_bytes // most_bytes), -(-whole.offsets // most_offsets))):
            size, offsets = sum(p.size_bytes for p in group), sum(p.offsets for p in group)
            if group and (size + piece.size_bytes > most_bytes or offsets + piece.offsets > most_offsets):
                yield tuple(group)
                group = []
            group.append(piece)
    if group:
        yield tuple(group)
