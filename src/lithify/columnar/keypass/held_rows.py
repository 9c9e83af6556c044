"""Rows of the key pass in memory, and the memory that comparing them takes (C38)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.keypass.latest_rows import BYTES_PER_ORDERED_ROW, BYTES_PER_ROW
from lithify.columnar.keypass.ranks import ORDER, RANK, Flags
from lithify.columnar.segment.dead_records import Integers
from lithify.columnar.segment.schema import KEY


@dataclass(frozen=True, slots=True)
class Rows:
    """Keys, ranks and, unless the strategy is `offset`, orders, of equal length; a null order is lowest (C10)."""

    keys: pa.BinaryArray
    ranks: Integers
    orders: pa.Int64Array | None

    @staticmethod
    def of(batch: pa.RecordBatch) -> Rows:
        orders = batch.column(ORDER) if ORDER in batch.schema.names else None
        return Rows(batch.column(KEY), np.asarray(batch.column(RANK).to_numpy(), np.int64), orders)

    @property
    def count(self) -> int:
        return len(self.ranks)

    @property
    def held_bytes(self) -> int:
        return int(self.keys.nbytes) + (8 if self.orders is None else 17) * self.count

    @property
    def compared_bytes(self) -> int:
        """Additional bytes that `latest_rows` takes for them."""
        return (BYTES_PER_ROW if self.orders is None else BYTES_PER_ORDERED_ROW) * self.count

    def only(self, wanted: Flags) -> Rows:
        mask = pa.array(wanted)
        orders = None if self.orders is None else self.orders.filter(mask)
        return Rows(self.keys.filter(mask), self.ranks[wanted], orders)

    def first(self, count: int) -> Rows:
        orders = None if self.orders is None else self.orders.slice(0, count)
        return Rows(self.keys.slice(0, count), self.ranks[:count], orders)

    def sorted(self) -> Rows:
        """The rows sorted by rank, which is log order."""
        if (self.ranks[1:] >= self.ranks[:-1]).all():
            return self
        order = np.argsort(self.ranks)  # a shuffle delivers blocks in any order
        taken = pa.array(order)
        orders = None if self.orders is None else self.orders.take(taken)
        return Rows(self.keys.take(taken), self.ranks[order], orders)

    def by_order(self) -> Integers | None:
        """Row numbers (int64) by ascending order, stable, nulls first; None without orders."""
        if self.orders is None:
            return None
        order = np.argsort(_numbers(self.orders), kind="stable")
        without = _without(self.orders)[order]
        return np.concatenate([order[without], order[~without]])

    def by_order_descending(self) -> Integers:
        """Row numbers (int64) by descending order, stable, nulls last."""
        assert self.orders is not None  # with strategy `offset` nothing above the horizon is read
        order = np.argsort(~_numbers(self.orders), kind="stable")
        without = _without(self.orders)[order]
        return np.concatenate([order[~without], order[without]])


class Held:
    """Collects rows and counts the memory that comparing them takes."""

    def __init__(self) -> None:
        self._pieces: list[Rows] = []
        self._held_bytes = self._key_bytes = self._compared_bytes = 0
        self.rows = 0

    def add(self, rows: Rows) -> None:
        self._pieces.append(rows)
        self._held_bytes += rows.held_bytes
        self._key_bytes += rows.keys.nbytes
        self._compared_bytes += rows.compared_bytes
        self.rows += rows.count

    def needed_bytes(self, beside: Rows | None = None) -> int:
        """Bytes for the rows, with those of `beside`, plus the larger of a copy of all keys and `compared_bytes`."""
        held, keys, compared = self._held_bytes, self._key_bytes, self._compared_bytes
        if beside is not None:
            held += beside.held_bytes
            keys += beside.keys.nbytes
            compared += beside.compared_bytes
        return held + max(keys, compared)

    def take(self) -> Rows:
        """Removes and returns all rows, sorted by rank."""
        taken, self._pieces = self._pieces, []
        self._held_bytes = self._key_bytes = self._compared_bytes = self.rows = 0
        ranks = np.concatenate([_NO_RANKS, *(rows.ranks for rows in taken)])
        orders = [rows.orders for rows in taken if rows.orders is not None]
        keys = [_NO_KEYS, *(rows.keys for rows in taken)]
        taken.clear()  # frees the pieces before the keys are concatenated
        orders = [pa.concat_arrays(orders)] if orders else [None]
        keys = [pa.concat_arrays(keys)]
        return Rows(keys[0], ranks, orders[0]).sorted()


def _numbers(orders: pa.Int64Array) -> Integers:
    return np.asarray(pc.fill_null(orders, 0).to_numpy(), np.int64)


def _without(orders: pa.Int64Array) -> Flags:
    return np.asarray(orders.is_null().to_numpy(zero_copy_only=False), np.bool_)


_NO_KEYS = pa.array([], pa.binary())
_NO_RANKS = np.array([], np.int64)
