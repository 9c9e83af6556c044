"""Finds the last row of each key: rows write their numbers by hash, then compare whole keys (C12).

    row         0    1    2    3    4          each row writes its number to the place of its hash,
    key         k    m    k    n    m          and the highest stays
    place       5    2    5    2    2
    written     5: 2      2: 4

    rows 2, 4   read their own numbers: they are the last of their keys
    rows 0, 1   read the number of a later row with the same key: they are not
    row 3       reads another key's: it writes and reads again by other bits of its hash, with all such rows

Every step is taken for all rows at once, without a branch for one, so that no processor is slow at it. Sorting the
hashes takes 4 to 64 ns a row, by the processor. Keys that still collide with others after `ATTEMPTS` are sorted: keys
that share a hash cost at most their sort (C38).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.key_hash import HALF_BITS, HalfHashes
from lithify.columnar.keypass.keys.key_bytes import equal, equal_at
from lithify.columnar.keypass.ranks import Flags
from lithify.columnar.segment.dead_records import Integers

ATTEMPTS = 3
"""With two places for each row that is left, at least four in five of the keys find one of their own in each."""

_OTHER_BITS = np.uint32(0x9E3779B1)
"""Odd, so that products differ where hashes do, and with all bits of the hash in the upper bits of the product."""


def latest_rows(keys: pa.Array, hashes: HalfHashes, order: Integers | None = None) -> Flags:
    """For each row, whether no later row has the same key: bool, as long as `keys`.

    `order`, a permutation of the row numbers (int64), says which row is later; without it rows are in order.
    `hashes` has one per row, equal for equal keys. No key is null; fast if they are of a fixed size.
    """
    last = np.zeros(len(hashes), np.bool_)
    left: Integers = np.arange(len(hashes)) if order is None else order
    hashes = hashes if order is None else hashes[order]
    for _ in range(ATTEMPTS):
        if not len(left):
            return last
        hashes = hashes * _OTHER_BITS  # also at first: the rows of one part agree in the upper bits
        own = np.arange(len(left), dtype=np.uint32)
        written = _written(own, hashes)
        stays = written == own
        last[left] = stays
        shadowed = np.flatnonzero(~stays)
        shadowed = shadowed[~equal_at(keys, left[shadowed], keys, left[written[shadowed]])]
        left, hashes = left[shadowed], hashes[shadowed]
    last[left] = _are_last(keys.take(pa.array(left)))
    return last


def _written(own: HalfHashes, hashes: HalfHashes) -> HalfHashes:
    """For each of the numbers `own`, which ascend, the highest one that has the same place: uint32."""
    bits = (2 * len(hashes)).bit_length()
    places = (hashes >> np.uint32(HALF_BITS - bits)).astype(np.int64)
    highest = np.zeros(1 << bits, np.uint32)
    np.maximum.at(highest, places, own)
    return highest[places]


def _are_last(keys: pa.Array) -> Flags:
    """For each key, whether it does not come again, by sorting them: bool."""
    by_key = pc.array_sort_indices(keys)  # stable
    ordered = keys.take(by_key)
    last = np.zeros(len(keys), np.bool_)
    if len(keys):
        last[by_key.to_numpy()] = np.append(~equal(ordered[:-1], ordered[1:]), True)
    return last
