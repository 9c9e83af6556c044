"""Copies the next records of a topic, and deletes the keys of the copy that Kafka no longer has (C71).

    Kafka [copy's end, stable end) ─► segments, as in any batch
    then: keys of the copy ─┐
    keys of all of Kafka ───┴► those that only the copy has ─► tombstones, at offsets that no record of Kafka has

The keys are read after the records. A delete that Kafka had then was copied. A delete that it did not have concerns a
key that it no longer has, or has again further on. A key that is added again meanwhile gets a tombstone below its new
record, which a later batch copies. Every offset below the stable end has been given, so Kafka gives it to no other
record. The offsets of records that the cleaner removed, of aborted ones and of markers are free. Each delete that was
missed has left one. Keys are compared in Spark's own join, partition by partition; the driver has none of them.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lithify.columnar.arrivals.incoming import receive
from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.schema import HEADERS, KEY, OFFSET, PARTITION, TIMESTAMP, VALUE
from lithify.columnar.segment.segment_reader import read_segment
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.errors import LithifyError, PolicyError
from lithify.model.names import LogId
from lithify.model.settings.table import ByColumn, ByHeader
from lithify.model.staged import StagedLog, by_partition, segments_of_parts
from lithify.ports.source import Copying, CopyKeys
from lithify.rules.compaction.survivor_rules import ORDER_BYTES, SurvivorRules
from lithify.rules.lifecycle.copies.missed_deletes import no_room
from lithify.spark.kafka.copied_logs import RESULT
from lithify.spark.kafka.exact import Ranges, copied_exactly, is_of_times
from lithify.spark.kafka.kafka_stream import reading_options, spark_error
from lithify.spark.kafka.piece_keys import LIVE, ORDER, OUR_KEYS, KeysOf, PieceKeys
from lithify.spark.payloads import Unpacking
from lithify.spark.stoppable import stoppable
from lithify.spark.tasks import PAYLOAD, Batches, attempt, partitions, placed, spread, task_frame

FULL_RECORDS = 1_000_000
WRITTEN_AT_ONCE = 64 * 1024
T = TypeVar("T")
EARLIEST = -2
"""The first offset that Kafka has, as its clients ask for it."""


@dataclass(slots=True)
class ResyncBatch:
    """A `SourceBatch`. `deleted` has, once it is copied, by partition how many keys were deleted."""

    session: SparkSession
    source: str
    config: Mapping[str, str] = field(repr=False)  # includes secrets
    starts: Mapping[int, int]
    read_to: Mapping[int, int]
    keys: CopyKeys
    stops: Callable[[], bool]
    deleted: dict[int, int] = field(default_factory=dict)

    def ends(self) -> Mapping[int, int]:
        return self.read_to

    def damaged(self) -> Mapping[int, tuple[int, Sequence[str]]]:
        return {}

    def copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        """In a thread, so that it can be given up. Raises `StopAsked`, `PolicyError`, or as any batch."""
        self.deleted = {}
        try:
            return stoppable(self.session, lambda: self._copy(copying), self.stops)
        except (PySparkException, Py4JError) as error:
            raise spark_error(error, self.source, self.config) from error

    def _copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        staged: tuple[StagedLog, ...] = ()
        if any(self.starts[p] < end for p, end in self.read_to.items()):
            if copying.drops_keyless and self._with_keys(self.starts, _has_keyless):
                raise PolicyError(
                    f"{self.source}: it has new records without a key, which a resync cannot drop: it gives deletes "
                    "the offsets that no record of Kafka has",
                    hint="use --accept-loss instead of --resync to continue without the deletes and store the range",
                )
            staged = copied_exactly(self.kafka(self.starts), lambda: self._ranges(self.starts), copying)
        logs = by_partition(staged)
        for merged in self._merged(copying, logs):
            logs[merged.log.partition] = [merged.log]
            self.deleted[merged.log.partition] = merged.deleted
        return tuple(part for _, parts in sorted(logs.items()) for part in parts)

    def _ranges(self, starts: Mapping[int, int]) -> Ranges:
        return Ranges(self.source, self.config, {p: (starts[p], end) for p, end in self.read_to.items()})

    def kafka(self, starts: Mapping[int, int] | None) -> DataFrame:
        """The records of the topic from these offsets on, None for all, up to the ends of the batch."""

        def offsets(of: Mapping[int, int]) -> str:
            return json.dumps({self.source: {str(p): at for p, at in sorted(of.items())}})

        first = "earliest" if starts is None else offsets(starts)
        options = {
            **reading_options(self.source, self.config),
            "startingOffsets": first,
            "endingOffsets": offsets(self.read_to),
        }
        return self.session.read.format("kafka").options(**options).load()

    def _merged(self, copying: Copying, logs: Mapping[int, Sequence[StagedLog]]) -> list[_Merged]:
        """The logs with tombstones among their records. Raises what the tasks have raised."""
        free = {
            p: _Free(self.starts[p], end, segments_of_parts(tuple(logs.get(p, ())))) for p, end in self.read_to.items()
        }
        task = _Merge(copying, free, self.keys.rules)

        def rows(theirs: DataFrame) -> list[Row]:
            gone = self._gone(copying.access, theirs).withColumn("part", F.col(PARTITION))
            gone = placed(gone, max(free, default=0) + 1).select(PARTITION, KEY, TIMESTAMP, ORDER)
            results: list[Row] = gone.mapInArrow(task, f"{RESULT} binary").collect()
            return results

        merged = self._with_keys(None, rows)
        outcomes = [pickle.loads(row[RESULT]) for row in merged]
        for outcome in outcomes:
            if isinstance(outcome, LithifyError):
                raise outcome
        return outcomes

    def _with_keys(self, starts: Mapping[int, int] | None, read: Callable[[DataFrame], T]) -> T:
        """What `read` makes of Kafka's keys from these offsets on, None for all, whatever their timestamps are."""
        theirs = self.kafka(starts).select(F.col("partition").alias(PARTITION), F.col("key").alias(KEY))
        try:
            return read(theirs)
        except (PySparkException, Py4JError) as error:
            if not is_of_times(error):
                raise
            first = dict.fromkeys(self.read_to, EARLIEST) if starts is None else starts
            return read(self._ranges(first).keys(self.session, str(error)))

    def _gone(self, access: FileAccess, theirs: DataFrame) -> DataFrame:
        """The keys whose latest record in the copy is a value, and that Kafka has in no record."""
        theirs = theirs.where(F.col(KEY).isNotNull())
        latest = F.max(F.struct(ORDER, OFFSET, TIMESTAMP, LIVE)).alias("latest")
        left = self._ours(access).join(theirs, [PARTITION, KEY], "left_anti").groupBy(PARTITION, KEY).agg(latest)
        return left.where(F.col(f"latest.{LIVE}")).select(PARTITION, KEY, f"latest.{TIMESTAMP}", f"latest.{ORDER}")

    def _ours(self, access: FileAccess) -> DataFrame:
        """The records of the copy that have a key, with what decides which is the latest."""
        work = [
            PieceKeys(access, p, piece, self.keys.rules[p])
            for p, pieces in self.keys.pieces.items()
            for piece in pieces
        ]
        if not work:
            return self.session.createDataFrame([], OUR_KEYS)
        parts = spread([task.piece.segment.records for task in work], FULL_RECORDS)
        frame = placed(task_frame(self.session, parts, work), partitions(parts))
        return frame.select(PAYLOAD).mapInArrow(KeysOf(Unpacking(access)), OUR_KEYS)


