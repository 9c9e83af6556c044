"""Writers: tasks write segments that no version refers to, the driver appends them in one commit.

    task    batches ─► by topic ─► checked, by partition ─► files     ─► Staged
    driver  all Staged of a topic ─► append_staged ─► one version, or none (then `sweep` deletes the files, C6)

A batch of a stream is identified by the query's id, which Spark passes to its tasks, and the batch id. In
`foreachBatch` the user chooses the query's name; Spark's id distinguishes a recreated stream of that name.
Records for several topics are one commit per topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lithify.columnar.arrivals.stage import Stage, renumbered
from lithify.columnar.segment.schema import HEADERS, KEY, OFFSET, PARTITION, TIMESTAMP, VALUE
from lithify.errors import InvalidInputError, RefusedError
from lithify.model.names import TopicName, parse_topic
from lithify.model.staged import Destination, StagedLog
from lithify.model.topic.log import WrittenBatch
from lithify.service.creation import load_or_create
from lithify.service.write.append_staged import StagedBatch, append_staged
from lithify.spark.tasks import attempt
from lithify.spark_source.columns import KAFKA_TIMESTAMP_TYPE, TOPIC
from lithify.spark_source.options import Connect, WriteOptions
from lithify.spark_source.refusals import without_traceback

QUERY_ID = "sql.streaming.queryId"
"""The local property in which Spark gives tasks the id of their query."""

_BINARY = ("binary", "string")
_ACCEPTED = {
    KEY: _BINARY,
    VALUE: _BINARY,
    TOPIC: ("string",),
    PARTITION: ("int",),
    TIMESTAMP: ("timestamp",),  # of timestamp_ntz only the session knows the time zone
    HEADERS: ("array<struct<key:string,value:binary>>",),
}
_IGNORED = (OFFSET, KAFKA_TIMESTAMP_TYPE)
"""Columns of a read that an append assigns itself: ignored, so that a topic can be copied as read."""


@dataclass(frozen=True, slots=True)
class Staged(WriterCommitMessage):  # type: ignore[misc]
    """The segments that one task wrote, over all topics."""

    logs: tuple[StagedLog, ...]
    stream_id: str | None
    """Spark's id of the stream, stored in its checkpoint; None outside of streams."""


class _TaskWriter:
    """The part of a writer that runs in tasks, with the topic's state when the driver planned the batch."""

    def __init__(self, connect: Connect, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise RefusedError("records are only appended to topics, never overwritten", hint="use mode append")
        _check_schema(schema, options)
        warehouse = connect()
        self._connect, self._options, self._access = connect, options, warehouse.files.access
        self._topic = None if options.topic is None else Destination.of(load_or_create(warehouse, options.topic))
        self._now_ms, self._run_id = warehouse.clock.now_ms(), warehouse.clock.new_id()

    @without_traceback()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Writes the records of one task. Raises `InvalidRecordError` and fails the batch, with nothing appended."""
        context = TaskContext.get()
        assert context is not None
        stages = _Stages(self)
        try:
            for batch in iterator:
                for topic, records in self._by_topic(batch):
                    stages.of(topic).add(records)
            return Staged(stages.close(), context.getLocalProperty(QUERY_ID))
        except BaseException:
            stages.abandon()
            raise

    def stage(self, topic: TopicName) -> Stage:
        """A new stage for the records of a task for one topic."""
        known = self._topic if self._topic is not None else Destination.of(load_or_create(self._connect(), topic))
        return Stage(self._access, known, now_ms=self._now_ms, run_id=self._run_id, attempt=attempt())

    def _by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[TopicName, pa.Table]]:
        table = pa.Table.from_batches([batch])
        if KEY not in table.column_names:
            table = table.append_column(KEY, pa.nulls(table.num_rows, pa.binary()))
        records = table.select([name for name in table.column_names if name in _ACCEPTED and name != TOPIC])
        if self._options.topic is not None:
            yield self._options.topic, records
            return
        column = table.column(TOPIC)
        for name in pc.unique(column).to_pylist():
            if name is None:
                raise InvalidInputError("a record has no topic", hint="fill the column topic, or give the option topic")
            yield parse_topic(name).name, records.filter(pc.equal(column, name))

    def append(self, staged: Sequence[Staged | None], batch_id: int | None) -> None:
        """Commits the segments of all tasks, one commit per topic."""
        parts = [part for part in staged if part is not None]
        warehouse, renumber = self._connect(), partial(renumbered, self._access)
        for name in sorted({log.topic for part in parts for log in part.logs}):
            logs = tuple(log for part in parts for log in part.logs if log.topic == name)
            append_staged(warehouse, renumber, StagedBatch(name, logs, self._batch(parts, batch_id)))

    def _batch(self, parts: Sequence[Staged], batch_id: int | None) -> WrittenBatch | None:
        stream_id = next((part.stream_id for part in parts if part.stream_id), "")
        if batch_id is None:
            return None if self._options.batch is None else WrittenBatch(*self._options.batch, stream_id)
        assert stream_id, "Spark did not give its tasks the id of the query"
        return WrittenBatch(stream_id, batch_id)


class _Stages:
    """The stages of one task, by topic."""

    def __init__(self, writer: _TaskWriter) -> None:
        self._writer = writer
        self._stages: dict[TopicName, Stage] = {}

    def of(self, topic: TopicName) -> Stage:
        if topic not in self._stages:
            self._stages[topic] = self._writer.stage(topic)
        return self._stages[topic]

    def close(self) -> tuple[StagedLog, ...]:
        return tuple(log for stage in self._stages.values() for log in stage.close())

    def abandon(self) -> None:
        for stage in self._stages.values():
            stage.abandon()


class BatchWriter(_TaskWriter, DataSourceArrowWriter):  # type: ignore[misc]
    """The writer of `write`: appends once; with `queryId` and `batchId`, once for each such pair."""

    @without_traceback()
    def commit(self, staged: list[Staged | None]) -> None:
        """Appends the segments of all tasks."""
        self.append(staged, None)


class StreamWriter(_TaskWriter, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """The writer of `writeStream`: appends once for each batch id."""

    @without_traceback()
    def commit(self, staged: list[Staged | None], batch_id: int) -> None:
        """Appends the segments of all tasks of the batch, unless it was appended before."""
        self.append(staged, batch_id)


def _check_schema(schema: StructType, options: WriteOptions) -> None:
    for field in schema.fields:
        if field.name in _IGNORED:
            continue
        if field.name not in _ACCEPTED:
            raise RefusedError(
                f"the records have an unknown column {field.name!r}", hint=f"use one of: {', '.join(_ACCEPTED)}"
            )
        kind = field.dataType.simpleString()
        if kind not in _ACCEPTED[field.name]:
            cast = f'.withColumn("{field.name}", col("{field.name}").cast("{_ACCEPTED[field.name][0]}"))'
            raise RefusedError(
                f"the column {field.name} is {kind}", hint=f"cast it to {_ACCEPTED[field.name][0]}: {cast}"
            )
    if VALUE not in schema.names:
        raise RefusedError("the records do not have a column value")
    if options.topic is None and TOPIC not in schema.names:
        raise RefusedError("no topic is given to write to", hint="give the option topic, or a column topic")
