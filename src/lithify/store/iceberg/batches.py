"""Records as whole columns of Arrow: what is read of segments, and what is to be appended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from lithify.columnar.arrivals.message_ids import ids_of, reached
from lithify.columnar.segment.convert import to_records
from lithify.columnar.segment.schema import OFFSET, TIMESTAMP
from lithify.model.message import MessageId
from lithify.model.record import Record


@dataclass(frozen=True, slots=True)
class ArrowBatch:
    """Records of one segment, in offset order, as a table with the columns of a segment."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def end_offset(self) -> int:
        return int(self.table.column(OFFSET)[-1].as_py()) + 1

    def records(self) -> Iterator[Record]:
        return to_records(self.table)

    def below(self, end_offset: int) -> ArrowBatch:
        return self if self.end_offset <= end_offset else ArrowBatch(self.table.filter(pc.field(OFFSET) < end_offset))

    def offset_at(self, timestamp_ms: int) -> int | None:
        late = np.flatnonzero(self.table.column(TIMESTAMP).to_numpy() >= timestamp_ms)
        return int(self.table.column(OFFSET)[late[0]].as_py()) if len(late) else None

    def offset_of(self, sought: MessageId) -> int | None:
        rows = np.flatnonzero(reached(self.table, sought))
        return int(self.table.column(OFFSET)[rows[0]].as_py()) if len(rows) else None

    def to_arrow(self) -> pa.Table:
        return self.table


@dataclass(frozen=True, slots=True)
class ArrowArrivals:
    """Records to append to one log, without the column `offset` until they are written.

    They are rows of a table, which may have records of other batches beside them.
    """

    table: pa.Table
    start: int
    records: int

    @staticmethod
    def joined(arrivals: Sequence[ArrowArrivals]) -> ArrowArrivals:
        """One after the other."""
        first = arrivals[0]
        if all(b.table is a.table and b.start == a.start + a.records for a, b in pairwise(arrivals)):
            return replace(first, records=sum(one.records for one in arrivals))
        table = pa.concat_tables([one.rows for one in arrivals])
        return ArrowArrivals(table, 0, table.num_rows)

    @property
    def rows(self) -> pa.Table:
        return self.table.slice(self.start, self.records)

    @property
    def first_offset(self) -> int | None:
        return self.table.column(OFFSET)[self.start].as_py() if OFFSET in self.table.column_names else None

    @property
    def last_timestamp_ms(self) -> int:
        return int(self.table.column(TIMESTAMP)[self.start + self.records - 1].as_py())

    @property
    def message_ids(self) -> tuple[MessageId, MessageId] | None:
        return ids_of(self.table, self.start, self.start + self.records - 1)


def marked(live: BitMap64, offsets: npt.NDArray[np.int64]) -> pa.Array:
    """Which of some ascending offsets are in a bitmap, even if they are far apart."""
    below = live.rank(int(offsets[0])) - (int(offsets[0]) in live)
    within = live[below : live.rank(int(offsets[-1]))].to_array()
    return pa.array(np.isin(offsets, np.frombuffer(within, np.uint64).astype(np.int64), assume_unique=True))
