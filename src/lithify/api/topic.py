"""The Python API of one topic: append, read, compact, cut, verify."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, overload

from lithify.api.limits import DEFAULT_TASK_MEMORY, rates, run_limits
from lithify.api.topic_looks import TopicLooks
from lithify.api.wiring import spark_engine, spark_inspector, tasks_at_once
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.model.cursor import AtTime, Cursor, Start
from lithify.model.message import MessagePosition
from lithify.model.record import Record
from lithify.model.topic.edit import Verb
from lithify.model.topic.state import TopicState
from lithify.ports.engine import START_SPARK, Progress, silent, unsaid
from lithify.reports.report import Reports
from lithify.reports.rounds.plan import PlanReport
from lithify.reports.rounds.rate_limits import RatesReport
from lithify.reports.rounds.round import RoundReport
from lithify.reports.status import TopicStatus
from lithify.reports.topics import TopicInfo, VersionReport
from lithify.rules.reading.message_positions import check_has_ids, message_position
from lithify.rules.reading.pieces import Reading
from lithify.service.creation import load_or_create
from lithify.service.documents import reports_of, throttle
from lithify.service.last_record import last_position
from lithify.service.look.status import kept_versions, topic_info, topic_status
from lithify.service.read.fetch import LogReader, TopicReader, open_reader
from lithify.service.write.append import NOWHERE, AppendResult, append

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from lithify.api.groups import Membership
    from lithify.api.profiles import RoundProfile
    from lithify.coordination.groups.group_reader import GroupReader
    from lithify.reports.quarantine import ReleaseReport
    from lithify.reports.verification import VerifyReport
    from lithify.service.snapshot.lake_consumer import LakeConsumer
    from lithify.service.snapshot.table_fold import Table


@dataclass(frozen=True, slots=True, repr=False)
class Topic(TopicLooks):
    """A keyed topic: an Iceberg table whose logs are kept compacted."""

    @property
    def name(self) -> str:
        """`STREAM/TOPIC`, or `TOPIC` alone in the stream `default`; a name of Pulsar or MapR as they write it."""
        return str(self.topic_name)

    def state(self) -> TopicState:
        """The newest version of its metadata. Raises `UnknownTopicError`."""
        return self.warehouse.store.load(self.topic_name)

    def load_or_create(self) -> TopicState:
        """The same for appends: they create the topic where its stream says so, and refuse a copy (C64, C70)."""
        return load_or_create(self.warehouse, self.topic_name)

    def info(self) -> TopicInfo:
        """Partitions, size, location and settings of the topic."""
        return topic_info(self.warehouse, self.state())

    def append(
        self,
        batch: Sequence[Record] | pa.Table | pa.RecordBatch,
        *,
        keep_offsets: bool = False,
        end_offsets: Mapping[int, int] = NOWHERE,
        expected_end: Mapping[int, int] = NOWHERE,
    ) -> AppendResult:
        """Appends one atomic batch: records, or Arrow data with the columns that `produce` takes.

        With `keep_offsets` the records' own partitions and offsets are used; they must ascend and
        be at or above the log end. `end_offsets` then gives, by partition, where logs end after it, which
        may be beyond their last record. Logs that do not end at `expected_end`, by partition, refuse the batch
        with `FencedError`. Raises `InvalidRecordError` or `InvalidInputError`, with nothing written.
        """
        return append(
            self.warehouse,
            self.topic_name,
            batch,
            keep_offsets=keep_offsets,
            end_offsets=end_offsets,
            expected_end=expected_end,
        )

    @overload
    def reader(
        self,
        partition: int,
        start: Start | Cursor = "earliest",
        *,
        compacted: bool = False,
        follow: bool = False,
        version: int | None = None,
    ) -> LogReader: ...
    @overload
    def reader(
        self,
        partition: None = None,
        start: Start | Mapping[int, Cursor] = "earliest",
        *,
        compacted: bool = False,
        follow: bool = False,
        version: int | None = None,
    ) -> TopicReader: ...
    @overload
    def reader(
        self, *, group: str | Membership, start: Start = "earliest", compacted: bool = False, follow: bool = False
    ) -> GroupReader: ...
    def reader(
        self,
        partition: int | None = None,
        start: Start | Cursor | Mapping[int, Cursor] = "earliest",
        *,
        compacted: bool = False,
        follow: bool = False,
        version: int | None = None,
        group: str | Membership | None = None,
    ) -> LogReader | TopicReader | GroupReader:
        """Reads one log, or all of them one after the other, over the newest version or a retained one.

        `start` is `"earliest"`, `"latest"`, an offset, a `MessageId` or a `MessagePosition` (one log only),
        `AtTime(ms)`, or the `cursor()` of an earlier reader. For all logs, give its `cursors()`. At a cursor it
        continues, or raises `LogTruncatedError` if it would miss a delete (C49). An offset is not checked for that. A
        following reader continues with new records endlessly. With `compacted` it reads the compacted view, if
        there is one, and the backlog after it (C33); in an in-place topic that changes nothing (C32).
        With `group` it is a member of that group (C58), and `start` is for logs in which that has no position.
        Raises `OffsetOutOfRangeError`, `UnknownTopicError` or `UnknownVersionError`.
        """
        how = Reading(follow=follow, compacted=compacted)
        if group is not None:
            from lithify.api.groups import open_member, start_of_group

            sought = start_of_group(partition, start, version)
            return open_member(self.warehouse, self.topic_name, group, sought, how)
        return open_reader(self.warehouse, self.topic_name, partition, start, how, version)

    def consumer(
        self, *, partitions: Sequence[int] | None = None, position: str | PathLike[str] | None = None
    ) -> LakeConsumer:
        """A consumer of the compacted records, then of new ones; `position` is the file of its cursors (C49)."""
        from lithify.service.snapshot.lake_consumer import LakeConsumer

        return LakeConsumer(self.warehouse, self.topic_name, partitions=partitions, position=position)

    def fill(self, table: Table, *, position: str | PathLike[str] | None = None) -> int:
        """Updates a dict to the latest record of every live key; returns how many records were read.

        With `position` it continues where the last one with that file ended: give it the table of that one. Without,
        it replaces what the table has, at the end.
        """
        from lithify.service.snapshot.table_fold import refill

        with self.consumer(position=position) as consumer:
            return consumer.fill(table) if position is not None else refill(table, consumer.fill)

    def find_by_publish_time(
        self, publish_time_ms: int, partition: int = 0, *, compacted: bool = False
    ) -> MessagePosition | None:
        """The first record that was published at or after a time, in a topic with message ids (PIP-429); or None."""
        check_has_ids(self.state())
        record = self.reader(partition, AtTime(publish_time_ms), compacted=compacted).read_next()
        return None if record is None else message_position(record)

    def last_message_position(self, partition: int = 0, *, compacted: bool = False) -> MessagePosition:
        """The last record, in a topic with message ids (PIP-429); `EARLIEST` where there is none."""
        return last_position(self.warehouse, self.state(), partition, Reading(compacted=compacted))

    def plan(
        self,
        *,
        now_ms: int | None = None,
        partitions: Sequence[int] | None = None,
        task_memory: int | str = DEFAULT_TASK_MEMORY,
        partial_progress: int | str | None = None,
    ) -> PlanReport:
        """What `compact` would do now, with upper bounds of its cost. Starts no Spark."""
        from lithify.service.round.compact import RunRequest, plan_compact

        request = RunRequest(partitions, now_ms, run_limits(task_memory, partial_progress=partial_progress))
        return plan_compact(self.warehouse, tasks_at_once(), self.topic_name, request)

    def compact(  # noqa: PLR0913 - the flags of the verb, by name
        self,
        *,
        now_ms: int | None = None,
        partitions: Sequence[int] | None = None,
        task_memory: int | str = DEFAULT_TASK_MEMORY,
        read_rate: int | str | None = None,
        write_rate: int | str | None = None,
        partial_progress: int | str | None = None,
        spark: SparkSession | None = None,
        spark_conf: Mapping[str, str] | None = None,
        progress: Progress = silent,
        notes: Callable[[str], None] = unsaid,
        allow_clock_jump: bool = False,
        profile: RoundProfile | None = None,
    ) -> RoundReport:
        """Runs a round now (C30), on the given session or on a local one that is created once and reused.

        `task_memory` is in bytes, the rates in bytes per second over the whole run; text with a unit is accepted as
        well. After `partial_progress` bytes of new segments it commits, releases what they replace, and continues.
        `notes` gets the free space that it may need, before it begins, `profile` what it takes. A log that failed has
        an `error` in the report and is unchanged; the others continue. Raises `RoundsFailedError`, which has the
        report, if all failed, and `ClockError` as `retain` does.
        """
        from lithify.service.round.compact import RunRequest, compact

        limits = run_limits(task_memory, read_rate, write_rate, partial_progress)
        request = RunRequest(partitions, now_ms, limits, notes, profile)
        self._trust_clock(allow_clock_jump, Verb.COMPACT)
        choice = SparkChoice(spark, spark_conf or {}, partial(progress, START_SPARK))
        engine = spark_engine(self.warehouse, choice, profile)
        return compact(self.warehouse, engine, self.topic_name, request, progress).unless_all_failed()

    def throttle(self, *, read_rate: int | str | None = None, write_rate: int | str | None = None) -> RatesReport:
        """Changes the rates of the running rounds, within 10 seconds (C40).

        In bytes per second over the run, or text with a unit; None is unlimited. Later rounds have their own rates.
        """
        return throttle(self.warehouse, self.topic_name, rates(read_rate, write_rate))

    def status(self, *, now_ms: int | None = None) -> TopicStatus:
        """Every log: offsets, what limits its horizon, whether it is due and why. Metadata only."""
        return topic_status(self.warehouse, self.state(), now_ms=now_ms)

    def release(self, partitions: Sequence[int] | None = None) -> ReleaseReport:
        """Releases logs whose rounds failed: these, or all that fail (C31). Cleaners try them again at once.

        Raises `RefusedError` if one of them is not failing, or none is.
        """
        from lithify.service.look.quarantine import release

        return release(self.warehouse, self.topic_name, partitions)

    def history(self) -> Reports[RoundReport]:
        """Reports of the latest rounds, newest first, at most 100 (C42)."""
        return Reports(reports_of(self.warehouse.store, self.state()))

    def versions(self) -> Reports[VersionReport]:
        """The retained versions from before rounds and cuts, newest first (C6)."""
        return Reports(kept_versions(self.warehouse, self.topic_name))

    def verify(
        self,
        *,
        against: int | None = None,
        read_rate: int | str | None = None,
        spark: SparkSession | None = None,
        spark_conf: Mapping[str, str] | None = None,
        progress: Progress = silent,
    ) -> VerifyReport:
        """Reads everything and proves that nothing was lost since a retained version, on Spark.

        `read_rate` is in bytes per second over all tasks, or text with a unit.
        """
        from lithify.service.proof.verify import verify

        limits = run_limits(DEFAULT_TASK_MEMORY, read_rate)
        choice = SparkChoice(spark, spark_conf or {}, partial(progress, START_SPARK))
        inspector = spark_inspector(self.warehouse, choice, limits)
        return verify(self.warehouse, inspector, self.topic_name, against=against, progress=progress)
