"""Rows by part: all come back, those of one key together and in log order, in the memory that was said (C38)."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from lithify.columnar.key_hash import HashRange, KeyHash
from lithify.columnar.keypass import parted_rows
from lithify.columnar.keypass.held_rows import Rows
from lithify.columnar.keypass.key_source import MemoryExceededError
from lithify.columnar.keypass.parted_rows import PartedRows
from lithify.columnar.keypass.ranks import ORDERED_KEYS

HASHES = KeyHash("seed")
MUCH = 2**30


def rows_of(keys: list[bytes], first: int = 0) -> Rows:
    ranks = pa.array(range(first, first + len(keys)), pa.int64())
    batch = pa.record_batch([pa.array(keys, pa.binary()), ranks, ranks], schema=ORDERED_KEYS)
    return Rows.of(batch, HashRange(0, 1), HASHES)


def collected(keys: list[bytes], memory_bytes: int = MUCH, batch: int = 7) -> PartedRows:
    """The keys in batches that come in any order."""
    rows = PartedRows(memory_bytes)
    firsts = list(range(0, len(keys), batch))
    Random(1).shuffle(firsts)
    for first in firsts:
        rows.add(rows_of(keys[first : first + batch], first))
    return rows


def ranks_by_key(rows: PartedRows) -> dict[bytes, list[int]]:
    by_key: dict[bytes, list[int]] = {}
    for part in rows.take():
        for key in (keys := part.keys.to_pylist()):
            assert key not in by_key or key in keys
        for key, rank, order in zip(keys, part.ranks.tolist(), part.orders.to_pylist(), strict=True):
            assert rank == order
            by_key.setdefault(key, []).append(rank)
    return by_key


def by_hand(keys: list[bytes]) -> dict[bytes, list[int]]:
    return {key: [rank for rank, other in enumerate(keys) if other == key] for key in keys}


@pytest.mark.parametrize("width", [None, 8])
def test_the_rows_of_a_batch_are_in_one_range_each(width):
    keys = [(b"%d" % (n % 97)).ljust(width or 0) for n in range(500)]
    ranks, orders = pa.array(range(500), pa.int64()), pa.array([n % 7 or None for n in range(500)], pa.int64())
    batch = pa.record_batch([pa.array(keys, pa.binary()), ranks, orders], schema=ORDERED_KEYS)
    whole = Rows.of(batch, HashRange(0, 1), HASHES)
    found = {}
    for index in range(3):
        rows = Rows.of(batch, HashRange(index, 3), HASHES)
        assert 0 < rows.count < 500 and HashRange(index, 3).holds(HASHES(rows.keys.cast(pa.binary()))).all()
        of_row = zip(rows.keys.to_pylist(), rows.halves.tolist(), rows.orders.to_pylist(), strict=True)
        found |= dict(zip(rows.ranks.tolist(), of_row, strict=True))
    assert found == {n: (keys[n], int(whole.halves[n]), orders[n].as_py()) for n in range(500)}


@pytest.mark.parametrize("sorted_rows", [1, 50, 10_000])
@pytest.mark.parametrize("sizes", [(8,), (4, 8, 9)])
def test_all_rows_come_back_by_part(monkeypatch, sorted_rows, sizes):
    monkeypatch.setattr(parted_rows, "SORTED_ROWS", sorted_rows)
    keys = [b"%0*d" % (sizes[n % len(sizes)], n % 97) for n in range(500)]
    rows = collected(keys)
    assert rows.rows == 500
    assert ranks_by_key(rows) == by_hand(keys)
    assert (rows.rows, rows.needed_bytes, [part.count for part in rows.take()]) == (0, 0, [0])


@pytest.mark.parametrize("sorted_rows", [1, 50, 10_000])
def test_what_is_left_stays_with_what_comes_later(monkeypatch, sorted_rows):
    monkeypatch.setattr(parted_rows, "SORTED_ROWS", sorted_rows)
    keys = [b"%d" % (n % 97) for n in range(600)]
    rows = collected(keys[:500])
    rows.reduce(lambda part: part.only(part.ranks % 2 == 0), MUCH)
    before = rows.needed_bytes
    assert rows.rows == 250
    rows.add(rows_of(keys[500:], 500))
    assert rows.needed_bytes > before
    kept = {key: [rank for rank in ranks if rank >= 500 or rank % 2 == 0] for key, ranks in by_hand(keys).items()}
    assert ranks_by_key(rows) == kept


def test_it_is_said_early_that_too_much_is_left(monkeypatch):
    monkeypatch.setattr(parted_rows, "TELLING_ROWS", 100)
    rows = collected([b"%08d" % n for n in range(10_000)], memory_bytes=2**16, batch=1000)
    taken = []
    with pytest.raises(MemoryExceededError):
        rows.reduce(lambda part: taken.append(part) or part, 10_000 * 20)
    assert len(taken) < 20


def test_a_single_row_is_never_too_much():
    rows = collected([b"k" * 1000])
    rows.reduce(lambda part: part, 10)
    assert rows.rows == 1
    assert np.concatenate([part.ranks for part in rows.take()]).tolist() == [0]


def test_a_key_with_most_rows_needs_memory_for_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is joined and compared as a whole."""
    monkeypatch.setattr(parted_rows, "SORTED_ROWS", 1)
    many = 20_000
    spread_out = collected([b"%08d" % n for n in range(many)], batch=500)
    skewed = collected([b"%08d" % (n % 2 * n) for n in range(many)], batch=500)
    assert spread_out.rows == skewed.rows == many
    more = skewed.needed_bytes - spread_out.needed_bytes
    assert more >= 0.45 * many * parted_rows.PART_BYTES
    for _ in skewed.take():
        pass
    assert skewed.needed_bytes == 0
