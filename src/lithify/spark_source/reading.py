"""Readers: the driver plans tasks, tasks read pieces of segments to Arrow batches.

    driver   states ─► offsets [start, end) ─► tasks      metadata only
    task     piece  ─► row groups ─► requested columns ─► record batches of some 16,000

The offset of a stream, in Spark's sense, is the cursors of its logs (`lithify.rules.reading.stream_cursors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lithify.api.wiring import groups_of, machine
from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.schema import OFFSET
from lithify.columnar.segment.segment_reader import read_segment
from lithify.coordination.groups.group_progress import Progress
from lithify.errors import DamagedError
from lithify.model.scan import Everywhere, Offsets, ScanPiece, ScanTask
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.reading.stream_cursors import (
    Cursors,
    check_continues,
    cursors_at,
    from_json,
    log_ends,
    offsets_of,
    offsets_to_json,
    resumed_at,
    to_json,
)
from lithify.service.read.scan_plan import (
    check_ranges,
    offsets_at,
    plan_as_of,
    plan_tasks,
    starts_at,
    subscribed,
    why_missing,
)
from lithify.spark_source.columns import stored_columns, to_spark
from lithify.spark_source.filters import bounds
from lithify.spark_source.options import Connect, ReadOptions, check_batch, check_stream
from lithify.spark_source.refusals import without_traceback

_EARLIEST, _LATEST = Everywhere("earliest"), Everywhere("latest")


class TaskPartition(InputPartition):  # type: ignore[misc]
    """The input of one task, serialised to it."""

    def __init__(self, access: FileAccess, task: ScanTask) -> None:
        super().__init__(task)
        self.access = access


class _TaskReader:
    """The part of a reader that runs in tasks. It is serialised to them, so it holds `Connect`, not a warehouse."""

    def __init__(self, connect: Connect, options: ReadOptions, schema: StructType) -> None:
        self._connect, self._options, self._schema = connect, options, schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a task, in offset order, as batches of the schema. Raises `DamagedError`."""
        if isinstance(partition, TaskPartition):  # Spark creates another kind if there are no partitions
            with without_traceback():
                yield from self._batches(partition.access, partition.value)

    def _batches(self, access: FileAccess, task: ScanTask) -> Iterator[pa.RecordBatch]:
        columns = stored_columns(self._schema)
        for piece in task.pieces:
            try:
                for table in _records(access, piece, columns):
                    yield from to_spark(table, task.topic, self._schema)
            except DamagedError as error:
                # Files of a version are guaranteed only while it is retained (C7).
                raise why_missing(self._connect(), task, piece.segment) or error from error


def _records(access: FileAccess, piece: ScanPiece, columns: list[str]) -> Iterator[pa.Table]:
    """The records of a piece up to its end offset, one row group at a time."""
    needed = columns if OFFSET in columns else [*columns, OFFSET]
    for table in read_segment(access, piece.segment, start_offset=piece.start_offset, columns=needed):
        last = table.column(OFFSET)[-1].as_py()
        yield table if last < piece.end_offset else table.filter(pc.field(OFFSET) < piece.end_offset)
        if last >= piece.end_offset - 1:
            return


class _PushedFilters:
    """The method `pushFilters` of a reader, hidden from a check of Spark.

    Spark 4.2 refuses a reader that overrides the method while filter pushdown is disabled, and detects that
    by `__func__`. So `__func__` is the original method here; with pushdown enabled Spark calls the object.
    """

    def __init__(self, take: Callable[[list[Filter]], None]) -> None:
        self._take = take
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        """Stores the filters and returns all of them, so that Spark evaluates them again."""
        self._take(filters)
        return filters


class BatchReader(_TaskReader, DataSourceReader):  # type: ignore[misc]
    """Reads the newest versions once, from `startingOffsets` to `endingOffsets`, or what was there at a point.

    Raises `RefusedError`.
    """

    def __init__(self, connect: Connect, options: ReadOptions, schema: StructType) -> None:
        check_batch(options)
        super().__init__(connect, options, schema)
        self._filters: list[Filter] = []

    @property
    def pushFilters(self) -> _PushedFilters:  # noqa: N802 - Spark's name
        """Accepts the filters that Spark pushes down."""
        return _PushedFilters(self._filters.extend)

    @without_traceback()
    def partitions(self) -> list[InputPartition]:
        """Tasks for parts of the logs: bounded in bytes, and at least `minPartitions` where possible."""
        warehouse, options = self._connect(), self._options
        states = subscribed(warehouse, options.subscription)
        settings = replace(options.settings, filters=bounds(self._filters))
        if options.as_of is not None:
            tasks = plan_as_of(warehouse, states, options.as_of, settings)
        else:
            start = starts_at(warehouse, states, options.start or _EARLIEST, settings)
            end = offsets_at(warehouse, states, options.end or _LATEST, settings)
            check_ranges(start, end)
            tasks = plan_tasks(warehouse, states, start, end, settings)
        return [TaskPartition(warehouse.files.access, task) for task in tasks]


