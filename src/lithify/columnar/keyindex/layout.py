"""The layout of an index of keys: a block of bytes between the last row group and the footer of a segment.

    block     [ head | counts | deletes | bucket 0 | bucket 1 | .. ]      named by `ENTRY` in the footer's metadata
    head      the seed, the number of bits, of records and of keys, the sizes of both bitmaps and their CRC-32
    counts    how many keys each bucket has: 16 bits each
    deletes   positions of keyed records without a value, and with an empty one: two bitmaps of Roaring
    bucket    CRC-32 of its entries, then for each key its position in the file, 32 bits, and its tag, 16 bits

The upper bits of a key's hash are the number of its bucket, the next 16 its tag. The hash has a secret seed for each
file (`key_hash`), so that producers cannot make keys collide. Nothing of a footer or a block is trusted that no
checksum covers (C8); sizes are compared with the file before anything is read by them (C51).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from struct import Struct

import numpy as np
import numpy.typing as npt

from lithify.columnar.parquet.footer import Footer, UnsoundFileError

ENTRY = b"lithify.keys"
"""Key in the footer's metadata: `1 <start> <front bytes> <block bytes> <CRC-32 of the front>`.

The front is the block up to the deletes. Readers that do not know the number in front read the keys.
"""
VERSION = 1

SEED_BYTES, MOST_BITS, TAG_BITS = 16, 16, 16
_HEAD = Struct(f"<4s{SEED_BYTES}sIIIIII")
_MAGIC = b"LKEY"
COUNT = np.dtype("<u2")
SUM_BYTES = 4
PLACE = np.dtype([("position", "<u4"), ("tag", "<u2")])

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Named:
    """Where an index lies, as a footer says it; sizes in bytes."""

    start: int
    front_bytes: int
    block_bytes: int
    front_sum: int

    def entry(self) -> bytes:
        """The value of `ENTRY`."""
        numbers = (VERSION, self.start, self.front_bytes, self.block_bytes, self.front_sum)
        return " ".join(map(str, numbers)).encode()


@dataclass(frozen=True, slots=True)
class Front:
    """What an index says of itself, without the counts; sizes in bytes."""

    seed: bytes
    bits: int
    records: int
    keys: int
    null_bytes: int
    empty_bytes: int
    deletes_sum: int

    def pack(self, counts: Integers) -> bytes:
        """As it is stored, with the counts."""
        numbers = (self.bits, self.records, self.keys, self.null_bytes, self.empty_bytes, self.deletes_sum)
        return _HEAD.pack(_MAGIC, self.seed, *numbers) + counts.astype(COUNT).tobytes()

    @property
    def size_bytes(self) -> int:
        return _HEAD.size + (COUNT.itemsize << self.bits)

    @property
    def buckets_at(self) -> int:
        """Where the first bucket is in the block."""
        return self.size_bytes + self.null_bytes + self.empty_bytes


def named_in(footer: Footer) -> Named | None:
    """Where the file of this footer has its index; None if it has none that this version of Lithify reads.

    Raises `UnsoundFileError` if nothing can lie there.
    """
    entry = (footer.metadata.metadata or {}).get(ENTRY)
    data_end = max((chunk.end for group in footer.chunks for chunk in group.values()), default=0)
    return None if entry is None else named_by(entry, data_end, footer.size_bytes)


def named_by(entry: bytes, data_end: int, size_bytes: int) -> Named | None:
    """The same by the value of `ENTRY`, in a file of that size whose data end there."""
    if not entry.startswith(b"%d " % VERSION):
        return None
    fields = entry.split(b" ")
    if len(fields) != 5 or not all(field.isdigit() and len(field) < 20 for field in fields):
        raise UnsoundFileError(f"its footer has {entry[:100]!r} in place of an index of keys")
    named = Named(*map(int, fields[1:]))
    inside = data_end <= named.start and named.start + named.block_bytes <= size_bytes
    if not inside or not _HEAD.size <= named.front_bytes <= min(
        named.block_bytes, _HEAD.size + (COUNT.itemsize << MOST_BITS)
    ):
        raise UnsoundFileError("its footer has an index of keys outside of the file, or of an impossible size")
    return named


def seed_text(seed: bytes) -> str:
    """The seed of the hash."""
    return seed.hex()


def unpacked(raw: bytes, named: Named, records: int) -> tuple[Front, Integers]:
    """The front of the index of a file with that number of records; where its buckets start in the block, then its end:
    int64.

    Raises `UnsoundFileError` if it is not what was written.
    """
    if len(raw) != named.front_bytes or zlib.crc32(raw) != named.front_sum:
        raise UnsoundFileError("its index of keys is not what was written: a checksum differs")
    magic, seed, *numbers = _HEAD.unpack_from(raw)
    front = Front(seed, *numbers)
    if magic != _MAGIC or front.bits > MOST_BITS or len(raw) != front.size_bytes or front.records != records:
        raise UnsoundFileError("its index of keys belongs to another file")
    counts = np.frombuffer(raw, COUNT, offset=_HEAD.size).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(SUM_BYTES + PLACE.itemsize * counts)]) + front.buckets_at
    if int(counts.sum()) != front.keys or starts[-1] != named.block_bytes:
        raise UnsoundFileError("the sizes in its index of keys are wrong")
    return front, starts
