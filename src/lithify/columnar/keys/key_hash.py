"""The hash of keys: unpredictable without its seed, so that an attacker cannot choose keys that share it
(C38). It only says where to look for a key; keys are compared whole (C12).

    key     its length and its words of 32 bits                    n, w0 w1 .. wn
    seed    a number and a factor for each, all of 64 bits, secret  a, b, f0 f1 .. fn
    hash    a + b n + f0 w0 + f1 w1 + .. + fn wn  mod 2^64; then the upper half is mixed into the lower

For any two keys, the chance that they share half of such a hash is 2^-32 (Lemire and Kaser, "Strongly
universal string hashing is fast", 2013). Some secret bytes before each key would not do with one of the usual
fast hashes: keys can be constructed that share it behind any prefix. Long keys take a keyed BLAKE2b each.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

LONG_BYTES = 1024
"""Longer keys are hashed one by one."""

_FACTORS = LONG_BYTES // 4 + 2
_UPPER_HALF = np.uint64(32)

_BLOCK = 1 << 16
"""Keys hashed at a time, so that intermediate arrays stay in a processor's cache."""


class KeyHash:
    """The hash function of a seed and a number. It has nothing in common with any other."""

    def __init__(self, seed: str, number: int = 0) -> None:
        secret = hashlib.shake_256(f"{seed} {number}".encode()).digest(8 * _FACTORS + hashlib.blake2b.MAX_KEY_SIZE)
        numbers = np.frombuffer(secret, "<u8", _FACTORS)
        self._added, self._of_length, self._factors = int(numbers[0]), int(numbers[1]), numbers[2:]
        self._of_long = secret[8 * _FACTORS :]

    def __call__(self, keys: pa.BinaryArray) -> Hashes:
        """The hash of each key, the same on every machine. None of them is null."""
        hashes = np.empty(len(keys), np.uint64)
        for start in range(0, len(keys), _BLOCK):
            block = keys.slice(start, _BLOCK)
            sizes = _sizes(block)
            if (sizes == sizes[0]).all():
                hashes[start : start + _BLOCK] = self._of_one_size(block, int(sizes[0]))
                continue
            order = np.argsort(np.minimum(sizes, LONG_BYTES + 1).astype(np.uint16), kind="stable")
            hashes[start + order] = self._of_sorted(block.take(pa.array(order)), sizes[order])
        hashes ^= hashes >> _UPPER_HALF  # words that differ in upper bits alone leave the lower ones as they are
        return hashes

    def _of_sorted(self, keys: pa.BinaryArray, sizes: npt.NDArray[np.int32]) -> Hashes:
        cuts = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(keys)]
        runs = ((start, keys.slice(start, end - start)) for start, end in pairwise(cuts))
        return np.concatenate([self._of_one_size(run, int(sizes[start])) for start, run in runs])

    def _of_one_size(self, keys: pa.BinaryArray, size: int) -> Hashes:
        """Those of keys of so many bytes each, which lie one after the other."""
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
        if size % 4:  # the last word has some bytes of the one before as well
            hashes += np.ndarray((len(keys),), "<u4", data, first + size - 4, (size,)) * self._factors[words]
        return hashes

    def _of_long_key(self, key: pa.BinaryScalar) -> int:
        return int.from_bytes(hashlib.blake2b(key.as_buffer(), digest_size=8, key=self._of_long).digest())


def _sizes(keys: pa.BinaryArray) -> npt.NDArray[np.int32]:
    return np.diff(np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1])


def _weighed(words: npt.NDArray[np.uint32 | np.uint8], factors: Hashes) -> Hashes:
    """The sum of each row's words, each times its factor."""
    return np.asarray(np.einsum("ij,j->i", words, factors[: words.shape[1]]), np.uint64)
