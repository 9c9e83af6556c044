"""Rows by part: all come back, those of one key together and in log order, in the memory that was said (C38)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest

from lithify.columnar.key_hash import PARTS, HashRange, KeyHash
from lithify.columnar.keypass import parted_rows
from lithify.columnar.keypass.held_rows import Rows
from lithify.columnar.keypass.keys.latest_rows import latest_rows
from lithify.columnar.keypass.parted_rows import PartedRows
from lithify.columnar.keypass.ranks import ORDERED_KEYS

HASHES = KeyHash("seed")
MUCH = 2**30


def rows_of(keys: list[bytes], first: int = 0) -> Rows:
    ranks = pa.array(range(first, first + len(keys)), pa.int64())
    batch = pa.record_batch([pa.array(keys, pa.binary()), ranks, ranks], schema=ORDERED_KEYS)
    return Rows.of(batch, HashRange(0, 1), HASHES)


def every(rows: Rows) -> Rows:
    return rows


def latest(rows: Rows) -> Rows:
    return rows.only(latest_rows(rows.keys, rows.halves))


def collected(
    keys: list[bytes], only: Callable[[Rows], Rows] = every, *, memory_bytes: int = MUCH, batch: int = 7
) -> PartedRows:
    """The keys in batches that come in any order."""
    rows = PartedRows(memory_bytes, only)
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
    rows = collected(keys[:500], lambda part: part.only((part.ranks % 2 == 0) | (part.ranks >= 500)))
    rows.reduce()
    before = rows.needed_bytes
    assert rows.rows == 250
    rows.add(rows_of(keys[500:], 500))
    assert rows.needed_bytes > before
    kept = {key: [rank for rank in ranks if rank >= 500 or rank % 2 == 0] for key, ranks in by_hand(keys).items()}
    assert ranks_by_key(rows) == kept


@pytest.mark.parametrize("parts", [1, 32, 63])
def test_the_rows_of_fewer_parts_remain_as_if_no_others_had_come(monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    monkeypatch.setattr(parted_rows, "SORTED_ROWS", 50)
    keys = [b"%d" % (n % 297) for n in range(900)]
    kept, *_ = HashRange(0, 1).cut(parts)
    of_kept = [key for key in keys if kept.holds(HASHES(pa.array([key], pa.binary())))[0]]
    rows = collected(keys, latest)
    before = rows.needed_bytes
    rows.reduce()
    assert (rows.rows, rows.arrived) == (297, 900)
    rows.keep(kept)
    assert (rows.rows, rows.arrived) == (len(set(of_kept)), len(of_kept))
    assert rows.needed_bytes < before * parts / PARTS
    last = {key: [rank] for rank, key in enumerate(keys) if key in of_kept}
    assert ranks_by_key(rows) == last


@pytest.mark.parametrize("sorted_rows", [1, 50])
def test_a_part_with_many_rows_is_reduced_in_blocks(monkeypatch: pytest.MonkeyPatch, sorted_rows: int) -> None:
    """A key with most rows needs no memory for a copy of them."""
    monkeypatch.setattr(parted_rows, "SORTED_ROWS", sorted_rows)
    monkeypatch.setattr(parted_rows, "BLOCK_ROWS", 300)
    keys = [b"%08d" % (n % 2 * (n % 997)) for n in range(20_000)]
    at_once = []
    rows = collected(keys, lambda part: at_once.append(part.count) or latest(part), batch=50)
    compared = rows.needed_bytes - collected(keys[:1] * 20_000, batch=20_000).needed_bytes
    assert compared < 2000 * parted_rows.PART_BYTES
    assert ranks_by_key(rows) == {key: [last] for key, last in zip(keys, range(20_000), strict=True)}
    assert max(at_once) < 1000
