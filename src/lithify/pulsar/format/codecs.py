"""The codecs of payloads, by their numbers in the metadata, with a limit on the result.

LZ4 and Snappy are raw blocks, ZSTD a frame, ZLIB a stream that Pulsar's Java client does not finish. Every
payload must have exactly the uncompressed size that its metadata says, and that size is checked against
the limit before anything is allocated.
"""

from __future__ import annotations

import zlib
from typing import Final

import pyarrow as pa

NONE: Final = 0
LZ4: Final = 1
ZLIB: Final = 2
ZSTD: Final = 3
SNAPPY: Final = 4

KNOWN: Final = frozenset({NONE, LZ4, ZLIB, ZSTD, SNAPPY})

PAYLOAD_LIMIT_BYTES: Final = 128 << 20
"""Most bytes of an uncompressed payload: 25 times Pulsar's own default limit on messages."""

_ARROW: Final = {LZ4: "lz4_raw", ZSTD: "zstd", SNAPPY: "snappy"}
_MOST_PER_BYTE: Final = {LZ4: 255, ZLIB: 1032, SNAPPY: 64}
"""Most bytes that one compressed byte can stand for, so that a small payload cannot ask for much memory."""


class CodecError(Exception):
    """Why a payload cannot be decompressed; callers know which entry it is of, and say so."""


def decompressed(codec: int, payload: bytes, size: int) -> bytes:
    """The payload of `size` bytes. Raises CodecError if it does not have them, or more than the limit."""
    if codec == NONE:
        return payload
    if size > PAYLOAD_LIMIT_BYTES:
        raise CodecError(f"its payload would have {size} bytes, but Lithify reads at most {PAYLOAD_LIMIT_BYTES}")
    if codec in _MOST_PER_BYTE and size > 64 + len(payload) * _MOST_PER_BYTE[codec]:
        raise CodecError(f"its payload of {len(payload)} bytes cannot become {size} bytes")
    try:
        data = _inflated(payload, size) if codec == ZLIB else _by_arrow(codec, payload, size)
    except (OSError, ValueError, zlib.error) as error:  # Arrow's errors are such
        raise CodecError(f"its payload cannot be decompressed: {error}") from error
    if len(data) != size or (codec == LZ4 and size and not _fills(payload, size)):
        raise CodecError(f"its payload does not have the {size} bytes that its metadata states")
    return data


def compressed(codec: int, data: bytes) -> bytes:
    """The payload in that codec."""
    if codec == NONE:
        return data
    if codec == ZLIB:
        return zlib.compress(data)
    return bytes(pa.Codec(_ARROW[codec]).compress(data, asbytes=True))


def _inflated(payload: bytes, size: int) -> bytes:
    return zlib.decompressobj().decompress(payload, size + 1)


def _by_arrow(codec: int, payload: bytes, size: int) -> bytes:
    if codec == SNAPPY and _snappy_size(payload) != size:
        raise CodecError("its payload does not have the size that its metadata states")
    return bytes(pa.Codec(_ARROW[codec]).decompress(payload, decompressed_size=size, asbytes=True))


def _fills(payload: bytes, size: int) -> bool:
    """Whether an LZ4 block that fits into this number of bytes needs them all.

    Arrow does not tell how many bytes a block became: behind them it returns what was in memory before, which must
    get into no topic. Only a block that does not fit into one byte less is as large as it should be.
    """
    try:
        pa.Codec(_ARROW[LZ4]).decompress(payload, decompressed_size=size - 1)
    except OSError:
        return True
    return False


def _snappy_size(payload: bytes) -> int:
    """The size that a raw block starts with, which Arrow does not compare."""
    size = 0
    for shift, byte in zip(range(0, 35, 7), payload, strict=False):
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
    return -1
