"""The Python API: a lake holds topics; a topic takes records, keeps them compacted, gives them back.

What the verbs of the command line print is what these methods return, as typed values with
`to_json()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from lithify.compaction.reporting import plan_report
from lithify.compaction.rules import table_rules
from lithify.errors import RefusedError
from lithify.model.log import KeptVersion, TopicState, segments_of
from lithify.model.names import TopicName, parse_topic
from lithify.model.position import Start
from lithify.model.record import Record
from lithify.model.report import PlanReport, RoundReport
from lithify.model.settings import settings_of
from lithify.model.status import TopicInfo, TopicStatus
from lithify.model.units import parse_rate_bytes, parse_size_bytes
from lithify.model.verification import VerifyReport
from lithify.ports import Batch, Progress, RunLimits, Warehouse
from lithify.service.append import AppendResult, append
from lithify.service.compact import RunRequest, compact, plan_run
from lithify.service.fetch import LogReader, TopicReader, open_log, open_topic
from lithify.service.status import topic_info, topic_status
from lithify.service.verify import verify
from lithify.wiring import SparkChoice, open_warehouse, spark_engine, spark_inspector

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

MAX_PARTITIONS = 10_000
"""Partitions of one topic: its metadata keeps some 100 bytes of state for each."""


DEFAULT_TASK_MEMORY = 2**30
LEAST_TASK_MEMORY = 16 * 2**20
"""Below this a task could not hold one row group beside its winners."""


def _bytes(name: str, size: int | str) -> int:
    try:
        count = parse_size_bytes(str(size))
    except ValueError as error:
        raise RefusedError(f"{name}: {error}") from None
    if count < LEAST_TASK_MEMORY:
        raise RefusedError(f"{name}={size}: a task needs at least {LEAST_TASK_MEMORY} bytes")
    return count


def _rate(name: str, rate: int | str | None) -> int | None:
    if rate is None:
        return None
    try:
        return parse_rate_bytes(str(rate))
    except ValueError as error:
        raise RefusedError(f"{name}: {error}") from None


def _silent(_phase: str, _done: int, _total: int) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Lake:
    """A warehouse of topics. Made by `lithify.open`."""

    warehouse: Warehouse

    def create_topic(
        self, name: str, partitions: int = 1, *, like: str = "kafka", config: Mapping[str, object] | None = None
    ) -> Topic:
        """Makes a topic with the settings of a preset (`kafka`, `pulsar`, `mapr`) and `config` over it.

        Raises `TopicExistsError`, `InvalidSettingError` or `InvalidNameError`.
        """
        reference = parse_topic(name)
        if reference.partition is not None:
            raise RefusedError(f"{name} names a partition; create the topic {reference.original}")
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise RefusedError(f"partitions={partitions}: a topic has 1 to {MAX_PARTITIONS}")
        settings = settings_of(config or {}, like=like)
        now_ms = self.warehouse.clock.now_ms()
        self.warehouse.store.create_topic(reference.name, reference.original, settings, partitions, now_ms)
        return Topic(self.warehouse, reference.name)

    def topic(self, name: str) -> Topic:
        """The topic of that name. Raises `UnknownTopicError` or `InvalidNameError`."""
        topic = Topic(self.warehouse, parse_topic(name).name)
        topic.state()
        return topic

    def topics(self) -> tuple[Topic, ...]:
        """All topics, by stream and name."""
        return tuple(Topic(self.warehouse, name) for name in sorted(self.warehouse.store.topics()))

    def delete_topic(self, name: str) -> None:
        """Deletes a topic and its files, for good. Raises `UnknownTopicError`."""
        reference = parse_topic(name)
        if reference.partition is not None:
            raise RefusedError(f"{name} names a partition; only a whole topic can be deleted")
        self.warehouse.store.drop_topic(reference.name)


@dataclass(frozen=True, slots=True)
class Topic:
    """A keyed topic: an Iceberg table whose logs are kept compacted."""

    warehouse: Warehouse
    topic_name: TopicName

    @property
    def name(self) -> str:
        """`STREAM/TOPIC`, or `TOPIC` alone in the stream `default`."""
        return str(self.topic_name)

    def state(self) -> TopicState:
        """The newest version of its metadata. Raises `UnknownTopicError`."""
        return self.warehouse.store.load(self.topic_name)

    def info(self) -> TopicInfo:
        """What the topic is: partitions, size, location, settings."""
        return topic_info(self.state())

    def append(
        self, batch: Sequence[Record] | pa.Table | pa.RecordBatch, *, keep_offsets: bool = False
    ) -> AppendResult:
        """Appends one atomic batch: records, or Arrow data with the columns that `produce` takes.

        With `keep_offsets` the records' own partitions and offsets are used; they must ascend and
        be at or above the log end. Raises `InvalidRecordError` or `InvalidInputError`, with nothing
        written.
        """
        return append(self.warehouse, self.topic_name, batch, keep_offsets=keep_offsets)

    @overload
    def reader(
        self, partition: int, start: Start = "earliest", *, compacted: bool = False, follow: bool = False
    ) -> LogReader: ...
    @overload
    def reader(
        self, partition: None = None, start: Start = "earliest", *, compacted: bool = False, follow: bool = False
    ) -> TopicReader: ...
    def reader(
        self,
        partition: int | None = None,
        start: Start = "earliest",
        *,
        compacted: bool = False,
        follow: bool = False,
    ) -> LogReader | TopicReader:
        """Reads one log, or all of them one after the other, over the version that is newest now.

        `start` is `"earliest"`, `"latest"`, an offset (one log only) or `AtTime(ms)`. A following
        reader goes on with new records for ever. In an in-place topic `compacted` changes nothing
        (C32). Raises `OffsetOutOfRangeError` or `UnknownTopicError`.
        """
        state = self.state()
        if partition is not None:
            return open_log(self.warehouse, state, partition, start, follow=follow)
        if isinstance(start, int):
            raise RefusedError(f"offset {start} belongs to one log", hint="give a partition")
        return open_topic(self.warehouse, state, start, follow=follow)

    def plan(
        self,
        *,
        now_ms: int | None = None,
        partitions: Sequence[int] | None = None,
        task_memory: int | str = DEFAULT_TASK_MEMORY,
    ) -> PlanReport:
        """What `compact` would do now, with upper bounds of its cost. Starts no Spark."""
        state = self.state()
        limits = RunLimits(_bytes("task_memory", task_memory))
        request = RunRequest(None if partitions is None else tuple(partitions), now_ms, limits)
        plans = plan_run(self.warehouse, state, request)
        ranges = spark_engine(self.warehouse, SparkChoice()).key_ranges(plans, limits)
        return PlanReport(
            topic=self.name,
            version=state.version,
            logs=tuple(plan_report(plan, ranges.get(plan.partition, 0)) for plan in plans),
            now_ms=self.warehouse.clock.now_ms() if now_ms is None else now_ms,
            now_given=now_ms is not None,
        )

    def compact(  # noqa: PLR0913 - the flags of the verb, by name
        self,
        *,
        now_ms: int | None = None,
        partitions: Sequence[int] | None = None,
        task_memory: int | str = DEFAULT_TASK_MEMORY,
        read_rate: int | str | None = None,
        write_rate: int | str | None = None,
        spark: SparkSession | None = None,
        spark_conf: Mapping[str, str] | None = None,
        progress: Progress = _silent,
    ) -> RoundReport:
        """A round now (C30), on the session given or on a local one that is made once and used again.

        `task_memory` is in bytes, the rates in bytes per second over the whole run; text with a unit
        is taken as well. A log that failed has an `error` in the report and is as it was before.
        """
        limits = RunLimits(
            _bytes("task_memory", task_memory), _rate("read_rate", read_rate), _rate("write_rate", write_rate)
        )
        request = RunRequest(None if partitions is None else tuple(partitions), now_ms, limits)
        engine = spark_engine(self.warehouse, SparkChoice(spark, spark_conf or {}))
        return compact(self.warehouse, engine, self.topic_name, request, progress)

    def status(self, *, now_ms: int | None = None) -> TopicStatus:
        """Every log: offsets, what limits its horizon, whether it is due and why. Metadata only."""
        return topic_status(self.warehouse, self.state(), now_ms=now_ms)

    def history(self) -> tuple[RoundReport, ...]:
        """Reports of the latest rounds, newest first, at most 100 (C42)."""
        return tuple(RoundReport.from_json(report) for report in self.warehouse.store.reports(self.state()))

    def versions(self) -> tuple[KeptVersion, ...]:
        """Versions from before a round that are still kept, newest first."""
        return self.warehouse.store.versions(self.topic_name)

    def verify(
        self,
        *,
        against: int | None = None,
        spark: SparkSession | None = None,
        spark_conf: Mapping[str, str] | None = None,
        progress: Progress = _silent,
    ) -> VerifyReport:
        """Reads everything and proves that nothing was lost since a kept version, on Spark."""
        inspector = spark_inspector(self.warehouse, SparkChoice(spark, spark_conf or {}))
        return verify(self.warehouse, inspector, self.topic_name, against=against, progress=progress)

    def table_batches(self) -> Iterator[Batch]:
        """The latest value of every live key, log by log, in batches. Deleted keys are left out."""
        state = self.state()
        segments = self.warehouse.store.segments(state)
        for log in state.logs:
            here = segments_of(segments, log.partition)
            yield from self.warehouse.files.latest(here, table_rules(log, state.settings))

    def table(self) -> pa.Table:
        """The latest value of every live key as one Arrow table, one row per (partition, key)."""
        return _concatenated(batch.to_arrow() for batch in self.table_batches())


def open_lake(warehouse: str | None = None, *, catalog: str | None = None) -> Lake:
    """A lake at a directory or URI, or behind a catalog by name; `./lithify-warehouse` by default.

    Raises `WarehouseError` if it cannot be used.
    """
    return Lake(open_warehouse(warehouse, catalog))


def _concatenated(tables: Iterator[Any]) -> Any:
    import pyarrow

    from lithify.columnar.schema import SEGMENT_SCHEMA

    return pyarrow.concat_tables([SEGMENT_SCHEMA.empty_table(), *tables])