def _has_keyless(theirs: DataFrame) -> bool:
    return not theirs.where(F.col(KEY).isNull()).isEmpty()


@dataclass(frozen=True, slots=True)
class _Free:
    """Where tombstones of one log are written: at the offsets of [start, end) that these segments do not have."""

    start: int
    end: int
    segments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Merged:
    log: StagedLog
    deleted: int


@dataclass(frozen=True, slots=True)
class _Merge:
    """The task of a log: merges tombstones for the keys that it gets with the records that were read."""

    copying: Copying
    free: Mapping[int, _Free]
    rules: Mapping[int, SurvivorRules]

    def __call__(self, batches: Batches) -> Batches:
        results: list[_Merged | LithifyError] = []
        rows = (row for batch in batches for row in pa.Table.from_batches([batch]).to_pylist())
        first = next(rows, None)
        if first is not None:
            try:
                results = [self._log(first[PARTITION], first, rows)]
            except LithifyError as error:
                results = [error]
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(r) for r in results], pa.binary())], [RESULT])

    def _log(self, partition: int, first: dict[str, Any], rows: Iterator[dict[str, Any]]) -> _Merged:
        topic, free = self.copying.topic, self.free[partition]
        gone = _Gone(first, rows)
        spec = SegmentSpec.of(topic, partition, self.copying.run_id)
        last_ms = 0
        with SegmentWriter(self.copying.access, spec, attempt=f"r{attempt()}") as writer:
            for table in self._tables(free, gone, partition):
                writer.write(table)
                last_ms = int(table.column(TIMESTAMP)[-1].as_py())
            if gone.next is not None:
                keys = gone.taken + 1 + sum(1 for _ in rows)
                raise no_room(LogId(topic.name, partition), keys, gone.taken, (free.start, free.end))
            segments = writer.close()
        return _Merged(StagedLog(topic.name, topic.identity, partition, segments, last_ms), gone.taken)

    def _tables(self, free: _Free, gone: _Gone, partition: int) -> Iterator[pa.Table]:
        """The records that were read and the tombstones, in offset order."""
        at = free.start
        for segment in free.segments:
            for table in read_segment(self.copying.access, segment):
                done = 0
                for row, offset in enumerate(table.column(OFFSET).to_pylist()):
                    if at < offset and gone.next is not None:
                        if done < row:
                            yield table.slice(done, row - done)
                        yield from self._tombstones(at, offset, gone, partition)
                        done = row
                    at = offset + 1
                yield table.slice(done)
        yield from self._tombstones(at, free.end, gone, partition)

    def _tombstones(self, start: int, end: int, gone: _Gone, partition: int) -> Iterator[pa.Table]:
        """At the offsets of [start, end), as many as there are keys left."""
        rules = self.rules[partition]
        while start < end and (rows := gone.take(min(end - start, WRITTEN_AT_ONCE))):
            table = pa.table(
                {
                    PARTITION: pa.array([partition] * len(rows), pa.int32()),
                    OFFSET: pa.array(range(start, start + len(rows)), pa.int64()),
                    TIMESTAMP: pa.array([row[TIMESTAMP] for row in rows], pa.int64()),
                    KEY: pa.array([row[KEY] for row in rows], pa.binary()),
                    VALUE: pa.nulls(len(rows), pa.binary()),
                    HEADERS: pa.array([_headers(row[ORDER], rules) for row in rows], _HEADERS_TYPE),
                }
            )
            start += len(rows)
            yield receive(table, self.copying.topic, now_ms=0, keep_offsets=True)[partition]


_HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _headers(order: int | None, rules: SurvivorRules) -> list[dict[str, Any]]:
    """The headers by which a tombstone wins against the record with that order, as the later one (C10)."""
    match rules.order:
        case ByHeader(name) if order is not None:
            return [{"key": name, "value": order.to_bytes(ORDER_BYTES, "big", signed=True)}]
        case ByHeader() | ByColumn() | None:
            return []


class _Gone:
    """The keys to delete, one after the other."""

    def __init__(self, first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> None:
        self.next: dict[str, Any] | None = first
        self.taken = 0
        self._rest = rest

    def take(self, most: int) -> list[dict[str, Any]]:
        keys: list[dict[str, Any]] = []
        while self.next is not None and len(keys) < most:
            keys.append(self.next)
            self.next = next(self._rest, None)
        self.taken += len(keys)
        return keys
