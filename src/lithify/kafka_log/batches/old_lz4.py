"""LZ4 in messages of version 0: its frames have another checksum of their header than every library compares.

magic (4)   flags   block sizes   [size of the content (8)]   checksum   blocks ...
╰─────────────── Kafka before 0.10 ───────────────────────╯   the second byte of an xxHash-32
            ╰──────────── LZ4 ─────────────────────────────╯
"""

from __future__ import annotations

import struct
from typing import Final

_FLAGS_AT: Final = 4
_HAS_CONTENT_SIZE: Final = 1 << 3
_PRIMES: Final = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_32_BITS: Final = 2**32 - 1


def with_header_checksum(frame: bytes) -> bytes:
    """The frame as LZ4 has it, whatever the checksum of its header is."""
    if len(frame) <= _FLAGS_AT:
        return frame
    end = _FLAGS_AT + (10 if frame[_FLAGS_AT] & _HAS_CONTENT_SIZE else 2)
    return frame[:end] + bytes([_xxhash_32(frame[_FLAGS_AT:end]) >> 8 & 0xFF]) + frame[end + 1 :]


def _xxhash_32(data: bytes) -> int:
    """Of less than 16 bytes, without a seed."""
    found, words = _PRIMES[4] + len(data), len(data) // 4
    for (word,) in struct.iter_unpack("<I", data[: 4 * words]):
        found = _rotated(found + word * _PRIMES[2], 17) * _PRIMES[3]
    for byte in data[4 * words :]:
        found = _rotated(found + byte * _PRIMES[4], 11) * _PRIMES[0]
    found &= _32_BITS
    found = (found ^ found >> 15) * _PRIMES[1] & _32_BITS
    found = (found ^ found >> 13) * _PRIMES[2] & _32_BITS
    return found ^ found >> 16


def _rotated(number: int, bits: int) -> int:
    number &= _32_BITS
    return number << bits | number >> (32 - bits)
