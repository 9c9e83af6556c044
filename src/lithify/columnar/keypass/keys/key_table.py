"""Looks keys up among distinct ones, whole (C12): a hash table for keys that pass by, most of which are not in it.

    hash     upper bits: the first place     lower bits: the sign, and of these the lowest: the tag
    shown    [ . | x | . | . | . | x | . | . ]            a byte each: whether any key has the sign
    places   [ 0 | tag, number + 1 | tag, number + 1 ]    32 bits each, 0 for an empty one

One read of the signs rules out most keys that are not in the table, as long as the signs fit into the processor's
cache. All keys that are left read their places at once. Keys that find their tag there are compared whole, and keys
that find another key read a next place together.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lithify.columnar.key_hash import HALF_BITS, HalfHashes
from lithify.columnar.keypass.keys.key_bytes import comparable, equal_at
from lithify.columnar.segment.dead_records import Integers

TAG_BITS = 6
"""Of a place, above the number of its key: 63 of 64 other keys are ruled out without their bytes."""

MOST_KEYS = (1 << HALF_BITS - TAG_BITS) - 1

SIGNS_PER_KEY, MOST_SIGN_BITS = 16, 22

PLACES_PER_KEY = 1.5
"""At least, and less than twice as many."""

MOST_LOOKS = 32
"""Places that a key reads. Only keys that share their hash would need more, and these cannot be constructed (C38)."""

_BLOCK = 1 << 16
"""Keys looked up at a time, so that intermediate arrays fit into the processor's cache."""

_NUMBER = np.uint32(MOST_KEYS)
_NUMBER_BITS = np.uint32(HALF_BITS - TAG_BITS)
_ONE = np.uint32(1)
_NONE = np.zeros(0, np.int64)


class KeyTable:
    """A table of `keys`, which are distinct, at most `MOST_KEYS` and none of them null; `hashes` are theirs."""

    def __init__(self, keys: pa.Array, hashes: HalfHashes) -> None:
        self._keys = comparable(keys)
        bits = int(PLACES_PER_KEY * len(keys) + 1).bit_length()
        self._sign_bits = np.uint32((1 << min(MOST_SIGN_BITS, (SIGNS_PER_KEY * len(keys)).bit_length())) - 1)
        self._shown = np.zeros(int(self._sign_bits) + 1, np.bool_)
        self._shown[hashes & self._sign_bits] = True
        self._shift = np.uint32(HALF_BITS - bits)
        self._last_place = (1 << bits) - 1
        self._places = np.zeros(1 << bits, np.uint32)
        self._crowded: dict[bytes, int] = {}
        """Keys all of whose places are taken by others."""
        for start in range(0, len(keys), _BLOCK):
            self._put(hashes[start : start + _BLOCK], start)

    def find(self, keys: pa.Array, hashes: HalfHashes) -> Integers:
        """The number of each key in the table: int64, -1 for one that is not there. No key may be null."""
        found = np.full(len(keys), -1, np.int64)
        met = [_NONE]
        for start in range(0, len(keys), _BLOCK):
            signs = (hashes[start : start + _BLOCK] & self._sign_bits).astype(np.int64)
            met.append(np.flatnonzero(self._shown[signs]) + start)
        rows = np.concatenate(met)
        self._look(comparable(keys), rows, hashes[rows], found)
        return found

    def _put(self, hashes: HalfHashes, first: int) -> None:
        """Puts the keys from number `first` on into places. Of colliding rows, the one read back gets the place."""
        entries = hashes << _NUMBER_BITS | np.arange(first + 1, first + 1 + len(hashes), dtype=np.uint32)
        at = (hashes >> self._shift).astype(np.int64)
        for look in range(1, MOST_LOOKS + 1):
            empty = np.flatnonzero(self._places[at] == 0)
            self._places[at[empty]] = entries[empty]
            left = np.flatnonzero(self._places[at] != entries)
            if not len(left):
                return
            at, entries = self._next(at[left], look), entries[left]
        for number in ((entries & _NUMBER) - _ONE).tolist():
            self._crowded[self._keys[number].as_py()] = number

    def _look(self, keys: pa.Array, rows: Integers, hashes: HalfHashes, found: Integers) -> None:
        """Sets in `found` the numbers of the rows whose keys are there; `hashes` are the rows' hashes."""
        tags, at = hashes << _NUMBER_BITS, (hashes >> self._shift).astype(np.int64)
        for look in range(1, MOST_LOOKS + 1):
            entries = self._places[at]
            numbers = (entries ^ tags) - _ONE  # above all numbers where the tag is another, or the place empty
            left = entries > 0
            alike = np.flatnonzero(numbers < _NUMBER)
            if len(alike):
                same = alike[equal_at(keys, rows[alike], self._keys, numbers[alike].astype(np.int64))]
                found[rows[same]] = numbers[same]
                left[same] = False
            rows, tags, at = rows[left], tags[left], self._next(at[left], look)
            if not len(rows):
                return
        if self._crowded:
            found[rows] = [self._crowded.get(key, -1) for key in keys.take(pa.array(rows)).to_pylist()]

    def _next(self, at: Integers, look: int) -> Integers:
        """Another place for each, further away from look to look."""
        return (at + look) & self._last_place
