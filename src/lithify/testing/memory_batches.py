"""Records on their way into the memory store and out of it: tuples, in offset order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lithify.columnar.segment.convert import envelope_columns, to_table
from lithify.columnar.segment.schema import ENVELOPE_SCHEMA, SEGMENT_SCHEMA, VALUE_SIZE
from lithify.model.message import MessageId
from lithify.model.record import Record


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records of one segment, in offset order."""

    content: tuple[Record, ...]

    def __len__(self) -> int:
        return len(self.content)

    @property
    def end_offset(self) -> int:
        return offset_of(self.content[-1]) + 1

    def records(self) -> Iterator[Record]:
        return iter(self.content)

    def below(self, end_offset: int) -> RecordBatch:
        return RecordBatch(tuple(r for r in self.content if offset_of(r) < end_offset))

    def offset_at(self, timestamp_ms: int) -> int | None:
        return next((r.offset for r in self.content if r.timestamp is not None and r.timestamp >= timestamp_ms), None)

    def offset_of(self, sought: MessageId) -> int | None:
        return next((r.offset for r in self.content if r.envelope is not None and r.envelope.reaches(sought)), None)

    def to_arrow(self) -> pa.Table:
        sizes = pa.array([None if r.value is None else len(r.value) for r in self.content], pa.int32())
        table, schema = to_table(self.content).append_column(VALUE_SIZE, sizes), SEGMENT_SCHEMA
        if any(r.envelope is not None for r in self.content):
            schema = ENVELOPE_SCHEMA
            for name, column in envelope_columns(self.content).items():
                table = table.append_column(name, column)
        return table.select(schema.names).cast(schema)


@dataclass(frozen=True, slots=True)
class RecordArrivals:
    """Records to append to one log, complete except for their offsets."""

    content: tuple[Record, ...]

    @property
    def records(self) -> int:
        return len(self.content)

    @property
    def first_offset(self) -> int | None:
        return self.content[0].offset

    @property
    def last_timestamp_ms(self) -> int:
        timestamp = self.content[-1].timestamp
        assert timestamp is not None  # `receive` gives every record a timestamp
        return timestamp

    @property
    def message_ids(self) -> tuple[MessageId, MessageId] | None:
        first, last = self.content[0].envelope, self.content[-1].envelope
        return None if first is None or last is None else (first.id, last.id)


def offset_of(record: Record) -> int:
    """The offset of a stored record."""
    assert record.offset is not None  # every stored record has one
    return record.offset
