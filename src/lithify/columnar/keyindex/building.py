"""Builds the index of the keys of one segment while it is written.

    row group ─► halves of the hashes, deletes ─► .. ─► at the end: sorted by bucket, in order of position ─► sink

4 bytes a key are held until the end, 8 if some records have none. Files of few keys, or of very many, get no index: to
read few is as fast, and the memory of a task has to do for the others (C38).
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lithify.columnar.key_hash import HALF_BITS, HalfHashes, KeyHash, half_hashes
from lithify.columnar.keyindex.layout import (
    COUNT,
    MOST_BITS,
    PLACE,
    SEED_BYTES,
    SUM_BYTES,
    TAG_BITS,
    Front,
    Integers,
    Named,
    seed_text,
)

LEAST_KEYS, MOST_KEYS = 1 << 15, 1 << 23

KEYS_PER_BUCKET = 64
"""A bucket of some 400 bytes is read to find a key; smaller ones would make the counts longer, which all are read."""

GROUP_BITS = 3
"""Keys are sorted in eight groups, one after the other, which bounds the memory that it takes."""

Positions = npt.NDArray[np.uint32]


class KeyIndexBuilder:
    """The index of a file to which records are added in order. `name` is the file's own, which no producer can know."""

    def __init__(self, name: str) -> None:
        self._seed = hashlib.blake2b(name.encode(), digest_size=SEED_BYTES).digest()
        self._hashes = KeyHash(seed_text(self._seed))
        self._halves: list[HalfHashes] = []
        self._keyless: list[Positions] = []
        self._nulls, self._empties = BitMap(), BitMap()
        self._records = self._keys = 0

    def add(self, keys: pa.Array, value_sizes: pa.Array) -> None:
        """The keys and the sizes of the values of the next records, null if a record has none."""
        first, self._records = self._records, self._records + len(keys)
        if self._records > MOST_KEYS:
            self._halves, self._keyless = [], []
            return
        positions = np.arange(first, self._records, dtype=np.uint32)
        if keys.null_count:
            keyed = keys.is_valid()
            self._keyless.append(positions[~keyed.to_numpy(zero_copy_only=False)])
            positions = positions[keyed.to_numpy(zero_copy_only=False)]
            keys, value_sizes = keys.filter(keyed), value_sizes.filter(keyed)
        self._halves.append(half_hashes(self._hashes, keys))
        self._keys += len(keys)
        sizes = value_sizes.fill_null(-1).to_numpy(zero_copy_only=False)
        self._nulls |= _bitmap(positions[sizes < 0])
        self._empties |= _bitmap(positions[sizes == 0])

    def write_to(self, sink: Any) -> bytes | None:
        """Writes the block at the end of the file `sink`, and returns what the footer says of it under `ENTRY`.

        None, and nothing is written, if the file is to have no index. Raises what the sink raises.
        """
        if self._keys < LEAST_KEYS or self._records > MOST_KEYS:
            return None
        halves, self._halves = np.concatenate(self._halves), []
        bits = min(MOST_BITS, (self._keys // KEYS_PER_BUCKET).bit_length())
        counts = np.bincount(buckets_of(halves, bits), minlength=1 << bits)
        if counts.max() > np.iinfo(COUNT).max:
            return None
        start, size = sink.tell(), 0
        front, deletes = self._front(bits, counts)
        for part in (front, deletes, *self._buckets(halves, bits, counts)):
            sink.write(part)
            size += len(part)
        return Named(start, len(front), size, zlib.crc32(front)).entry()

    def _front(self, bits: int, counts: Integers) -> tuple[bytes, bytes]:
        """The front of the block, and the deletes behind it."""
        nulls, empties = self._nulls.serialize(), self._empties.serialize()
        deletes = nulls + empties
        front = Front(self._seed, bits, self._records, self._keys, len(nulls), len(empties), zlib.crc32(deletes))
        return front.pack(counts), deletes

    def _buckets(self, halves: HalfHashes, bits: int, counts: Integers) -> Iterator[bytes]:
        """The buckets of each group of keys in turn."""
        positions = self._positions()
        group_bits = min(bits, GROUP_BITS)
        groups = buckets_of(halves, group_bits).astype(np.uint8)
        for group, counted in enumerate(np.split(counts, 1 << group_bits)):
            rows = np.flatnonzero(groups == group)
            order = rows[np.argsort(buckets_of(halves[rows], bits), kind="stable")]
            places = np.empty(len(order), PLACE)
            places["position"] = order if positions is None else positions[order]
            places["tag"] = tags_of(halves[order], bits)
            yield _summed(places, counted)

    def _positions(self) -> Positions | None:
        """The positions of records with a key; None if all have one."""
        if not self._keyless:
            return None
        keyed = np.ones(self._records, np.bool_)
        keyed[np.concatenate(self._keyless)] = False
        return np.flatnonzero(keyed).astype(np.uint32)


def _summed(places: npt.NDArray[np.void], counts: Integers) -> bytes:
    """Each bucket behind its checksum, one after the other."""
    content, end = memoryview(places.tobytes()), 0
    parts: list[bytes | memoryview] = []
    for count in counts.tolist():
        start, end = end, end + count * PLACE.itemsize
        parts += [zlib.crc32(content[start:end]).to_bytes(SUM_BYTES, "little"), content[start:end]]
    return b"".join(parts)


def _bitmap(positions: Positions) -> BitMap:
    return BitMap(array("I", positions.tobytes()))


def buckets_of(halves: HalfHashes, bits: int) -> npt.NDArray[np.uint16]:
    """The bucket of each key, from the upper half of its hash."""
    return (halves >> np.uint32(1) >> np.uint32(HALF_BITS - 1 - bits)).astype(np.uint16)


def tags_of(halves: HalfHashes, bits: int) -> npt.NDArray[np.uint16]:
    """The tag of each key: the bits of the hash behind the bits of its bucket."""
    return (halves >> np.uint32(HALF_BITS - TAG_BITS - bits)).astype(np.uint16)
