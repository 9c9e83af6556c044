"""A keyed hash of record keys: without its seed an attacker cannot construct colliding keys (C38). Hashes only
group candidates; keys are compared whole (C12).

    key     its length and its words of 32 bits                 n, w0 w1 .. wn
    seed    secret summand and factors, 64 bits each            a, b, f0 f1 .. fn
    hash    a + b n + f0 w0 + f1 w1 + .. + fn wn  mod 2^64; then the upper half is XORed into the lower

Any two keys agree in half of such a hash with probability 2^-32 (Lemire and Kaser, "Strongly universal string
hashing is fast", 2013). A secret prefix with a common fast hash would not be enough: keys can be constructed
that collide behind any prefix. Keys above `LONG_BYTES` are hashed by keyed BLAKE2b.

Hash ranges divide the keys of a log so that the keys of each fit into one task's memory.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
HalfHashes = npt.NDArray[np.uint32]
HALF_BITS = 32

LONG_BYTES = 1024
"""Longer keys are hashed one by one, by BLAKE2b."""

_FACTORS = LONG_BYTES // 4 + 2
_UPPER_HALF = np.uint64(HALF_BITS)

_SHIFT = 24
"""Hash ranges use the bits above these."""

PARTS = 64
"""The upper bits of a hash, which hash ranges do not use, divide keys into so many parts."""

_PART_SHIFT = np.uint32(HALF_BITS - (PARTS - 1).bit_length())

_BLOCK = 1 << 16
"""Keys hashed at a time, so that intermediate arrays fit into the processor's cache."""

_WEIGHED_BYTES = 1 << 18
"""Bytes of keys weighed at a time, which are passed over once for each of their words."""


class KeyHash:
    """The hash function of a seed and a number, independent of the functions of other seeds or numbers."""

    def __init__(self, seed: str, number: int = 0) -> None:
        secret = hashlib.shake_256(f"{seed} {number}".encode()).digest(8 * _FACTORS + hashlib.blake2b.MAX_KEY_SIZE)
        numbers = np.frombuffer(secret, "<u8", _FACTORS)
        self._added, self._of_length, self._factors = int(numbers[0]), int(numbers[1]), numbers[2:]
        self._of_long = secret[8 * _FACTORS :]

    def __call__(self, keys: pa.BinaryArray) -> Hashes:
        """The hash of each key: uint64, as long as `keys`, the same on every machine. No key may be null."""
        hashes = np.empty(len(keys), np.uint64)
        for start in range(0, len(keys), _BLOCK):
            block = keys.slice(start, _BLOCK)
            sizes = _sizes(block)
            if (sizes == sizes[0]).all():
                hashes[start : start + _BLOCK] = self._of_one_size(block, int(sizes[0]))
                continue
            order = np.argsort(np.minimum(sizes, LONG_BYTES + 1).astype(np.uint16), kind="stable")
            hashes[start + order] = self._of_sorted(block.take(pa.array(order)), sizes[order])
        hashes ^= hashes >> _UPPER_HALF  # else words that differ in upper bits only have the same lower half
        return hashes

    def _of_sorted(self, keys: pa.BinaryArray, sizes: npt.NDArray[np.int32]) -> Hashes:
        cuts = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(keys)]
        runs = ((start, keys.slice(start, end - start)) for start, end in pairwise(cuts))
        return np.concatenate([self._of_one_size(run, int(sizes[start])) for start, run in runs])

    def _of_one_size(self, keys: pa.BinaryArray, size: int) -> Hashes:
        """The hashes of keys of `size` bytes each, contiguous in their buffer: uint64, before the final XOR."""
        if size > LONG_BYTES:
            return np.array([self._of_long_key(key) for key in keys], np.uint64)
        hashes = np.full(len(keys), (self._added + self._of_length * size) % 2**64, np.uint64)
        if not size:
            return hashes
        first, data = int(np.frombuffer(keys.buffers()[1], np.int32)[keys.offset]), keys.buffers()[2]
        if size < 4:  # a byte is a word
            return hashes + _weighed(np.ndarray((len(keys), size), np.uint8, data, first), self._factors)
        words = size // 4
        hashes += _weighed(np.ndarray((len(keys), words), "<u4", data, first, (size, 4)), self._factors)
        if size % 4:  # the last word overlaps the one before
            hashes += np.ndarray((len(keys),), "<u4", data, first + size - 4, (size,)) * self._factors[words]
        return hashes

    def _of_long_key(self, key: pa.BinaryScalar) -> int:
        return int.from_bytes(hashlib.blake2b(key.as_buffer(), digest_size=8, key=self._of_long).digest())


