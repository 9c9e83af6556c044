"""A `KeySource` over keys in memory, for comparisons without files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from lithify.columnar.keypass.ranks import ORDINAL_SHIFT, RANKED_KEYS, Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.segment.dead_records import DeadRecords


class KeysInMemory:
    """Keys, or (key, order), or (key, order, bits of the rank), numbered from 0, clean ones first.

    `shuffled`: their batches come in any order, as blocks of a shuffle do.
    """

    def __init__(
        self,
        *,
        clean: Sequence[Any] = (),
        dirty: Sequence[Any] = (),
        above_horizon: Sequence[Any] = (),
        chunks: Sequence[Any] = (),
        schema: pa.Schema = RANKED_KEYS,
        batch: int = 1000,
        shuffled: bool = False,
    ) -> None:
        self.schema = schema
        self.starts = np.array([0, len(clean), len(clean) + len(dirty)])
        self.tally = Tally()
        self.dead = DeadRecords(self.starts)
        self.dirty_read = 0.0
        self._portions = dict(zip(Portion, (clean, dirty, above_horizon, chunks), strict=True))
        self._batch = batch
        self._shuffled = shuffled

    def has(self, portion: Portion) -> bool:
        return bool(self._portions[portion])

    def keys(self, portion: Portion, wanted: pa.Array | None = None) -> Iterator[pa.RecordBatch]:
        records = self._portions[portion]
        first = int(self.starts[1]) if portion is Portion.DIRTY else 0
        batches = list(ranked(records, first, schema=self.schema, batch=self._batch))
        if self._shuffled:
            Random(1).shuffle(batches)
        for one in batches:
            self.dirty_read += one.num_rows / len(records) if portion is Portion.DIRTY else 0
            yield one


def ranked(
    records: Sequence[Any], first: int = 0, *, schema: pa.Schema = RANKED_KEYS, batch: int = 1000
) -> Iterator[pa.RecordBatch]:
    """Batches of records as `KeysInMemory` takes them; the number of the first is `first`."""
    whole = [(record, None, 0) if isinstance(record, bytes) else (*record, 0)[:3] for record in records]
    for start in range(0, len(whole), batch):
        keys, orders, bits = zip(*whole[start : start + batch], strict=True)
        ranks = np.arange(first + start, first + start + len(keys)) << ORDINAL_SHIFT | np.array(bits)
        columns = [pa.array(column, f.type) for column, f in zip((keys, ranks, orders), schema, strict=False)]
        yield pa.record_batch(columns, schema=schema)
