"""Copies a batch with a record whose timestamp Spark's Kafka source does not keep: Kafka's client for Python reads it.

    Kafka: ms in 64 bits ─► Spark's source: µs in 64 bits, or an error ─► such a batch is read here, and copied as it is

Kafka takes any number of milliseconds from its producers; many producers send nanoseconds. Spark moves old times
from the Julian to the Gregorian calendar, by the time zone of its JVM. They remain old, so that the smallest one
that was copied shows it, and the batch is copied again. Tasks read the same range, committed records alone, and write
it as `copied_logs.py` does.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lithify.columnar.segment.schema import (
    HEADERS,
    HEADERS_TYPE,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
)
from lithify.errors import BrokerError, ConnectorError, InvalidRecordError, InvalidSettingError
from lithify.kafka_client.client import SLICE_S, Cluster, client
from lithify.kafka_client.kafka_headers import headers_of
from lithify.model.staged import StagedLog
from lithify.ports.source import Copying
from lithify.spark.kafka.copied_logs import RESULT, copied_logs, results_of, staged_by

if TYPE_CHECKING:
    from confluent_kafka import Message

_TOO_LATE = re.compile(r"offset (\d+) has timestamp value (-?\d+) that overflows")
"""What Spark's Kafka source says."""
_RANGES = f"{PARTITION} int, start long, `end` long"
_APART = (
    "give --max-records-per-trigger, so that Spark reads the record in a batch without timestamps that it cannot keep"
)
TAKEN_AT_ONCE = 5_000
WAIT_S = 60.0
"""A task ends if nothing comes for so long."""


OLDEST_KEPT_MS = -1
"""Spark's Kafka source keeps times from here on in every time zone; -1 means that there is no time."""


def copied_exactly(frame: DataFrame, ranges: Callable[[], Ranges], copying: Copying) -> tuple[StagedLog, ...]:
    """See `copied_logs`; ranges with a timestamp that Spark's Kafka source does not keep are read without it."""
    try:
        staged = copied_logs(frame, copying)
    except (PySparkException, Py4JError) as error:
        if not is_of_times(error):
            raise
        return ranges().copy(frame.sparkSession, copying, str(error))
    if all(segment.min_timestamp_ms >= OLDEST_KEPT_MS for log in staged for segment in log.segments):
        return staged
    return ranges().copy(frame.sparkSession, copying)


def is_of_times(error: Exception) -> bool:
    """Whether Spark's Kafka source has failed for a timestamp."""
    return _TOO_LATE.search(str(error)) is not None


@dataclass(frozen=True, slots=True)
class Ranges:
    """What a batch reads of a topic, by partition [start, end). `config` is for Java's client."""

    topic: str
    config: Mapping[str, str] = field(repr=False)  # it has secrets
    offsets: Mapping[int, tuple[int, int]]

    def copy(self, session: SparkSession, copying: Copying, why: str = "") -> tuple[StagedLog, ...]:
        """Writes them. Raises `InvalidRecordError` if Kafka's client for Python cannot be used."""
        frame = self._frame(session, why)
        return staged_by(frame.mapInArrow(_Task(self.topic, self.config, copying), f"{RESULT} binary"))

    def keys(self, session: SparkSession, why: str) -> DataFrame:
        """The keys of their records, by partition. Raises as `copy`."""
        return self._frame(session, why).mapInArrow(_Keys(self.topic, self.config), f"{PARTITION} int, {KEY} binary")

    def _frame(self, session: SparkSession, why: str) -> DataFrame:
        try:
            Cluster(self.config).consumer().close()
        except (ConnectorError, InvalidSettingError) as error:
            match = _TOO_LATE.search(why)
            what = (
                f"the record at offset {match[1]} has the timestamp {match[2]}" if match else "a record has a timestamp"
            )
            raise InvalidRecordError(
                f"{self.topic}: {what}, which Spark's Kafka source cannot keep; Kafka's client for Python, which can, "
                f"cannot be used: {error.message}",
                hint=error.hint,
            ) from None
        rows = [(p, start, end) for p, (start, end) in sorted(self.offsets.items()) if start < end]
        return session.createDataFrame(rows, _RANGES).repartition(max(len(rows), 1))


@dataclass(frozen=True, slots=True)
class _Task:
    topic: str
    config: Mapping[str, str] = field(repr=False)
    copying: Copying

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                tables = _tables(self.topic, self.config, row[PARTITION], row["start"], row["end"])
                results = results_of(self.copying, tables)
                yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(r) for r in results], pa.binary())], [RESULT])


@dataclass(frozen=True, slots=True)
class _Keys:
    topic: str
    config: Mapping[str, str] = field(repr=False)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                for table in _tables(self.topic, self.config, row[PARTITION], row["start"], row["end"]):
                    yield from table.select([PARTITION, KEY]).to_batches()


def _tables(topic: str, config: Mapping[str, str], partition: int, start: int, end: int) -> Iterator[pa.Table]:
    """The committed records of one partition in [start, end), in order."""
    cluster, k = Cluster(config), client()
    consumer = cluster.consumer()
    try:
        consumer.assign([k.TopicPartition(topic, partition, start)])
        silent_s = 0.0
        while True:
            fetched = consumer.consume(TAKEN_AT_ONCE, SLICE_S)
            silent_s = 0.0 if fetched else silent_s + SLICE_S
            if silent_s >= WAIT_S:
                raise BrokerError(f"{topic}-{partition}: Kafka sent no record from offset {start} on for {WAIT_S:g} s")
            taken = [m for m in fetched if m.error() is None and int(m.offset() or 0) < end]
            if taken:
                yield _table(taken)
            for message in fetched:
                failure = message.error()
                if failure is not None and failure.code() != k.KafkaError._PARTITION_EOF:
                    raise cluster.named(failure, topic)
                if int(message.offset() or 0) >= end - (failure is None):
                    return
    finally:
        consumer.close()


def _table(fetched: Sequence[Message]) -> pa.Table:
    times: list[Any] = [message.timestamp() for message in fetched]
    headers = [headers_of(message, _APART) for message in fetched]
    return pa.table(
        {
            PARTITION: pa.array([message.partition() for message in fetched], pa.int32()),
            OFFSET: pa.array([message.offset() for message in fetched], pa.int64()),
            TIMESTAMP: pa.array([ms if kind else -1 for kind, ms in times], pa.int64()),
            TIMESTAMP_TYPE: pa.array(
                [int(kind == client().TIMESTAMP_LOG_APPEND_TIME) for kind, _ in times], pa.int32()
            ),
            KEY: pa.array([message.key() for message in fetched], pa.binary()),
            VALUE: pa.array([message.value() for message in fetched], pa.binary()),
            HEADERS: pa.array([[{"key": n, "value": v} for n, v in pairs] for pairs in headers], HEADERS_TYPE),
        }
    )
