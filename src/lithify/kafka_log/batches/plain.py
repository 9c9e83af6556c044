"""The records of a batch in plain Python, where compiled code refuses them, or does not have all their bytes.

It refuses names of headers that are not UTF-8. Kafka takes such names. Java's client has U+FFFD in the place of what is
not UTF-8, and so has a copy by `kafka ingest`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lithify.kafka_log.batches.frames import MOST_RECORDS
from lithify.kafka_log.batches.header import BatchHeader
from lithify.kafka_log.batches.legacy import LegacyRecord
from lithify.kafka_log.batches.varints import varint

_VARINT_BITS = 64


class RecordError(Exception):
    """Why bytes are not a record; callers know the batch, and say so."""


def plain_records(header: BatchHeader, body: bytes) -> list[LegacyRecord]:
    """What a batch has in `body`, which is not compressed. Raises `RecordError`."""
    reader = _Reader(body)
    records = [_record(header, reader) for _ in range(header.records)]
    if reader.at != len(body):
        raise RecordError(f"{len(body) - reader.at} bytes after the last record")
    return records


def check_headers(records: int, body: bytes) -> None:
    """Raises `RecordError` for more headers than memory may have, and for bytes that are not a record."""
    reader, headers = _Reader(body), 0
    for _ in range(records):
        size, start = reader.number(), reader.at
        for _ in range(3):  # attributes, time, offset
            reader.number()
        reader.skip()  # key
        reader.skip()  # value
        headers += reader.count()
        if headers > MOST_RECORDS:
            raise RecordError(f"its records have more than the {MOST_RECORDS} headers that Lithify reads")
        if size < reader.at - start:
            raise RecordError(f"a record of at least {reader.at - start} bytes that states {size}")
        reader.at = start + size


def copied_records(body: bytes, times: Mapping[int, int]) -> bytes:
    """Some records of a batch that were read, with other times; the rest of each is copied as it is.

    `times` has them by offset; both count from the bases of the batch.
    """
    reader, found = _Reader(body), list[bytes]()
    while reader.at < len(body):
        size, start = reader.number(), reader.at
        for _ in range(2):  # attributes, time
            reader.number()
        at = reader.at
        offset = reader.number()
        if offset in times:
            record = b"".join((body[start : start + 1], varint(times[offset]), body[at : start + size]))
            found += (varint(len(record)), record)
        reader.at = start + size
    return b"".join(found)


def _record(header: BatchHeader, reader: _Reader) -> LegacyRecord:
    size, start = reader.number(), reader.at
    reader.number()  # attributes
    time, delta = reader.number(), reader.number()
    key, value = reader.bytes(), reader.bytes()
    headers = [(_name(reader.bytes()), reader.bytes()) for _ in range(reader.count())]
    if reader.at - start != size:
        raise RecordError(f"a record of {reader.at - start} bytes that states {size}")
    timestamp = header.max_timestamp if header.timestamp_type else in_64_bits(header.base_timestamp + time)
    return LegacyRecord(header.base_offset + delta, timestamp, header.timestamp_type, key, value, headers)


def in_64_bits(number: int) -> int:
    """As Java's and compiled code add."""
    return (number + 2**63) % 2**64 - 2**63


def _name(data: bytes | None) -> str:
    if data is None:
        raise RecordError("a header without a name")
    return data.decode(errors="replace")


class _Reader:
    """Reads numbers of seven bits a byte, signed, and bytes behind their length."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def number(self) -> int:
        number = 0
        for shift in range(0, _VARINT_BITS, 7):
            if self.at >= len(self._data):
                break
            byte, self.at = self._data[self.at], self.at + 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return in_64_bits((number >> 1) ^ -(number & 1))
        raise RecordError("a number without an end")

    def count(self) -> int:
        """Of things that have at least two bytes each."""
        count = self.number()
        if not 0 <= 2 * count <= len(self._data) - self.at:
            raise RecordError(f"a record with {count} headers, where {len(self._data) - self.at} bytes are left")
        return count

    def bytes(self) -> bytes | None:
        size = self.skip()
        return None if size < 0 else self._data[self.at - size : self.at]

    def skip(self) -> int:
        """The number of bytes that it passes over; below zero: null."""
        size, left = self.number(), len(self._data) - self.at
        if size > left:
            raise RecordError(f"{size} bytes of a record, where {left} are left")
        self.at += max(size, 0)
        return size
