"""Reads logs as they were at an offset or a time: the newest version that covers it, or a kept one (C69).

    wanted ──► newest version, kept versions from the newest on ──► the first that covers it ──► its records below it
                                                              └─► none: refused, with the nearest that is covered

A time is compared with records: it means the offset of the first one at or after it, as for readers that start there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from lithify.errors import OffsetOutOfRangeError, RefusedError, UnknownVersionError, VersionSweptError
from lithify.model.cursor import AtTime, From, whole_offset
from lithify.model.names import LogId, TopicName
from lithify.model.settings.units import format_time
from lithify.model.topic.state import TopicState
from lithify.ports.files import Batch
from lithify.ports.store import Warehouse
from lithify.rules.compaction.survivor_rules import table_rules
from lithify.rules.reading.pieces import Reading, pieces_of
from lithify.rules.reading.points import Points, points_of
from lithify.service.read.fetch import open_log
from lithify.service.read.version_reader import latest

At = int | AtTime | Mapping[int, int]
"""An offset of one log, exclusive; a time in all of them; or the offset of each, by partition."""


@dataclass(frozen=True, slots=True)
class AsOf:
    """The records of a log below `end`, in a version that has all that counted then."""

    state: TopicState
    partition: int
    end: int
    how: Reading


def table_at(
    warehouse: Warehouse, name: TopicName, at: At, partition: int | None, key: bytes | None = None
) -> Iterator[Batch]:
    """The latest value of every live key, or of one, log by log, as it was at a point.

    Raises what `as_of` and `latest` raise.
    """
    for version in as_of(warehouse, name, at, partition, compacted=True):
        state, log, only = version.state, version.state.log(version.partition), [version.partition]
        view = warehouse.store.view(state, only) if version.how.reads_view(log) else ()
        pieces = pieces_of(log, warehouse.store.segments(state, only), view, version.how)
        rules = replace(table_rules(log, state.settings), horizon=version.end, tombstones_expire_below=version.end)
        below = [piece.segment for piece in pieces if piece.segment.base_offset < version.end]
        yield from latest(warehouse, state, version.partition, below, rules, key)


def records_to(
    warehouse: Warehouse, name: TopicName, at: At, partition: int | None, start: From, *, compacted: bool
) -> Iterator[Batch]:
    """The records from `start` to a point, log by log, with all that counted at that point.

    Raises what `as_of` and `open_log` raise.
    """
    for version in as_of(warehouse, name, at, partition, compacted=compacted):
        yield from records_of(warehouse, version, start)


def records_of(warehouse: Warehouse, version: AsOf, start: From) -> Iterator[Batch]:
    """The same of one log. Raises what `open_log` raises."""
    for batch in open_log(warehouse, version.state, version.partition, start, version.how).poll():
        part = batch.below(version.end)
        if len(part):
            yield part
        if batch.end_offset >= version.end:
            break


def as_of(warehouse: Warehouse, name: TopicName, at: At, partition: int | None, *, compacted: bool) -> tuple[AsOf, ...]:
    """By log, a version to read. Raises `OffsetOutOfRangeError` if none covers the point, or `RefusedError`."""
    return as_of_before(warehouse, warehouse.store.load(name), at, partition, compacted=compacted)


def as_of_before(
    warehouse: Warehouse, newest: TopicState, at: At, partition: int | None, *, compacted: bool
) -> tuple[AsOf, ...]:
    """The same where `newest` is the newest version, or was it a moment ago."""
    wanted = _by_log(newest, at, partition)
    kept = _Kept(warehouse, newest)
    return tuple(_version_at(warehouse, kept, number, point, compacted=compacted) for number, point in wanted.items())


def _by_log(newest: TopicState, at: At, partition: int | None) -> dict[int, int | AtTime]:
    if isinstance(at, Mapping):
        for number in (*at, *([] if partition is None else [partition])):
            newest.check_partition(number)
        missing = sorted({*newest.partitions} - at.keys()) if partition is None else [partition] * (partition not in at)
        if missing:
            raise RefusedError(f"{LogId(newest.name, missing[0])}: its offset is missing")
        return {number: at[number] for number in (newest.partitions if partition is None else [partition])}
    if partition is not None:
        newest.check_partition(partition)
        return {partition: at}
    if isinstance(at, AtTime) or len(newest.partitions) == 1:
        return dict.fromkeys(newest.partitions, at)
    raise RefusedError(f"offset {at} belongs to one log", hint="pass a partition, or a time for all of them")


class _Kept:
    """The newest version, then the kept ones that can still be read, each loaded once, when it is needed."""

    def __init__(self, warehouse: Warehouse, newest: TopicState) -> None:
        self.newest = newest
        self._loaded = [newest]
        self._more = _loads(warehouse, newest)

    def __iter__(self) -> Iterator[TopicState]:
        yield from self._loaded
        for state in self._more:
            self._loaded.append(state)
            yield state


def _loads(warehouse: Warehouse, newest: TopicState) -> Iterator[TopicState]:
    for kept in warehouse.store.versions(newest.name):
        try:
            state = warehouse.store.load_version(newest.name, kept.version)
        except (UnknownVersionError, VersionSweptError):
            continue  # it expired meanwhile
        if state.identity == newest.identity:
            yield state


def _version_at(warehouse: Warehouse, kept: _Kept, partition: int, at: int | AtTime, *, compacted: bool) -> AsOf:
    point = at if isinstance(at, AtTime) else whole_offset(LogId(kept.newest.name, partition), at)
    covered: list[Points] = []
    for state in kept:
        if partition not in state.partitions:
            continue
        for points in points_of(state, partition, kept.newest, compacted=compacted):
            end = _end(warehouse, kept, state, partition, point, points)
            if end is not None:
                return AsOf(state, partition, end, points.how)
            covered.append(points)
    raise _uncovered(warehouse, kept.newest, partition, point, covered)


def _end(
    warehouse: Warehouse, kept: _Kept, state: TopicState, partition: int, point: int | AtTime, points: Points
) -> int | None:
    """The offset that a point means in a version; None if that does not cover it."""
    if not isinstance(point, AtTime):
        return point if points.first <= point <= points.last else None
    end = open_log(warehouse, state, partition, point, points.how).position
    if not points.first <= end <= points.last:
        return None
    if state.version != kept.newest.version and end == state.log(partition).log_end_offset:
        return None  # a later version may have more records before that time
    return end if points.whole or _is_certain(warehouse, state, partition, point, points, end) else None


def _is_certain(
    warehouse: Warehouse, state: TopicState, partition: int, point: AtTime, points: Points, end: int
) -> bool:
    """Whether the first record at or after a time was not one that rounds removed: all of these are below `first`.

    So it is where a record at or after the last of these is before that time, or where the round itself was. That
    holds for timestamps that do not descend, and none of which is ahead of the clock of the round.
    """
    log = state.log(partition)
    if log.last_round_ms is not None and log.last_round_ms <= point.timestamp_ms:
        return True
    start = max(points.first - 1, points.how.start(log))
    before = open_log(warehouse, state, partition, start, points.how).read_next()
    return before is not None and before.offset is not None and before.offset < end


def _uncovered(
    warehouse: Warehouse, newest: TopicState, partition: int, point: int | AtTime, covered: list[Points]
) -> OffsetOutOfRangeError:
    log, id_ = newest.log(partition), LogId(newest.name, partition)
    if isinstance(point, AtTime):
        what = format_time(point.timestamp_ms)
        offset = open_log(warehouse, newest, partition, point).position
    else:
        what, offset = f"offset {point}", point
    outside = not log.compacted_start <= offset <= log.log_end_offset
    why = (
        f"the log has offsets [{log.compacted_start}, {log.log_end_offset}]"
        if outside
        else "rounds have removed records of that state, and no retained version has them"
    )
    edges = chain.from_iterable(
        (max(points.first, min(points.last, offset)), points.first, points.last) for points in covered
    )
    nearest = min(edges, key=lambda edge: abs(edge - offset), default=None)
    hint = "read the newest state" if nearest is None else f"use offset {nearest}, the nearest one that can be read"
    return OffsetOutOfRangeError(f"{id_}: {what} cannot be read as it was: {why}", hint=hint)
