"""Kafka's default partitioner: a key gets the partition that a Kafka producer would choose.

    key ──► murmur2 (32 bit) ──► & 0x7fffffff ──► % partitions

`partitions_of` hashes whole columns: step i mixes in the i-th word of all keys that have one.

    length   11  8  8  5  4  0          keys by length, longest first, so that
    word 0   ■   ■  ■  ■  ■             those that still have a word are a prefix
    word 1   ■   ■  ■
    tail     3   0  0  1  0  0          the last 0 to 3 bytes of each

Keeps C13: the partition of a key never changes while the number of partitions remains.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF

_FEW_KEYS = 16
"""With no more keys left in a step than this, it is faster to finish them one by one."""

Hashes = npt.NDArray[np.uint32]


def murmur2(key: bytes) -> int:
    """Kafka's hash of a key, in [0, 2^32)."""
    words = len(key) // 4
    return _finish(_mix_words(_SEED ^ (len(key) & _MASK), key[: 4 * words]), key[4 * words :])


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key, in [0, partitions)."""
    return (murmur2(key) & _POSITIVE) % partitions


def partitions_of(keys: pa.Array, partitions: int, *, round_from: int = 0) -> npt.NDArray[np.int32]:
    """The partition of each key of a `binary` array: int32, as long as `keys`.

    Keyless records (nulls) are assigned round robin: the n-th gets `(round_from + n) % partitions`.
    """
    if partitions == 1:
        return np.zeros(len(keys), np.int32)
    result = ((_hashes(keys) & np.uint32(_POSITIVE)) % np.uint32(partitions)).astype(np.int32)
    if keys.null_count:
        keyless = keys.is_null().to_numpy(zero_copy_only=False)
        result[keyless] = (round_from % partitions + np.arange(keys.null_count)) % partitions
    return result


def _hashes(keys: pa.Array) -> Hashes:
    """murmur2 of each key: uint32, as long as `keys`; undefined for nulls."""
    _, offsets_buffer, data_buffer = keys.buffers()
    if len(keys) == 0 or data_buffer is None or data_buffer.size == 0:
        return np.full(len(keys), murmur2(b""), np.uint32)
    offsets = np.frombuffer(offsets_buffer, np.int32, len(keys) + 1, keys.offset * 4).astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8)
    lengths = np.diff(offsets)
    longest_first = np.argsort(-lengths, kind="stable")
    starts, lengths = offsets[:-1][longest_first], lengths[longest_first]
    hashes = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    _mix_columns(hashes, data, starts, lengths)
    _finish_columns(hashes, data, starts + (lengths & ~3), lengths & 3)
    result = np.empty_like(hashes)
    result[longest_first] = hashes
    return result


def _mix_columns(
    hashes: Hashes, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> None:
    """Mixes the whole words of all keys into `hashes`, in place. Keys are sorted by length, longest first."""
    if len(data) < 4:
        return
    word_at = np.ndarray((len(data) - 3,), np.dtype("<u4"), data.data, strides=(1,))
    m = np.uint32(_M)
    words, done = lengths >> 2, 0
    active = int(np.count_nonzero(words))
    while active > _FEW_KEYS:
        mixed = word_at[starts[:active] + 4 * done] * m
        mixed ^= mixed >> np.uint32(24)
        hashes[:active] = (hashes[:active] * m) ^ (mixed * m)
        done += 1
        active = int(np.searchsorted(-words, -done, side="left"))
    for row in range(active):
        left = data[starts[row] + 4 * done : starts[row] + 4 * words[row]]
        hashes[row] = _mix_words(int(hashes[row]), left.tobytes())


def _finish_columns(
    hashes: Hashes, data: npt.NDArray[np.uint8], tails: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> None:
    """Mixes the last 0 to 3 bytes of each key, at `tails` in `data`, into `hashes` and finishes these, in place."""
    m = np.uint32(_M)
    for place in (2, 1, 0):
        rows = np.flatnonzero(sizes > place)
        hashes[rows] ^= data[tails[rows] + place].astype(np.uint32) << np.uint32(8 * place)
    hashes[sizes > 0] *= m
    hashes ^= hashes >> np.uint32(13)
    hashes *= m
    hashes ^= hashes >> np.uint32(15)


def _mix_words(state: int, words: bytes) -> int:
    """Mixes whole words into an unfinished hash and returns it."""
    mixed = np.frombuffer(words, "<u4") * np.uint32(_M)
    mixed ^= mixed >> np.uint32(24)
    for word in (mixed * np.uint32(_M)).tolist():
        state = (state * _M & _MASK) ^ word
    return state


def _finish(state: int, tail: bytes) -> int:
    if tail:
        state = (state ^ int.from_bytes(tail, "little")) * _M & _MASK
    state ^= state >> 13
    state = state * _M & _MASK
    return state ^ (state >> 15)
