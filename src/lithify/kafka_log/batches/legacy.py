"""Messages of the versions 0 and 1, by which brokers before 0.11 stored records, alone or several in another's value.

crc (4)   magic   attributes   timestamp (8, version 1)   size (4)  key   size (4)  value        size -1: null
╰─ CRC-32 of all that follows

version 0, compressed    the messages in the value have their offsets
version 1, compressed    they have offsets from 0 on; the message around them has that of the last one
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple
from zlib import crc32

from lithify.kafka_log.batches.codecs import LZ4, CodecError, decompressed
from lithify.kafka_log.batches.frames import MOST_RECORDS, BatchError, Frame, frames_of
from lithify.kafka_log.batches.old_lz4 import with_header_checksum

NO_TIMESTAMP: Final = -1
"""Of messages of version 0."""
_CHECKED_FROM, _ATTRIBUTES_AT, _TIMESTAMP_AT = 16, 17, 18
_CODEC, _LOG_APPEND_TIME = 0b111, 1 << 3
_SIZE: Final = struct.Struct(">i")


class LegacyRecord(NamedTuple):
    """A record; it has the names that records of version 2 have."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def legacy_records_of(frame: Frame) -> list[LegacyRecord]:
    """The records in a frame of version 0 or 1, in order. Raises `BatchError` if they are damaged."""
    message = _alone(frame)
    codec = frame.data[_ATTRIBUTES_AT] & _CODEC
    if not codec:
        return [message]
    value = message.value or b""
    if codec == LZ4 and frame.magic == 0:
        value = with_header_checksum(value)
    try:
        inner = [*_inner(frame, decompressed(codec, value))]
    except CodecError as error:
        raise frame.error(str(error)) from error
    if not inner:
        raise frame.error("a compressed message without messages in it")
    if any(after.offset <= before.offset for before, after in pairwise(inner)):
        raise frame.error("the offsets of its compressed messages are not in order")
    return _placed(frame, message, inner)


def _inner(frame: Frame, data: bytes) -> Iterator[LegacyRecord]:
    try:
        for number, each in enumerate(frames_of(io.BytesIO(data))):
            if number == MOST_RECORDS:
                raise each.error(f"there are more than the {MOST_RECORDS} messages that Lithify reads")
            if each.magic != frame.magic or each.data[_ATTRIBUTES_AT] & _CODEC:
                raise each.error("of another version than the message around it, or compressed again")
            yield _alone(each)
    except BatchError as error:
        raise frame.error(f"in its compressed messages, {error}") from error


def _placed(frame: Frame, around: LegacyRecord, inner: list[LegacyRecord]) -> list[LegacyRecord]:
    """With the offsets and times that they have in the log."""
    if frame.magic == 0:
        return inner
    shift = frame.offset - inner[-1].offset
    if frame.data[_ATTRIBUTES_AT] & _LOG_APPEND_TIME:
        inner = [each._replace(timestamp=around.timestamp, timestamp_type=1) for each in inner]
    return [each._replace(offset=each.offset + shift) for each in inner]


def _alone(frame: Frame) -> LegacyRecord:
    data = frame.data
    if crc32(data[_CHECKED_FROM:]) != int.from_bytes(data[_CHECKED_FROM - 4 : _CHECKED_FROM]):
        raise frame.error("the checksum of a message is wrong")
    at, timestamp = _TIMESTAMP_AT, NO_TIMESTAMP
    if frame.magic == 1:
        (timestamp,), at = struct.unpack_from(">q", data, at), at + 8
    key, at = _bytes(frame, at)
    value, at = _bytes(frame, at)
    if at != len(data):
        raise frame.error(f"{len(data) - at} bytes after the value of a message")
    timestamp_type = int(bool(data[_ATTRIBUTES_AT] & _LOG_APPEND_TIME)) if frame.magic == 1 else 0
    return LegacyRecord(frame.offset, timestamp, timestamp_type, key, value)


def _bytes(frame: Frame, at: int) -> tuple[bytes | None, int]:
    """A key or a value, and the position after it."""
    start = at + _SIZE.size
    if start > len(frame.data):
        raise frame.error("a message ends within a size")
    (size,) = _SIZE.unpack_from(frame.data, at)
    if size < 0:
        return None, start
    if start + size > len(frame.data):
        raise frame.error("a message ends within its key or value")
    return frame.data[start : start + size], start + size
