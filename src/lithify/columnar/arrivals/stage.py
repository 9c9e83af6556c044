"""Writes one task's part of a batch to segments before its final offsets are known.

    task 0   ─► partition 0  [ E .. E+7 )      E: the log end offset when the batch was planned
    task 1   ─► partition 0  [ E .. E+4 )      if E still is the log end, the commit uses one of them
                                               unchanged and renumbers the others

Records copied from Kafka keep their offsets. All are checked as `append` checks them (C16).
`HELD_BYTES` bounds the memory of a task, for any number of partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lithify.columnar.arrivals.incoming import receive, with_offsets
from lithify.columnar.arrivals.message_ids import ids_of
from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.schema import KEY, OFFSET, PARTITION, TIMESTAMP, VALUE
from lithify.columnar.segment.segment_reader import read_segment
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.errors import InvalidRecordError
from lithify.model.message import MessageId
from lithify.model.names import LogId
from lithify.model.segment import Segment
from lithify.model.sources.source import checksum_of
from lithify.model.staged import Destination, StagedLog
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.admission import NO_KEY, check_offsets

GATHERED_RECORDS = 64 * 1024
GATHERED_BYTES = 32 * 2**20
"""Spark's batches are small, so they are collected up to these sizes before they are checked and partitioned."""
HELD_BYTES = 128 * 2**20
"""Bytes buffered for row groups over all partitions; above it, small row groups are written."""


class Stage:
    """Writes records of one topic to segments that no version refers to yet. Not usable after `close`."""

    def __init__(
        self,
        access: FileAccess,
        topic: Destination,
        *,
        now_ms: int,
        run_id: str,
        attempt: str,
        keep_offsets: bool = False,
    ) -> None:
        self._access, self._topic = access, topic
        self._now_ms, self._run_id, self._attempt = now_ms, run_id, attempt
        self._keep_offsets = keep_offsets
        self._gathered: list[pa.Table] = []
        self._gathered_bytes = 0
        self._held_bytes = 0
        self._writers: dict[int, SegmentWriter] = {}
        self._next: dict[int, int] = {}
        self._last_ms: dict[int, int] = {}
        self._last_checksums: dict[int, int] = {}
        self._ids: dict[int, tuple[MessageId, MessageId]] = {}

    def add(self, records: pa.Table) -> None:
        """Adds records with the columns that `append` accepts, the same in each call.

        Raises `InvalidRecordError` or `InvalidInputError`, also for records of earlier calls.
        """
        self._gathered.append(records)
        self._gathered_bytes += records.nbytes
        if self._gathered_bytes >= GATHERED_BYTES or sum(map(len, self._gathered)) >= GATHERED_RECORDS:
            self._write_gathered()

    def close(self) -> tuple[StagedLog, ...]:
        """Writes what is buffered, closes the files, and returns the segments by partition. Raises as `add`."""
        self._write_gathered()
        name, identity = self._topic.name, self._topic.identity
        return tuple(
            StagedLog(name, identity, p, writer.close(), self._last_ms[p], self._ids.get(p), self._last_checksums[p])
            for p, writer in sorted(self._writers.items())
        )

    def abandon(self) -> None:
        """Closes open files after an error, and leaves them unreferenced for `sweep`."""
        for writer in self._writers.values():
            writer.abandon()

    def _write_gathered(self) -> None:
        if not self._gathered:
            return
        together = pa.concat_tables(self._gathered)
        self._gathered, self._gathered_bytes = [], 0
        try:
            arrived = receive(together, self._topic, now_ms=self._now_ms, keep_offsets=self._keep_offsets)
        except InvalidRecordError as error:
            raise self._naming_offset(error, together) from None
        for partition, table in arrived.items():
            if partition not in self._writers:
                spec = SegmentSpec.of(self._topic, partition, self._run_id)
                self._writers[partition] = SegmentWriter(self._access, spec, attempt=self._attempt)
                self._next[partition] = self._topic.log_ends[partition]
            if not self._keep_offsets:
                check_offsets(LogId(self._topic.name, partition), self._next[partition], table.num_rows)
            self._writers[partition].write(table if self._keep_offsets else with_offsets(table, self._next[partition]))
            self._next[partition] += table.num_rows
            self._last_ms[partition] = int(table.column(TIMESTAMP)[-1].as_py())
            key, value = (table.column(name)[-1].as_py() for name in (KEY, VALUE))
            self._last_checksums[partition] = checksum_of(key, value)
            if (ids := ids_of(table)) is not None:
                self._ids[partition] = (self._ids.get(partition, ids)[0], ids[1])
            self._held_bytes += table.nbytes
        if self._held_bytes >= HELD_BYTES:
            for writer in self._writers.values():
                writer.flush()
            self._held_bytes = 0

    def _naming_offset(self, error: InvalidRecordError, together: pa.Table) -> InvalidRecordError:
        """The same error with the record's partition and offset, if known: users do not see the task's batches."""
        if not self._keep_offsets or not {PARTITION, OFFSET} <= set(together.column_names):
            return error
        partition, offset = (together.column(name)[error.index].as_py() for name in (PARTITION, OFFSET))
        keeps = f"; `lithify topic alter {self._topic.name} --config null.key=retain` lets such records in"
        hint = error.hint + (keeps if error.reason == NO_KEY else "")
        return error.at(f"{LogId(self._topic.name, partition)}, offset {offset}", hint=hint)


def renumbered(
    access: FileAccess, state: TopicState, segments: Sequence[Segment], base_offset: int, run_id: str
) -> tuple[Segment, ...]:
    """Copies the records of `segments`, all of one log, to new segments with offsets from `base_offset` on.

    Copies one row group at a time; called at most once per run and version. Raises `DamagedError`,
    `WarehouseError` or `OSError`.
    """
    spec = SegmentSpec.of(state, segments[0].partition, run_id)
    with SegmentWriter(access, spec, attempt=f"v{state.version}") as writer:
        for segment in segments:
            for table in read_segment(access, segment):
                writer.write(with_offsets(table, base_offset))
                base_offset += table.num_rows
        return writer.close()
