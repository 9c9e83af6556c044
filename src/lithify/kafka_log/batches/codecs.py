"""The codecs of batches, by their numbers in the attributes, with a limit on the result.

GZIP, LZ4 (its frames) and ZSTD are streams, which are read up to the limit. Snappy is Java's own framing of raw
blocks, or one raw block, as other clients write it; a block begins with its size.

    82 SNAPPY 00   version (4)   compatible with (4)   │   size (4)   raw block   │   size   raw block   ···
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode

NO_CODEC: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

NAMES: Final = {NO_CODEC: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
"""As Kafka's `compression.type` has them."""
LARGEST_RECORDS_BYTES: Final = 256 * 2**20
"""Most bytes of the records of one batch."""

_STREAMS: Final = {GZIP: "gzip", LZ4: "lz4", ZSTD: "zstd"}
_ENCODE: Final = {GZIP: gzip_encode, SNAPPY: snappy_encode, LZ4: lz4_encode, ZSTD: zstd_encode}
_FRAMED: Final = b"\x82SNAPPY\0"
_FRAMED_HEAD_BYTES: Final = 16
_LEAST_ROOM_BYTES: Final = 2**16
_SNAPPY_PER_BYTE: Final = 64
"""Most bytes that one compressed byte can stand for."""


class CodecError(Exception):
    """Why something cannot be decompressed; callers know what, and say so."""


def decompressed(codec: int, data: bytes) -> bytes:
    """Raises `CodecError` for an unknown codec, for bytes that are not of it, and for too many of them."""
    if codec == NO_CODEC:
        return data
    try:
        if codec == SNAPPY:
            return b"".join(_snappy(data))
        if codec in _STREAMS:
            return b"".join(_streamed(_STREAMS[codec], data))
    except (OSError, ValueError) as error:  # Arrow's errors are such
        raise CodecError(f"its records cannot be decompressed by {NAMES[codec]}: {error}") from error
    raise CodecError(f"its codec {codec} is not known")


def compressed(codec: int, data: bytes) -> bytes:
    return data if codec == NO_CODEC else bytes(_ENCODE[codec](data))


def _streamed(name: str, data: bytes) -> Iterator[bytes]:
    """Each piece is larger than all before it: Arrow makes room for what may come, which costs small batches time."""
    total, room = 0, _LEAST_ROOM_BYTES
    with pa.CompressedInputStream(pa.BufferReader(data), name) as stream:
        while piece := stream.read(min(room, LARGEST_RECORDS_BYTES + 1 - total)):
            total, room = total + len(piece), 4 * room
            yield _bounded(piece, total)


def _snappy(data: bytes) -> Iterator[bytes]:
    if not data.startswith(_FRAMED):
        yield _raw(data, 0)
        return
    at, total = _FRAMED_HEAD_BYTES, 0
    while at < len(data):
        if at + 4 > len(data):
            raise CodecError("its records end within the size of a Snappy block")
        (size,) = struct.unpack_from(">i", data, at)
        at += 4
        if not 0 < size <= len(data) - at:
            raise CodecError(f"its records have a Snappy block of {size} bytes, where {len(data) - at} are left")
        block = _raw(data[at : at + size], total)
        at, total = at + size, total + len(block)
        yield block


def _raw(block: bytes, before: int) -> bytes:
    size = _stated_size(block)
    if size is None or size > len(block) * _SNAPPY_PER_BYTE:
        raise CodecError("its records have a Snappy block that states no size that it can have")
    _bounded(b"", before + size)
    return bytes(pa.Codec("snappy").decompress(block, decompressed_size=size, asbytes=True))


def _stated_size(block: bytes) -> int | None:
    size = 0
    for shift, byte in zip(range(0, 35, 7), block, strict=False):
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
    return None


def _bounded(data: bytes, size: int) -> bytes:
    if size > LARGEST_RECORDS_BYTES:
        raise CodecError(f"its records have more than the {LARGEST_RECORDS_BYTES} bytes that Lithify reads")
    return data
