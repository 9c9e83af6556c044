"""Streams one Kafka topic in batches that are copied and committed one after the other.

    Spark's Kafka source, from our log ends on ─► batch ─► segments, in the tasks ─► commit ─► next batch
                                              └─► its end offsets: the log ends after the commit

Every run creates a checkpoint for Spark and deletes it: only the log ends of the copy say how far it is, so
there is no second state to keep consistent (C6).
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from lithify.errors import (
    BrokerError,
    EngineError,
    LithifyError,
    SourceLostError,
    SourceWentBackError,
    UnknownSourceError,
)
from lithify.errors.redaction import one_line
from lithify.model.settings.secrets import hidden
from lithify.model.staged import StagedLog
from lithify.ports.source import Copying, OnBatch, StopAsked
from lithify.spark.kafka.connector import missing_connector
from lithify.spark.kafka.exact import Ranges, copied_exactly
from lithify.spark.kafka.kafka_cluster import CALL_S

STREAM_STOPS_WITHIN_S = 3
BATCH_STOPS_WITHIN_S = 2.0
"""Seconds to wait for Spark's thread to end, and then for an abandoned batch."""
POLL_S = 60
"""Seconds after which a task fails if Kafka does not deliver records that it reported."""
POLLED_AT_ONCE = 5_000
"""`max.poll.records`, the records per poll of a task. Kafka's default of 500 is for slow consumers."""


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What to read: start offsets by partition, and batch sizes. `available_now` ends at the current log ends."""

    source: str
    config: Mapping[str, str] = field(repr=False)  # includes secrets
    starts: Mapping[int, int]
    available_now: bool
    max_records: int
    interval_ms: int
    checkpoint: str | None = None
    """A folder that driver and tasks can write to; None for a local temporary one."""


@dataclass(frozen=True, slots=True)
class KafkaBatch:
    """A batch of the stream: its rows, and functions that return its end offsets and its ranges by partition."""

    rows: DataFrame
    read_ends: Callable[[], Mapping[int, int]]
    ranges: Callable[[], Ranges]

    def copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        """See `copied_exactly`."""
        return copied_exactly(self.rows, self.ranges, copying)

    def damaged(self) -> Mapping[int, tuple[int, Sequence[str]]]:
        return {}

    def ends(self) -> Mapping[int, int]:
        """The end offset of each partition in this batch. Raises `EngineError`."""
        return self.read_ends()


@dataclass(slots=True)
class TopicStream:
    """A stream that calls `on_batch` for each batch."""

    plan: StreamPlan
    on_batch: OnBatch
    query: StreamingQuery | None = None
    failure: Exception | None = None
    """The exception of `on_batch`, if it raised one."""
    _checkpoint: str = field(default="")
    _stopping: bool = False
    _batch: Lock = field(default_factory=Lock)
    """Held by the running batch: Spark stops a query without waiting for its Python function."""

    def start(self, session: SparkSession, run_id: str) -> None:
        """Starts the query. Raises `ConnectorError` for a session without the connector, or an error by `_SIGNS`."""
        plan = self.plan
        base = plan.checkpoint or tempfile.mkdtemp(prefix="lithify-ingest-")
        self._checkpoint = f"{base.rstrip('/')}/{run_id}"
        try:
            session = session.newSession()  # for its own settings
            session.conf.set("spark.sql.streaming.stopTimeout", f"{STREAM_STOPS_WITHIN_S}s")
            frame = session.readStream.format("kafka").options(**_options(plan)).load()
            writer = frame.writeStream.foreachBatch(self._take).option("checkpointLocation", self._checkpoint)
            if plan.available_now:
                writer = writer.trigger(availableNow=True)
            else:
                writer = writer.trigger(processingTime=f"{plan.interval_ms} milliseconds")
            self.query = writer.queryName(f"lithify ingest {plan.source} {run_id}").start()
        except PySparkException as error:
            if "kafka" in str(error) and "DATA_SOURCE_NOT_FOUND" in str(error):
                raise missing_connector() from error
            raise spark_error(error, plan.source, plan.config) from error
        finally:
            if self.query is None:  # a stream that did not start has nothing to stop
                self._delete_local_checkpoint()

    @property
    def is_active(self) -> bool:
        return self.query is not None and self.query.isActive

    @property
    def asks_for_offsets(self) -> bool:
        """Whether Spark is asking Kafka for its log ends right now, which it repeats while no broker answers."""
        query = self.query
        with suppress(PySparkException, Py4JError):
            if query is not None and query.isActive:
                return "Getting offsets" in str(query.status["message"])
        return False

    def stop(self) -> None:
        """Stops the stream in bounded time. A running batch is abandoned, unless its commit has begun."""
        if not self.is_active:
            return
        assert self.query is not None
        self._stopping = True
        with suppress(PySparkException, Py4JError):  # not stopped in time: timeouts of its calls end it soon after
            self.query.stop()
        if self._batch.acquire(timeout=BATCH_STOPS_WITHIN_S):
            self._batch.release()

    def end(self) -> LithifyError | None:
        """The error that ended the stream, or None. Deletes a local checkpoint."""
        self._delete_local_checkpoint()
        error = None if self.query is None or self._stopping else self.query.exception()
        if isinstance(self.failure, LithifyError):
            return self.failure
        if self.failure is not None:
            return spark_error(self.failure, self.plan.source, self.plan.config)
        return None if error is None else spark_error(error, self.plan.source, self.plan.config)

    def _take(self, frame: DataFrame, batch_id: int) -> None:
        with self._batch:
            if self._stopping:
                return
            try:
                ends = partial(self._ends, frame.sparkSession, batch_id)
                self.on_batch(KafkaBatch(frame, ends, partial(self._ranges, frame.sparkSession, batch_id)))
            except Exception as error:
                if self._is_of_stopped_batch(error):
                    return
                self.failure = error
                # With a text as long as a stack trace, Spark's search for signs of an interruption overflows its stack.
                raise RuntimeError("the batch failed") from None

    def _ends(self, session: SparkSession, batch_id: int) -> Mapping[int, int]:
        """The end offsets of a batch, which Spark writes to the checkpoint before the batch starts."""
        path = f"{self._checkpoint}/offsets/{batch_id}"
        jvm: Any = session._jvm
        place = jvm.org.apache.hadoop.fs.Path(path)
        file = place.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()).open(place)
        try:
            text = str(jvm.org.apache.commons.io.IOUtils.toString(file, "UTF-8"))
        finally:
            file.close()
        return noted_ends(text, self.plan.source, path)

    def _ranges(self, session: SparkSession, batch_id: int) -> Ranges:
        """What a batch reads: from where the last one ended, the first from where the stream starts."""
        plan = self.plan
        starts = self._ends(session, batch_id - 1) if batch_id else plan.starts
        ends = self._ends(session, batch_id)
        return Ranges(plan.source, plan.config, {p: (starts.get(p, 0), end) for p, end in ends.items()})

    def _is_of_stopped_batch(self, error: Exception) -> bool:
        """Whether `error` is from a batch that was stopped, in any of its calls."""
        if isinstance(error, StopAsked):
            return True
        return self._stopping and (isinstance(error, BrokerError) or not isinstance(error, LithifyError))

    def _delete_local_checkpoint(self) -> None:
        if self.plan.checkpoint is None:
            shutil.rmtree(self._checkpoint.rpartition("/")[0], ignore_errors=True)


def spark_error(error: Any, source: str, config: Mapping[str, str]) -> LithifyError:
    """The `LithifyError` for an exception of Spark, chosen by its text."""
    text = hidden(" ".join(str(error).split()), config)
    for signs, kind, hint in _SIGNS:
        if any(sign in text for sign in signs):
            what = _OURS.get(kind) or _short(text)
            return kind(f"{source}: {what}", hint=hint)
    what = f"{type(error).__name__}: {_short(text)}"
    return EngineError(f"{source}: the stream failed: {what}", hint="nothing was lost; start it again")


def noted_ends(text: str, source: str, path: str) -> Mapping[int, int]:
    """The offsets of topic `source` in `text`, an offset log file of Spark's checkpoint at `path`.

    Raises `EngineError` if they are missing.
    """
    for line in text.splitlines():
        with suppress(AttributeError, OverflowError, RecursionError, TypeError, ValueError):
            offsets = json.loads(line)
            if isinstance(offsets, dict) and source in offsets:
                return {int(partition): int(offset) for partition, offset in offsets[source].items()}
    raise EngineError(
        f"{source}: {path} does not have the offsets up to which the batch reads",
        hint="nothing was lost; start it again",
    )


_LOST = "Kafka deleted records before this stream had copied them"
_CHANGED = "Kafka's log ends before the last record that was read, or lacks a partition that it had"
_OURS: Mapping[type[LithifyError], str] = {SourceLostError: _LOST, SourceWentBackError: _CHANGED}
"""Spark's own text advises what the copy must not do: to continue without a message."""
_WENT_BACK = (
    "start again, so that the copy is compared: since this stream began, the topic was recreated or has lost records"
)
_SIGNS: tuple[tuple[tuple[str, ...], type[LithifyError], str], ...] = (
    (
        (
            "offset was changed from",
            "PARTITIONS_DELETED",
            "have been deleted",
            "INITIAL_OFFSET_NOT_FOUND",
            "START_OFFSET_GREATER_THAN_END",
        ),
        SourceWentBackError,
        _WENT_BACK,
    ),
    (
        ("OffsetOutOfRange", "FAIL_ON_DATA_LOSS", "failOnDataLoss", "may have been lost", "data loss"),
        SourceLostError,
        "start it again to see the offsets, or continue after them with --accept-loss",
    ),
    (
        ("UnknownTopicOrPartition", "UnknownTopicId", "partitions were deleted"),
        UnknownSourceError,
        "check whether it was deleted",
    ),
    (
        ("TimeoutException", "Disconnect", "Authenti", "Authoriz"),
        BrokerError,
        "nothing was lost; start it again",
    ),
)


def _options(plan: StreamPlan) -> dict[str, str]:
    starts = {plan.source: {str(partition): offset for partition, offset in sorted(plan.starts.items())}}
    return {
        **reading_options(plan.source, plan.config),
        "startingOffsets": json.dumps(starts),
        "maxOffsetsPerTrigger": str(plan.max_records),
    }


def reading_options(source: str, config: Mapping[str, str]) -> dict[str, str]:
    """The options of Spark's Kafka source that every reader of a topic has here."""
    return {
        "kafka.max.poll.records": str(POLLED_AT_ONCE),
        "kafka.default.api.timeout.ms": str(CALL_S * 1000),
        "kafkaConsumer.pollTimeoutMs": str(POLL_S * 1000),
        **{f"kafka.{name}": value for name, value in config.items()},
        "kafka.isolation.level": "read_committed",
        "subscribe": source,
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }


def _short(text: str) -> str:
    return one_line(text.partition("Caused by")[0], 300)
