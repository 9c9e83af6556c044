"""Records from a place on, log by log, as Arrow tables; a page of them, and where it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lithify.api.topic import Topic
from lithify.columnar.segment.convert import records_of_key
from lithify.errors import RefusedError
from lithify.gateway.server.records.arguments import ReadQuery, point_of, start_of
from lithify.gateway.server.records.places import Place
from lithify.model.cursor import AtTime, Cursor, From, Start, check_of_all_logs
from lithify.model.names import LogId
from lithify.model.topic.state import TopicState
from lithify.rules.reading.continuation import lost_error, replaced
from lithify.rules.reading.pieces import Reading
from lithify.service.read.as_of import AsOf, as_of_before, records_of
from lithify.service.read.fetch import open_logs, version_of

PAGE_BYTES = 8 * 2**20
"""A page ends after about so many bytes of records; one larger record is a page of its own."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some records of one log, and where the log continues after them."""

    table: pa.Table
    after: Place


@dataclass(frozen=True, slots=True)
class Page:
    """`next` is where it continues, None at the end; it is full if there may be more now."""

    tables: list[pa.Table]
    next: Place | None
    is_full: bool


class TopicReading:
    """What one request reads, in one version of the topic; up to a point, in one that covers it for each log.

    Raises what `version_of` raises, `RefusedError` or `InvalidInputError` for arguments that do not fit together.
    """

    def __init__(self, topic: Topic, query: ReadQuery) -> None:
        self._topic, self._query = topic, query
        self._place = None if query.cursor is None else Place.parsed(query.cursor)
        self._start = start_of(query.start)
        self._to = None if query.to is None else point_of("to", query.to)
        if self._to is not None and query.version is not None:
            raise RefusedError("to selects the version itself and cannot be combined with version")
        self.state = version_of(topic.warehouse, topic.topic_name, query.version)
        self._partitions = self._logs()
        self._key = query.key_bytes()
        _check_one_log(self.state, self._partitions, query, self._start, self._to)

    def parts(self) -> Iterator[Part]:
        """All records from the place on. Raises what readers raise."""
        parts = self._newest() if self._to is None else self._up_to(self._to)
        return (replace(part, table=records_of_key(part.table, self._key)) for part in parts)

    def page(self, records: int) -> Page:
        """At most so many records."""
        tables: list[pa.Table] = []
        left_bytes, after, parts = PAGE_BYTES, None, self.parts()
        for part in parts:
            table = _cut(part.table, records, left_bytes, may_be_none=bool(tables))
            if table.num_rows:
                tables.append(table)
                records, left_bytes = records - table.num_rows, left_bytes - table.nbytes
            after = part.after
            if table.num_rows < part.table.num_rows or not records:
                return Page(tables, _moved(after, part.table, table.num_rows), is_full=True)
        one_log = self._query.partition is not None and self._to is None
        return Page(tables, after if one_log else None, is_full=False)

    def _logs(self) -> list[int]:
        """The logs that are left to be read, in order."""
        query, place = self._query, self._place
        for partition in (query.partition, None if place is None else place.partition):
            if partition is not None:
                self.state.check_partition(partition)
        if place is not None and query.partition not in (None, place.partition):
            raise RefusedError("the cursor belongs to another partition", hint="send the partition of its request")
        if query.partition is not None:
            return [query.partition]
        return [number for number in self.state.partitions if place is None or number >= place.partition]

    def _from(self, partition: int) -> From:
        if self._place is not None and self._place.partition == partition:
            return self._place.at
        return self._start

    def _checked_from(self, partition: int) -> Start:
        """The same up to a point. Raises `LogTruncatedError` if the log now has other records below it."""
        start = self._from(partition)
        if not isinstance(start, Cursor):
            return start
        if (lost := replaced(start, self.state, self.state.log(partition))) is not None:
            raise lost_error(LogId(self.state.name, partition), start, lost, "start again, without a cursor")
        return start.offset

    def _newest(self) -> Iterator[Part]:
        how = Reading(compacted=self._query.compacted)
        starts = {partition: self._from(partition) for partition in self._partitions}
        for partition, reader in zip(starts, open_logs(self._topic.warehouse, self.state, starts, how), strict=True):
            for table in reader.batches():
                yield Part(table, Place(partition, reader.cursor()))
            yield Part(_nothing(self.state), Place(partition, reader.cursor()))

    def _up_to(self, to: int | AtTime) -> Iterator[Part]:
        warehouse, state, versions = self._topic.warehouse, self.state, self._versions(to)
        # Of a log that no version covers, nothing before it is sent either; a page needs few of the logs.
        for version, start in versions if self._query.max is not None else tuple(versions):
            log = state.log(version.partition)
            for batch in records_of(warehouse, version, start):
                yield Part(batch.to_arrow(), Place(log.partition, Cursor.of(state, log, batch.end_offset)))

    def _versions(self, to: int | AtTime) -> Iterator[tuple[AsOf, Start]]:
        """By log, the version to read, and where to start in it."""
        warehouse, compacted = self._topic.warehouse, self._query.compacted
        for partition in self._partitions:
            start = self._checked_from(partition)
            for version in as_of_before(warehouse, self.state, to, partition, compacted=compacted):
                yield version, start


def _nothing(state: TopicState) -> pa.Table:
    from lithify.columnar.segment.schema import schema_of

    return schema_of(state.settings).empty_table()


def _check_one_log(
    state: TopicState, partitions: list[int], query: ReadQuery, start: Start, to: int | AtTime | None
) -> None:
    """Offsets and message ids belong to one log, if the topic has several."""
    if query.partition is not None or len(state.partitions) == 1:
        return
    check_of_all_logs(start)
    if isinstance(to, int):
        raise RefusedError(f"offset {to} belongs to one log", hint="pass a partition, or a time for all of them")


def _cut(table: pa.Table, records: int, size_bytes: int, *, may_be_none: bool) -> pa.Table:
    """The first records of a table: at most so many, and about so many bytes; at least one unless none may be."""
    table = table.slice(0, records)
    while table.num_rows > 1 and table.nbytes > size_bytes:
        table = table.slice(0, table.num_rows // 2)
    return table.slice(0, 0) if may_be_none and table.nbytes > size_bytes else table


def _moved(after: Place, table: pa.Table, taken: int) -> Place:
    """Where the log continues if only the first records of a table were taken."""
    if taken == table.num_rows:
        return after
    offset: Any = table.column("offset")[taken].as_py()
    at = after.at
    return replace(after, at=replace(at, offset=offset) if isinstance(at, Cursor) else offset)
