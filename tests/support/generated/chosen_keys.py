"""Keys as an attacker chooses them who knows the code: all of one hash, of one size, or hard to tell apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

_MIXED = np.uint64(0xD6E8FEB86659FD93)
_LENGTH_MIXED = 0xC6A4A7935BD1E995
_START = 0xE17A1465


def of_one_duckdb_hash(count: int) -> list[bytes]:
    """Keys of 256 bytes that DuckDB's `hash` gives one and the same number."""
    state = np.uint64((_START ^ (256 * _LENGTH_MIXED)) % 2**64)
    first = np.random.default_rng(1).integers(0, 2**63, count).astype(np.uint64)
    second = ((state ^ first) * _MIXED) ^ np.uint64(0x1234567890ABCDEF)
    return [a + b + bytes(240) for a, b in zip(_words(first), _words(second), strict=True)]


def of_one_hash_behind_any_prefix(count: int) -> list[bytes]:
    """Keys that share DuckDB's `hash` whatever 8 bytes stand before them: flipped top bits cancel each other."""
    keys = np.zeros((count, 2 * count.bit_length()), np.uint64)
    flipped = (np.arange(count)[:, None] >> np.arange(count.bit_length())) & 1
    keys[:, 0::2] = keys[:, 1::2] = flipped.astype(np.uint64) << np.uint64(63)
    return [row.tobytes() for row in keys]


def of_one_spark_group_hash(count: int) -> list[bytes]:
    """Keys of 8 bytes for offsets from 0 on: with them Spark's hash of a row (0, key, -1, offset, null) is one number.

    Its Murmur3 of 32 bits has no seed and can be turned round: the end of a key makes up for what stands before it.
    """
    first, offsets = np.arange(count, dtype=np.uint32), np.arange(count, dtype=np.uint32)
    state = np.full(count, 42, np.uint32)
    for word in (1 << 4, 0, 0, 0, 8, 6 * 8, 2**32 - 1, 2**32 - 1, offsets, 0, 0, 0, first):
        state = _rotated(state ^ _murmur_mixed(np.full(count, word, np.uint32)), 13) * _FIVE + _ADDED
    wanted = _rotated((np.full(count, 4711, np.uint32) - _ADDED) * _inverse(_FIVE), 32 - 13) ^ state
    second = _rotated(wanted * _inverse(_SECOND), 32 - 15) * _inverse(_FIRST)
    return [row.tobytes() for row in np.stack((first, second), axis=1)]


_FIRST, _SECOND = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_FIVE, _ADDED = np.uint32(5), np.uint32(0xE6546B64)


def _murmur_mixed(words: Any) -> Any:
    return _rotated(words * _FIRST, 15) * _SECOND


def _rotated(words: Any, bits: int) -> Any:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _inverse(factor: Any) -> Any:
    return np.uint32(pow(int(factor), -1, 2**32))


def of_upper_bits(count: int) -> list[bytes]:
    """Keys whose words of 32 bits differ in their upper bits alone, on which products depend least."""
    bits = (np.arange(count)[:, None] >> np.arange(count.bit_length())) & 1
    return [row.tobytes() for row in (bits << 31).astype("<u4")]


def of_every_length(count: int) -> list[bytes]:
    """Zeros and nothing else, as many as there are; every thousandth key longer than a block of hashes takes."""
    return [bytes(number) if number < 1000 else b"%d" % number for number in range(count)]


def of_long_prefixes(count: int) -> list[bytes]:
    """Keys of 600 bytes that differ at their ends alone, and compress to almost nothing."""
    return [b"p" * 592 + b"%08d" % number for number in range(count)]


def random_keys(count: int) -> list[bytes]:
    """Random keys of 256 bytes."""
    return _words(np.random.default_rng(2).integers(0, 2**63, (count, 32)).astype(np.uint64))


CHOSEN: Mapping[str, Callable[[int], list[bytes]]] = {
    "one_duckdb_hash": of_one_duckdb_hash,
    "one_hash_behind_any_prefix": of_one_hash_behind_any_prefix,
    "upper_bits": of_upper_bits,
    "every_length": of_every_length,
    "long_prefixes": of_long_prefixes,
}


def duckdb_hashes(keys: list[bytes]) -> set[int]:
    """The different numbers that DuckDB's `hash` gives these keys."""
    rows = pa.table({"key": pa.array(keys, pa.binary())})
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        return {number for (number,) in connection.execute("SELECT DISTINCT hash(key) FROM rows").fetchall()}


def _words(rows: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in rows]
