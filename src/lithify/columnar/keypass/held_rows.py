"""Rows of the key pass in memory, and the memory that comparing them takes (C38)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.key_hash import PARTS, HalfHashes, HashRange, KeyHash, half_hashes, upper_halves
from lithify.columnar.keypass.keys.key_bytes import comparable, joined_keys
from lithify.columnar.keypass.ranks import ORDER, RANK, Flags
from lithify.columnar.segment.dead_records import Integers
from lithify.columnar.segment.schema import KEY

COMPARED_BYTES = 31
"""Memory that comparing all rows at once takes for each, besides it."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Keys, halves of their hashes, ranks and, unless the strategy is `offset`, orders, of equal length.

    Keys are binary, of a fixed size where all have one. A null order is lowest (C10).
    """

    keys: pa.Array
    halves: HalfHashes
    ranks: Integers
    orders: pa.Int64Array | None

    @staticmethod
    def of(batch: pa.RecordBatch, part: HashRange, hashes: KeyHash) -> Rows:
        """Rows of a batch whose keys are in `part`, by the hash that defines the parts."""
        keys = batch.column(KEY)
        orders = batch.column(ORDER) if ORDER in batch.schema.names else None
        ranks = np.asarray(batch.column(RANK).to_numpy(), np.int64)
        if part.count == 1:
            rows = Rows(comparable(keys), half_hashes(hashes, keys), ranks, orders)
            return rows.of_parts(part)
        whole = hashes(keys)
        return Rows(comparable(keys), upper_halves(whole), ranks, orders).only(part.holds(whole))

    @staticmethod
    def joined(some: Sequence[Rows]) -> Rows:
        """All rows of `some`, copied unless there is only one."""
        if len(some) == 1:
            return some[0]
        orders = [rows.orders for rows in some if rows.orders is not None]
        return Rows(
            joined_keys([rows.keys for rows in some]),
            np.concatenate([_NO_HALVES, *(rows.halves for rows in some)]),
            np.concatenate([_NO_RANKS, *(rows.ranks for rows in some)]),
            pa.concat_arrays(orders) if orders else None,
        )

    @property
    def count(self) -> int:
        return len(self.ranks)

    @property
    def held_bytes(self) -> int:
        return int(self.keys.nbytes) + (12 if self.orders is None else 21) * self.count

    def of_parts(self, part: HashRange) -> Rows:
        """The rows whose keys are in the parts of a range."""
        return self if part.parts == PARTS else self.only(part.has_parts(self.halves))

    def only(self, wanted: Flags) -> Rows:
        return self.take(np.flatnonzero(wanted))  # by numbers: a mask takes NumPy ten times as long

    def take(self, numbers: Integers) -> Rows:
        taken = pa.array(numbers)
        orders = None if self.orders is None else self.orders.take(taken)
        return Rows(self.keys.take(taken), self.halves[numbers], self.ranks[numbers], orders)

    def slice(self, start: int, end: int) -> Rows:
        orders = None if self.orders is None else self.orders.slice(start, end - start)
        return Rows(self.keys.slice(start, end - start), self.halves[start:end], self.ranks[start:end], orders)

    def sorted(self) -> Rows:
        """The rows sorted by rank, which is log order."""
        if (self.ranks[1:] >= self.ranks[:-1]).all():
            return self
        return self.take(np.argsort(self.ranks))  # a shuffle delivers blocks in any order

    def by_order(self) -> Integers | None:
        """Row numbers (int64) by ascending order, stable, nulls first; None without orders."""
        if self.orders is None:
            return None
        order = np.argsort(_numbers(self.orders), kind="stable")
        without = _without(self.orders)[order]
        return np.concatenate([order[without], order[~without]])

    def are_above(self, some: Integers, others: Rows, numbers: Integers) -> Flags:
        """For each of these rows whether its order is above the order of the row of `others` with the number: bool."""
        return others.are_below(numbers, self, some)

    def are_below(self, some: Integers, others: Rows, numbers: Integers) -> Flags:
        """The same for an order below; none is below every other."""
        if not len(some):
            return np.zeros(0, np.bool_)
        assert self.orders is not None and others.orders is not None  # where there are rows
        ours, theirs = self.orders.take(pa.array(some)), others.orders.take(pa.array(numbers))
        without, there = _without(ours), ~_without(theirs)
        return there & (without | (_numbers(ours) < _numbers(theirs)))


class Held:
    """Collects rows and counts the memory that comparing them all at once takes."""

    def __init__(self) -> None:
        self._pieces: list[Rows] = []
        self._held_bytes = self._key_bytes = 0
        self.rows = 0

    def add(self, rows: Rows) -> None:
        self._pieces.append(rows)
        self._held_bytes += rows.held_bytes
        self._key_bytes += rows.keys.nbytes
        self.rows += rows.count

    @property
    def needed_bytes(self) -> int:
        """Bytes for the rows, plus the larger of a copy of all keys and what comparing them takes."""
        return self._held_bytes + max(self._key_bytes, COMPARED_BYTES * self.rows)

    def take(self) -> Rows:
        """Removes and returns all rows, sorted by rank."""
        taken, self._pieces = self._pieces, []
        self._held_bytes = self._key_bytes = self.rows = 0
        return Rows.joined(taken).sorted()


def _numbers(orders: pa.Int64Array) -> Integers:
    return np.asarray(pc.fill_null(orders, 0).to_numpy(), np.int64)


def _without(orders: pa.Int64Array) -> Flags:
    return np.asarray(orders.is_null().to_numpy(zero_copy_only=False), np.bool_)


_NO_HALVES = np.array([], np.uint32)
_NO_RANKS = np.array([], np.int64)
