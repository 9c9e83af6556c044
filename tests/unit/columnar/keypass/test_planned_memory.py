"""Keys that a plan takes to fit into the memory of a task that reads ahead do, however they come (C38)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lithify.columnar.key_hash import HashRange, KeyHash
from lithify.columnar.keypass import key_comparison, parted_rows
from lithify.columnar.keypass.key_comparison import KeyComparison
from lithify.columnar.keypass.ranks import ORDINAL_SHIFT, Portion
from lithify.rules.compaction import key_pass_shape
from lithify.rules.compaction.key_pass_shape import KeyLoad
from support.builders import a_log, a_segment
from support.engines.keys_in_memory import KeysInMemory

COUNT, BATCH = 1 << 18, 1 << 13


class DistinctKeys(KeysInMemory):
    """`COUNT` dirty keys of `size` bytes, made as they are read."""

    def __init__(self, size: int) -> None:
        super().__init__(dirty=[b"any"])
        self.starts = np.array([0, 0, COUNT])
        self._size = size

    def keys(self, portion: Portion, wanted: pa.Array | None = None) -> Iterator[pa.RecordBatch]:
        for first in range(0, COUNT, BATCH):
            numbers = np.arange(first, first + BATCH)
            keys = np.zeros((BATCH, self._size), np.uint8)
            keys[:, :4] = numbers.astype("<u4").view(np.uint8).reshape(BATCH, 4)
            of_size = pa.Array.from_buffers(pa.binary(self._size), BATCH, [None, pa.py_buffer(keys)])
            columns = [of_size.cast(pa.binary()), pa.array(numbers << ORDINAL_SHIFT)]
            yield pa.record_batch(columns, schema=self.schema)


@pytest.mark.parametrize("early", [COUNT // 2, 2 * COUNT])
@pytest.mark.parametrize("size", [4, 16, 36, 100, 400])
def test_keys_that_are_planned_to_fit_are_read_once(monkeypatch: pytest.MonkeyPatch, size: int, early: int) -> None:
    """Also if all differ, and rows are first reduced when memory is nearly full."""
    monkeypatch.setattr(key_comparison, "EARLY_ROWS", early)
    monkeypatch.setattr(parted_rows, "SORTED_ROWS", 1 << 14)
    monkeypatch.setattr(key_pass_shape, "LEAST_RECORDS", 1)
    plan = replace(a_log("a=1").plan(), dirty=(replace(a_segment("s", 0, COUNT), records=COUNT),))
    held_bytes = KeyLoad.of(plan, lambda _: float(size)).held_bytes
    assert held_bytes is not None
    comparison = KeyComparison(DistinctKeys(size), HashRange(0, 1), KeyHash("seed"), int(held_bytes), ahead=True)
    assert comparison.run().tally.winners == COUNT