class StreamReader(_TaskReader, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads new records batch by batch; each batch is planned on the newest versions. Raises `RefusedError`."""

    def __init__(self, connect: Connect, options: ReadOptions, schema: StructType) -> None:
        check_stream(options)
        super().__init__(connect, options, schema)
        self._warehouse: Warehouse | None = None
        self._progress: Progress | None = None
        self._target: Offsets | None = None
        self._last_trigger_ms: int | None = None

    @without_traceback()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The start of a query without a checkpoint: the log ends, unless options give another."""
        warehouse, states, options = self._opened(), self._states(), self._options
        offsets = starts_at(warehouse, states, options.start or _LATEST, options.settings)
        return to_json(cursors_at(states, offsets, {}, compacted=options.settings.compacted))

    @without_traceback()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch. Raises `LogTruncatedError` if a log was truncated or recreated (C7)."""
        states, settings = self._states(), self._options.settings
        cursors = from_json(start, states)
        positions = self._positions(states, cursors)
        self._report(cursors)
        ends = log_ends(states, settings)
        if self._target is not None:
            ends = _capped(ends, self._target, positions)
        if not isinstance(limit, ReadAllAvailable):
            first = offsets_at(self._opened(), states, _EARLIEST, settings)
            begins = {t: {p: positions.get(t, {}).get(p, first[t][p]) for p in logs} for t, logs in ends.items()}
            if self._waits(begins, ends):
                return start
            if (most := self._options.triggers.max_offsets) is not None:
                ends = limited(begins, ends, most)
        return to_json(cursors_at(states, ends, cursors, compacted=settings.compacted))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """`minOffsetsPerTrigger` or `maxOffsetsPerTrigger`. Both count unless Spark asks for all that is available."""
        triggers = self._options.triggers
        if triggers.min_offsets is not None:
            return ReadMinRows(triggers.min_offsets)
        return ReadAllAvailable() if triggers.max_offsets is None else ReadMaxRows(triggers.max_offsets)

    @without_traceback()
    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The current log ends, for the progress of the query."""
        return offsets_to_json(log_ends(self._states(), self._options.settings))

    @without_traceback()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Makes the query end at the current log ends."""
        self._target = log_ends(self._states(), self._options.settings)

    @without_traceback()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a batch, on the newest versions. Raises `LogTruncatedError`."""
        warehouse, states, settings = self._opened(), self._states(), self._options.settings
        starts, ends = self._positions(states, from_json(start, states)), from_json(end, states)
        if settings.fail_on_data_loss:
            check_continues(states, ends, compacted=settings.compacted, as_ends=True)
        tasks = plan_tasks(warehouse, states, starts, offsets_of(ends), settings)
        return [TaskPartition(warehouse.files.access, task) for task in tasks]

    def stop(self) -> None:
        """The query has ended."""
        if self._progress is not None:
            self._progress.stop()

    def _positions(self, states: tuple[TopicState, ...], cursors: Cursors) -> Offsets:
        """Where a batch begins: at its cursors, or at the nearest offsets that are in the logs (`failOnDataLoss`)."""
        settings = self._options.settings
        if not settings.fail_on_data_loss:
            return resumed_at(states, cursors, compacted=settings.compacted)
        check_continues(states, cursors, compacted=settings.compacted)
        return offsets_of(cursors)

    def _waits(self, begins: Offsets, ends: Offsets) -> bool:
        """Whether there are too few offsets for a batch yet. A query that ends at its first log ends never waits."""
        triggers, now_ms = self._options.triggers, self._opened().clock.monotonic_ms()
        if triggers.min_offsets is None or self._target is not None:
            return False
        is_due = self._last_trigger_ms is None or now_ms - self._last_trigger_ms >= triggers.max_delay_ms
        if not is_due and _total(begins, ends) < triggers.min_offsets:
            return True
        self._last_trigger_ms = now_ms
        return False

    def _report(self, cursors: Cursors) -> None:
        """Reports where a batch begins, as those before it are done: Spark calls `commit` for no last one."""
        if self._options.group is not None:
            if self._progress is None:
                self._progress = self._make_progress(self._opened(), self._options.group)
            self._progress.report(cursors)

    def _make_progress(self, warehouse: Warehouse, group: str) -> Progress:
        def new_id() -> str:
            return f"{machine()}/{warehouse.clock.new_id()}"

        groups = groups_of(warehouse, self._options.coordination_url, makes=True)
        return Progress(groups, group, new_id, warehouse.clock, compacted=self._options.settings.compacted)

    def _opened(self) -> Warehouse:
        if self._warehouse is None:
            self._warehouse = self._connect()
        return self._warehouse

    def _states(self) -> tuple[TopicState, ...]:
        return subscribed(self._opened(), self._options.subscription)


def _capped(ends: Offsets, target: Offsets, positions: Offsets) -> dict[str, dict[int, int]]:
    """Log ends, none above its target or below its position; logs in neither, which are new, are left out."""
    return {
        topic: {
            p: max(min(end, target.get(topic, {}).get(p, 0)), positions.get(topic, {}).get(p, 0))
            for p, end in logs.items()
            if p in target.get(topic, {}) or p in positions.get(topic, {})
        }
        for topic, logs in ends.items()
    }


def limited(start: Offsets, end: Offsets, most: int) -> dict[str, dict[int, int]]:
    """End offsets that total about `most` offsets above `start`; a log with a backlog advances by at least 1.

    Each log gets its share, as in Spark's Kafka source: of [900, 90, 10] offsets that wait and 100 they are [90, 9, 1].
    """
    total = _total(start, end)
    if total <= most:
        return {topic: dict(logs) for topic, logs in end.items()}
    return {topic: {p: _end(start[topic][p], at, most, total) for p, at in logs.items()} for topic, logs in end.items()}


def _total(start: Offsets, end: Offsets) -> int:
    return sum(max(0, at - start[topic][p]) for topic, logs in end.items() for p, at in logs.items())


def _end(start: int, end: int, most: int, total: int) -> int:
    if end <= start:
        return end
    return min(end, start + max(1, (end - start) * most // total))
