"""The Python API of one topic: the latest record of every key, or of one, now or at a point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.api.topic_cuts import TopicCuts
from lithify.errors import InvalidInputError, RefusedError
from lithify.model.cursor import From
from lithify.model.record import Record
from lithify.ports.files import Batch
from lithify.service.read.fetch import table_batches, version_of

if TYPE_CHECKING:
    import pyarrow as pa

    from lithify.service.read.as_of import At


@dataclass(frozen=True, slots=True, repr=False)
class TopicTable(TopicCuts):
    """The part of `Topic` that reads its table: one record per partition and live key."""

    def get(
        self, key: bytes, *, partition: int | None = None, version: int | None = None, at: At | None = None
    ) -> Record | None:
        """The latest record of a key, as `table` has it; None if it is deleted or was never there. Starts no Spark.

        All partitions are searched, as producers may place keys by rules of their own: with `partition` only that one.
        In a retained version, or as of `at`, as in `table_batches`. Raises `RefusedError` if the key lives in
        several partitions, since it is another key in each (C13), `InvalidInputError` for a key that is not bytes, and
        what `table_batches` raises.
        """
        if not isinstance(key, bytes):
            raise InvalidInputError(f"key {key!r} is not bytes", hint="convert a text with key.encode()")
        batches = self.table_batches(version=version, at=at, partition=partition, key=key)
        found = [record for batch in batches for record in batch.records()]
        if len(found) > 1:
            where = ", ".join(str(record.partition) for record in found)
            raise RefusedError(f"{self.topic_name}: the key is in partitions {where}", hint="choose one of them")
        return found[0] if found else None

    def table_batches(
        self,
        *,
        version: int | None = None,
        at: At | None = None,
        partition: int | None = None,
        key: bytes | None = None,
    ) -> Iterator[Batch]:
        """The latest value of every live key, log by log, in batches. Deleted keys are left out.

        Of one `partition` or one `key`, where they are given. As of `at`: an offset of one log, exclusive,
        `AtTime(ms)`, or offsets by partition (C69). Raises `OffsetOutOfRangeError` if neither the newest version nor
        a kept one covers that.
        """
        if at is None:
            state = version_of(self.warehouse, self.topic_name, version)
            return table_batches(self.warehouse, state, partition, key)
        from lithify.service.read.as_of import table_at

        if version is not None:
            raise RefusedError("at selects the version itself and cannot be combined with version")
        return table_at(self.warehouse, self.topic_name, at, partition, key)

    def table(self, *, version: int | None = None, at: At | None = None, partition: int | None = None) -> pa.Table:
        """The latest value of every live key as one Arrow table, one row per (partition, key).

        As it was at a point with `at`, as in `table_batches`.
        """
        import pyarrow

        from lithify.columnar.segment.schema import schema_of

        state = version_of(self.warehouse, self.topic_name, version)
        batches = self.table_batches(version=version, at=at, partition=partition)
        return pyarrow.concat_tables([schema_of(state.settings).empty_table(), *(b.to_arrow() for b in batches)])

    def records_to(
        self, at: At, *, partition: int | None = None, start: From = "earliest", compacted: bool = False
    ) -> Iterator[Batch]:
        """The records from `start` to a point, log by log, with all that counted there; `at` as in `table` (C69)."""
        from lithify.service.read.as_of import records_to

        return records_to(self.warehouse, self.topic_name, at, partition, start, compacted=compacted)
