"""Reads entries of Pulsar in tasks, one for each partition, and writes their messages to segments.

    (partition, behind 7:41, up to 12:8) ─► task: entries ─► records ─► segment files
                                                 └─► driver: facts of the segments, how far it read, or its error

A task reads in order and writes in order, so offsets continue from the log end. Commits nothing; files of failed
tasks are left unreferenced for `sweep`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from lithify.columnar.arrivals.stage import Stage
from lithify.errors import LithifyError
from lithify.model.message import MessageId
from lithify.model.staged import StagedLog
from lithify.ports.source import Copying
from lithify.pulsar.client import ClientConfig, TopicReader
from lithify.pulsar.columns import Damage, messages_of
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.lake.entry_continuation import first_entry
from lithify.pulsar.lake.records import records_of, timestamp_of
from lithify.pulsar.lake.replaced_messages import behind
from lithify.spark.tasks import attempt

_WORK = pa.schema([pa.field("task", pa.int32()), pa.field("work", pa.binary())])
_RESULT = "result"


@dataclass(frozen=True, slots=True)
class EntryRange:
    """What one task reads: entries of a partition behind `after`, up to `end`, which is inclusive."""

    partition: int
    topic: str
    """The partition's own name in Pulsar."""
    after: MessageId | None
    end: MessageId
    published_ms: int | None = None
    """When the copy's message in the entry of `after` was published, to compare it with the topic's (C52)."""

    @property
    def start(self) -> MessageId | None:
        """The first entry to read."""
        if self.after is None or self.published_ms is None:
            return first_entry(self.after)
        return MessageId(*self.after.place)

    def behind(self, read: Iterator[list[RawEntry]]) -> Iterator[Sequence[RawEntry]]:
        """What is to be copied of the entries from `start` on. Raises `SourceWentBackError`."""
        for number, entries in enumerate(read):
            if number or self.after is None or self.published_ms is None:
                yield entries
            else:
                hint = "ingest it into another topic, with --into"
                yield behind(self.after, self.published_ms, entries, topic=self.topic, hint=hint)


@dataclass(frozen=True, slots=True)
class Limits:
    """`most`: about so many records of each range at most. `skip_damaged` as in `IngestRequest`."""

    most: int | None
    skip_damaged: bool = False


@dataclass(frozen=True, slots=True)
class CopiedRange:
    """What a task has written, up to which id it has read, and which damaged entries it has kept whole."""

    partition: int
    logs: tuple[StagedLog, ...]
    reached: MessageId
    published_ms: int | None
    """When the message there was published; None: it was not read."""
    damage: Damage


def copy_ranges(
    session: SparkSession, config: ClientConfig, ranges: Sequence[EntryRange], copying: Copying, limits: Limits
) -> tuple[CopiedRange, ...]:
    """Reads and writes all ranges, a task each.

    Raises the first `LithifyError` that a task returned, or errors of Spark.
    """
    rows = pa.table(
        {
            "task": pa.array(range(len(ranges)), pa.int32()),
            "work": pa.array([pickle.dumps(one) for one in ranges], pa.binary()),
        },
        schema=_WORK,
    )
    frame = session.createDataFrame(rows, from_arrow_schema(_WORK)).repartitionById(len(ranges), F.col("task"))
    copies: list[CopiedRange] = []
    for row in frame.select("work").mapInArrow(_Task(config, copying, limits), f"{_RESULT} binary").collect():
        match pickle.loads(row[_RESULT]):
            case LithifyError() as error:
                raise error
            case CopiedRange() as copied:
                copies.append(copied)
    return tuple(sorted(copies, key=lambda copied: copied.partition))


@dataclass(frozen=True, slots=True)
class _Task:
    """Part of a closure, which Spark does not write to disk as it does rows: the configuration may have a token."""

    config: ClientConfig
    copying: Copying
    limits: Limits

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for work in batch.column("work").to_pylist():
                result = pickle.dumps(self._copied(pickle.loads(work)))
                yield pa.RecordBatch.from_arrays([pa.array([result], pa.binary())], [_RESULT])

    def _copied(self, wanted: EntryRange) -> CopiedRange | LithifyError:
        copying = self.copying
        stage = Stage(copying.access, copying.topic, now_ms=0, run_id=copying.run_id, attempt=attempt())
        try:
            damage = Damage()
            reached, last = self._read(wanted, stage, damage)
            published_ms = timestamp_of(last) if last is not None and last[:2] == reached.place else None
            return CopiedRange(wanted.partition, stage.close(), reached, published_ms, damage)
        except LithifyError as error:
            return error
        finally:
            stage.abandon()

    def _read(self, wanted: EntryRange, stage: Stage, damage: Damage) -> tuple[MessageId, RawEntry | None]:
        """Adds the records of the range; returns the id up to which it was read, and the last entry that was."""
        records = entries_read = 0
        last: RawEntry | None = None
        most, skipped = self.limits.most, damage if self.limits.skip_damaged else None
        for entries in wanted.behind(TopicReader(self.config, wanted.topic).read(wanted.start, wanted.end)):
            left = entries
            while left:
                taken = self._most_entries(records, entries_read, len(left))
                for messages in messages_of(left[:taken], skipped):
                    table = records_of(messages, wanted.partition, wanted.after, skipped)
                    records += table.num_rows
                    if table.num_rows:
                        stage.add(table)
                last, left, entries_read = left[taken - 1], left[taken:], entries_read + taken
                if most is not None and records >= most:
                    return MessageId(*last[:2]), last
        return MessageId(*wanted.end.place), last

    def _most_entries(self, records: int, entries: int, left: int) -> int:
        """How many of the next entries to take so that there are about `most` records, by those so far."""
        most = self.limits.most
        if most is None:
            return left
        return min(left, max(1, (most - records) * entries // max(1, records)))
