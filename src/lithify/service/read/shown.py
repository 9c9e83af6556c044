"""A few records as a person is shown them: of a log from an offset on, the latest, or the records of one key.

All of it is bounded: `MOST` records and `MOST_BYTES` of payload, and for a key the newest `READ_FOR_A_KEY` records of
at most `LOGS_FOR_A_KEY` logs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from lithify.errors import InvalidInputError, UnknownVersionError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import Segment, by_partition
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.looks.records import KeyReport, KeyVersion, RecordsReport, shown_bytes, shown_record
from lithify.service.read.fetch import open_log, table_batches

MOST = 200
MOST_BYTES = 8 * 2**20
READ_FOR_LATEST = 20_000
"""Records that are passed over, at most, to come to the latest ones."""
READ_FOR_A_KEY = 50_000
READ_BYTES = 64 * 2**20
"""Of a log, compressed, for either of them."""
LOGS_FOR_A_KEY = 8
VERSIONS_FOR_A_KEY = 10


def records_report(
    warehouse: Warehouse, name: TopicName, partition: int, start: int | None, limit: int
) -> RecordsReport:
    """Up to `limit` records from the offset `start` on, or without one the latest.

    Raises `UnknownTopicError`, `OffsetOutOfRangeError` or `InvalidInputError`.
    """
    if not 1 <= limit <= MOST:
        raise InvalidInputError(f"limit {limit} is not possible", hint=f"use 1 to {MOST}")
    state = warehouse.store.load(name)
    state.check_partition(partition)
    log = state.log(partition)
    if start is None:
        found, after = _latest_records(warehouse, state, partition, limit), None
    else:
        found, after = _bounded(_read(warehouse, state, partition, start), limit)
    return RecordsReport(
        topic=str(state.name),
        partition=partition,
        version=state.version,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        records=tuple(map(shown_record, found)),
        next_offset=after,
    )


def key_report(warehouse: Warehouse, name: TopicName, key: bytes) -> KeyReport:
    """The latest record of a key, what the newest part of the logs has of it, and what it was at retained versions.

    If it lives in several partitions, the record of the latest time is the latest. Raises `UnknownTopicError`, and what
    reading raises.
    """
    state = warehouse.store.load(name)
    segments = by_partition(warehouse.store.segments(state))
    found: deque[Record] = deque(maxlen=MOST)
    read_from: dict[int, int] = {}
    whole = len(state.logs) <= LOGS_FOR_A_KEY
    for log in state.logs[:LOGS_FOR_A_KEY]:
        begin = max(
            log.log_start_offset,
            _newest(segments.get(log.partition, ()), _in_reach(log, READ_FOR_A_KEY), log.log_end_offset),
        )
        whole = whole and begin <= max(log.log_start_offset, _first(segments.get(log.partition, ()), begin))
        read_from[log.partition] = begin
        found.extend(record for record in _read(warehouse, state, log.partition, begin) if record.key == key)
    kept = sorted(warehouse.store.versions(name), key=lambda version: -version.version)[:VERSIONS_FOR_A_KEY]
    earlier = (_at_version(warehouse, name, version.version, key) for version in kept)
    latest = _latest(warehouse, state, key)
    return KeyReport(
        topic=str(state.name),
        version=state.version,
        key=shown_bytes(key),
        latest=None if latest is None else shown_record(latest),
        records=tuple(map(shown_record, sorted(found, key=_newest_first))),
        read_from=read_from,
        whole=whole,
        versions=tuple(version for version in earlier if version is not None),
    )


def _at_version(warehouse: Warehouse, name: TopicName, version: int, key: bytes) -> KeyVersion | None:
    try:
        record = _latest(warehouse, warehouse.store.load_version(name, version), key)
    except UnknownVersionError:  # it expired since it was listed
        return None
    return KeyVersion(version, None if record is None else shown_record(record))


def _latest(warehouse: Warehouse, state: TopicState, key: bytes) -> Record | None:
    batches = table_batches(warehouse, state, key=key)
    return min((record for batch in batches for record in batch.records()), key=_newest_first, default=None)


def _newest_first(record: Record) -> tuple[int, int]:
    return -(record.timestamp or 0), -(record.offset or 0)


def _first(segments: tuple[Segment, ...], otherwise: int) -> int:
    return segments[0].base_offset if segments else otherwise


def _in_reach(log: LogState, records: int) -> int:
    """So many records, or fewer if they are large on average."""
    average = log.volume.size_bytes / max(1, log.volume.records)
    return max(1, min(records, int(READ_BYTES / max(1.0, average))))


def _newest(segments: tuple[Segment, ...], records: int, end_offset: int) -> int:
    """An offset from which a log has about the last `records`, at least if it has so many."""
    left, begin = records, end_offset
    for segment in reversed(segments):
        if left <= 0:
            break
        left -= segment.records
        begin = segment.base_offset
        if segment.records > records:  # the whole of it would be too much
            begin = max(begin, segment.end_offset - records)
    return begin


def _latest_records(warehouse: Warehouse, state: TopicState, partition: int, limit: int) -> list[Record]:
    """The last records, by ever more offsets before the log end, as rounds may have removed most of them."""
    log = state.log(partition)
    least = _newest(
        warehouse.store.segments(state, [partition]), _in_reach(log, max(limit, READ_FOR_LATEST)), log.log_end_offset
    )
    least, offsets = max(least, log.log_start_offset), limit
    while True:
        begin = max(least, log.log_end_offset - offsets)
        found, cut = _tail(_read(warehouse, state, partition, begin), limit)
        if cut or len(found) == limit or begin == least:
            return found
        offsets *= 8


def _read(warehouse: Warehouse, state: TopicState, partition: int, start: int) -> Iterator[Record]:
    for batch in open_log(warehouse, state, partition, start).poll():
        yield from batch.records()


def _tail(records: Iterator[Record], limit: int) -> tuple[list[Record], bool]:
    """The last ones, and whether `MOST_BYTES` allow no more."""
    last, size = list(deque(records, maxlen=limit)), 0
    for number, record in enumerate(reversed(last)):
        size += record.size_bytes
        if size > MOST_BYTES and number:
            return last[-number:], True
    return last, False


def _bounded(records: Iterator[Record], limit: int) -> tuple[list[Record], int | None]:
    """The first ones, and the offset of the one after them."""
    found: list[Record] = []
    size = 0
    for record in records:
        size += record.size_bytes
        if len(found) == limit or (found and size > MOST_BYTES):
            return found, record.offset
        found.append(record)
    return found, None