def _sizes(keys: pa.BinaryArray) -> npt.NDArray[np.int32]:
    return np.diff(np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1])


def half_hashes(hashes: Callable[[pa.BinaryArray], Hashes], keys: pa.BinaryArray) -> HalfHashes:
    """The upper half of the hash of each key: uint32, as long as `keys`. No key may be null."""
    halves = np.empty(len(keys), np.uint32)
    for start in range(0, len(keys), _BLOCK):
        halves[start : start + _BLOCK] = upper_halves(hashes(keys.slice(start, _BLOCK)))
    return halves


def upper_halves(hashes: Hashes) -> HalfHashes:
    """The upper half of each hash: uint32, as long as `hashes`."""
    return (hashes >> _UPPER_HALF).astype(np.uint32)


def _weighed(words: npt.NDArray[np.uint32 | np.uint8], factors: Hashes) -> Hashes:
    """The weighted sum of each row of `words`, (rows, words) to (rows,), modulo 2^64."""
    sums = np.empty(len(words), np.uint64)
    rows = max(1, _WEIGHED_BYTES // words[0].nbytes)
    products = np.empty(min(rows, len(words)), np.uint64)
    for start in range(0, len(words), rows):
        some, weighed = words[start : start + rows], sums[start : start + rows]
        np.multiply(some[:, 0], factors[0], out=weighed)
        for word in range(1, words.shape[1]):
            weighed += np.multiply(some[:, word], factors[word], out=products[: len(some)])
    return sums


def parts_of(halves: HalfHashes) -> npt.NDArray[np.uint8]:
    """For each upper half of a hash, the index in [0, `PARTS`) of its part: uint8, as long as `halves`."""
    return (halves >> _PART_SHIFT).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class HashRange:
    """The keys for which `ranges_of(hashes, count)` is `index`; of these the parts from `first` up to `end`."""

    index: int
    count: int
    first: int = 0
    end: int = PARTS

    @property
    def parts(self) -> int:
        return self.end - self.first

    @property
    def is_first(self) -> bool:
        """Whether it has the first part of the first range, which one range of a log has."""
        return self.index == self.first == 0

    def cut(self, parts: int) -> list[HashRange]:
        """Divides this range into ranges of so many parts, in order; the last may have fewer."""
        firsts = range(self.first, self.end, parts)
        return [replace(self, first=first, end=min(first + parts, self.end)) for first in firsts]

    def cut_off(self, parts: int) -> list[HashRange]:
        """A range of the first `parts`, fewer than there are, and about even ones of at most so many of the others."""
        kept, others = replace(self, end=self.first + parts), replace(self, first=self.first + parts)
        return [kept, *others.cut(math.ceil(others.parts / math.ceil(others.parts / parts)))]

    def holds(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """For each hash, whether its key is in this range: bool, as long as `hashes`."""
        held = np.asarray(ranges_of(hashes, self.count) == self.index, np.bool_)
        return held if self.parts == PARTS else held & self.has_parts(upper_halves(hashes))

    def has_parts(self, halves: HalfHashes) -> npt.NDArray[np.bool_]:
        """For each upper half of a hash, whether its part is one of this range: bool, as long as `halves`."""
        parts = parts_of(halves)
        return np.asarray((parts >= self.first) & (parts < self.end), np.bool_)


def ranges_of(hashes: Hashes, count: int) -> npt.NDArray[np.int32]:
    """For each hash, the index in [0, count) of its hash range: int32, as long as `hashes`."""
    return ((hashes >> np.uint64(_SHIFT)) % np.uint64(count)).astype(np.int32)
