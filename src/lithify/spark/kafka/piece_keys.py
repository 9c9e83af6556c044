"""The keys of a copy's records, with what decides which record of a key is the latest (C71)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keypass.orders import order_column, order_columns
from lithify.columnar.segment.schema import KEY, OFFSET, PARTITION, TIMESTAMP, VALUE_SIZE
from lithify.columnar.segment.segment_reader import read_segment
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.reading.pieces import Piece
from lithify.spark.payloads import Unpacking
from lithify.spark.tasks import PAYLOAD, Batches, columns, in_worker

ORDER, LIVE = "order", "live"
OUR_KEYS = f"{PARTITION} int, {KEY} binary, {OFFSET} bigint, {TIMESTAMP} bigint, {ORDER} bigint, {LIVE} boolean"


@dataclass(frozen=True, slots=True)
class PieceKeys:
    """The keys of one piece of a log."""

    access: FileAccess
    partition: int
    piece: Piece
    rules: SurvivorRules

    def rows(self) -> Iterator[pa.RecordBatch]:
        rules = self.rules
        wanted = list(dict.fromkeys((KEY, OFFSET, TIMESTAMP, VALUE_SIZE, *order_columns(rules))))
        start = max(self.piece.start_offset, rules.log_start)
        for table in read_segment(self.access, self.piece.segment, start_offset=start, columns=wanted):
            keyed = table.filter(pc.is_valid(table.column(KEY)))
            size, count = keyed.column(VALUE_SIZE), keyed.num_rows
            live = pc.is_valid(size)
            if rules.empty_is_tombstone:
                live = pc.and_(live, pc.not_equal(pc.fill_null(size, 0), 0))
            order = order_column(keyed, rules)
            if order is None:
                order = pa.array([0] * count, pa.int64())
            partition = pa.array([self.partition] * count, pa.int32())
            arrays = [partition, keyed.column(KEY), keyed.column(OFFSET), keyed.column(TIMESTAMP), order, live]
            yield from pa.table(arrays, names=[PARTITION, KEY, OFFSET, TIMESTAMP, ORDER, LIVE]).to_batches()


@dataclass(frozen=True, slots=True)
class KeysOf:
    unpack: Unpacking

    def __call__(self, batches: Batches) -> Batches:
        return in_worker(self._rows)(batches)

    def _rows(self, batches: Batches) -> Batches:
        for (payload,) in columns(batches, PAYLOAD):
            yield from self.unpack(payload).rows()
