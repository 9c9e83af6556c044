"""Tells by its index where in a segment keys may be (C12: whole keys are compared by who reads the records there).

    keys ─► hashes ─► buckets ─► read, those that lie together at once ─► checked ─► positions of those with the tag

One position in 60,000 belongs to another key. A checksum covers all that is read. If it differs, the file is
damaged, and no reader continues as if it had no index (C8).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lithify.columnar.files.ranges import RangedFile, Ranges
from lithify.columnar.key_hash import KeyHash, half_hashes
from lithify.columnar.keyindex.building import buckets_of, tags_of
from lithify.columnar.keyindex.layout import (
    PLACE,
    SUM_BYTES,
    TAG_BITS,
    Front,
    Integers,
    Named,
    named_in,
    seed_text,
    unpacked,
)
from lithify.columnar.parquet.footer import Footer, UnsoundFileError


class IndexedFile(RangedFile, Protocol):
    """An open file with a checked footer, as `CheckedFile` is one."""

    footer: Footer

    def damaged(self, what: str) -> Exception:
        """The `DamagedError` that says so and names the file."""
        ...


class KeyIndex:
    """The index of one open file. All methods raise `DamagedError` if what they read is not what was written."""

    def __init__(self, file: IndexedFile, named: Named, front: Front, starts: Integers) -> None:
        self._file = file
        self.named = named
        self._front = front
        self._starts = starts
        self._hashes = KeyHash(seed_text(front.seed))
        self._asked: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._ranges = Ranges(file)

    @staticmethod
    def of(file: IndexedFile) -> KeyIndex | None:
        """The index of a file; None if it has none that this version of Lithify reads."""
        try:
            named = named_in(file.footer)
            if named is None:
                return None
            raw = file.read_at(named.front_bytes, named.start)
            return KeyIndex(file, named, *unpacked(raw, named, file.footer.metadata.num_rows))
        except UnsoundFileError as error:
            raise file.damaged(str(error)) from None

    @property
    def keys(self) -> int:
        """How many records have a key."""
        return self._front.keys

    @property
    def bytes_read(self) -> int:
        """All that was read of it."""
        return self.named.front_bytes + self._ranges.bytes_read

    def candidates(self, keys: pa.Array) -> Integers:
        """The ascending positions of the records that may have one of `keys`, of which none is null: int64.

        All that have one are among them.
        """
        signs = self._signs(keys)
        self._asked = np.union1d(self._asked, signs)
        if not len(signs):
            return np.zeros(0, np.int64)
        numbers, firsts = np.unique(signs >> TAG_BITS, return_index=True)
        places, counts = self._places(numbers.astype(np.int64))
        asked = np.diff(np.append(firsts, len(signs)))  # signs of each bucket
        # Each sign is compared with all entries of its bucket: `rows` are the entries, `of` the numbers of the signs.
        met = np.repeat(counts, asked)
        of = np.repeat(np.arange(len(signs)), met)
        starts = np.repeat(np.concatenate([[0], np.cumsum(counts)[:-1]]), asked)
        rows = np.arange(len(of)) + np.repeat(starts - np.concatenate([[0], np.cumsum(met)[:-1]]), met)
        same = places["tag"][rows] == (signs[of] & ((1 << TAG_BITS) - 1))
        found = np.sort(places["position"][rows[same]].astype(np.int64))
        if len(found) and found[-1] >= self._front.records:
            raise self._file.damaged(_NO_RECORDS)
        return found

    def check(self, keys: pa.Array) -> None:
        """That `keys`, which were read at positions of `candidates`, are among those that these may be.

        Raises `DamagedError`: the index, or the file's own of its pages, is wrong.
        """
        if keys.null_count or not np.isin(self._signs(keys, distinct=False), self._asked).all():
            raise self._file.damaged("its keys do not match its index of keys")

    def deletes(self) -> tuple[BitMap, BitMap]:
        """The positions of keyed records without a value, and of those with an empty one."""
        front = self._front
        ends = np.array([front.size_bytes, front.buckets_at]) + self.named.start
        (raw,) = map(bytes, self._ranges.read(ends[:1], ends[1:]))
        if zlib.crc32(raw) != front.deletes_sum:
            raise self._file.damaged(_DIFFERS)
        try:
            both = BitMap.deserialize(raw[: front.null_bytes]), BitMap.deserialize(raw[front.null_bytes :])
        except Exception as error:
            raise self._file.damaged(f"its index of keys has no bitmap of deletes: {error}") from None
        if any(bitmap and bitmap.max() >= front.records for bitmap in both):
            raise self._file.damaged("its index of keys has deletes that are not records of it")
        return both

    def proof(self) -> KeyIndexProof:
        """All of it, to be compared with the keys."""
        places, counts = self._places(np.arange(1 << self._front.bits))
        if len(places) and places["position"].max() >= self._front.records:
            raise self._file.damaged(_NO_RECORDS)
        signs = np.full(self._front.records, _NO_SIGN)
        numbers = np.repeat(np.arange(len(counts)), counts)
        signs[places["position"]] = numbers << TAG_BITS | places["tag"]
        return KeyIndexProof(partial(self._signs, distinct=False), signs, self.deletes())

    def _signs(self, keys: pa.Array, *, distinct: bool = True) -> npt.NDArray[np.uint32]:
        """The bucket and the tag of each key in one number, ascending and each once if they are to be distinct."""
        bits, halves = self._front.bits, half_hashes(self._hashes, keys.cast(pa.binary()))
        signs = buckets_of(halves, bits).astype(np.uint32) << np.uint32(TAG_BITS) | tags_of(halves, bits)
        return np.unique(signs) if distinct else signs

    def _places(self, numbers: Integers) -> tuple[npt.NDArray[np.void], Integers]:
        """The entries of these buckets, one after the other, and how many each has."""
        starts, ends = self._starts[numbers], self._starts[numbers + 1]
        buckets = []
        for bucket in self._ranges.read(self.named.start + starts, self.named.start + ends):
            if zlib.crc32(bucket[SUM_BYTES:]) != int.from_bytes(bucket[:SUM_BYTES], "little"):
                raise self._file.damaged(_DIFFERS)
            buckets.append(bucket[SUM_BYTES:])
        return np.frombuffer(b"".join(buckets), PLACE), (ends - starts - SUM_BYTES) // PLACE.itemsize


_DIFFERS = "its index of keys is not what was written: a checksum differs"
_NO_RECORDS = "its index of keys has places that are not records of it"
_NO_SIGN = np.int64(-1)


@dataclass(frozen=True, slots=True)
class KeyIndexProof:
    """What an index says of each record: the sign of its key, int64, -1 for none, and whether it deletes its key."""

    signs_of: Callable[[pa.Array], npt.NDArray[np.uint32]]
    signs: Integers
    deletes: tuple[BitMap, BitMap]

    def wrong(self, positions: Integers, keys: pa.Array, value_sizes: pa.Array) -> Integers:
        """The positions in the file, among the given ones, at which the index differs from the record there."""
        keyed = keys.is_valid()
        there = keyed.to_numpy(zero_copy_only=False)
        expected = np.full(len(positions), _NO_SIGN)
        expected[there] = self.signs_of(keys.filter(keyed))
        differs = self.signs[positions] != expected
        sizes = value_sizes.fill_null(-1).to_numpy(zero_copy_only=False)
        for size, bitmap in zip((-1, 0), self.deletes, strict=True):
            listed = np.isin(positions, np.frombuffer(bitmap.to_array(), np.uint32))
            differs |= listed != (there & (sizes == size))
        return np.asarray(positions[differs], np.int64)
