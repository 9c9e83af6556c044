"""How the keys of a log are cut into hash ranges, so that each fits into one task's memory (C38)."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

_SHIFT = 24
"""What hash ranges are made of is above these bits. The lowest place a key in DuckDB's own hash table, the
highest in its partitions, and in the order of `latest_rows`: ranges made of those would crowd keys together."""

_HASHED_ROWS = 1 << 19
"""So many keys are hashed at a time."""


def key_hashes(connection: duckdb.DuckDBPyConnection, keys: pa.Array) -> Hashes:
    """DuckDB's hash of each key, the same on every machine. Not of null keys, and no answer to C12 by itself."""
    hashes = np.empty(len(keys), np.uint64)
    for start in range(0, len(keys), _HASHED_ROWS):
        piece = pa.table({"key": keys.slice(start, _HASHED_ROWS)})
        # The bare capsule, not the table: that is read in order, in this thread and not ahead.
        connection.register("hashed", piece.__arrow_c_stream__())
        found = connection.execute("SELECT hash(key) AS hash FROM hashed").to_arrow_table()
        connection.unregister("hashed")
        hashes[start : start + _HASHED_ROWS] = found.column("hash").to_numpy()
    return hashes


@dataclass(frozen=True, slots=True)
class HashRange:
    """The keys of whose `ranges_of` by `count` this is the `index`."""

    index: int
    count: int

    def halves(self) -> tuple[HashRange, HashRange]:
        return HashRange(self.index, 2 * self.count), HashRange(self.index + self.count, 2 * self.count)

    @property
    def sql(self) -> str:
        """The condition on `key` in DuckDB."""
        return "true" if self.count == 1 else f"(hash(key) >> {_SHIFT}) % {self.count} = {self.index}"

    def holds(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which of the keys with these hashes are in it."""
        return np.asarray(ranges_of(hashes, self.count) == self.index, np.bool_)


def ranges_of(hashes: Hashes, count: int) -> npt.NDArray[np.int32]:
    """The index of the hash range, of so many, of each key with these hashes."""
    return ((hashes >> np.uint64(_SHIFT)) % np.uint64(count)).astype(np.int32)
