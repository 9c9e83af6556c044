"""Records as no client of ours sends them, in batches that are put together here byte by byte (magic 2)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from support.kafka.broker import KafkaBroker
from support.servers.tcp_proxy import wait_until

_PRODUCE, _VERSION = 0, 7
_NOT_LEADER = 6
WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class RawRecord:
    """Names of headers are bytes, which need not be UTF-8."""

    key: bytes
    value: bytes | None
    timestamp: int
    headers: Sequence[tuple[bytes, bytes | None]] = ()


def produce_raw(broker: KafkaBroker, topic: str, records: Sequence[RawRecord]) -> None:
    """Puts them into partition 0, in one batch."""
    data = _batch(records)
    topics = struct.pack(">ih", 1, len(topic)) + topic.encode() + struct.pack(">iii", 1, 0, len(data)) + data
    request = struct.pack(">hhih", _PRODUCE, _VERSION, 1, -1) + struct.pack(">hhi", -1, -1, 10_000) + topics
    refused = [_NOT_LEADER]

    def done() -> bool:
        with socket.create_connection(("127.0.0.1", broker.port), WAIT_S) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answers:
                answer = answers.read(struct.unpack(">i", answers.read(4))[0])
        (refused[0],) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic) + 4 + 4)
        return refused[0] != _NOT_LEADER

    wait_until(done, f"{topic} has no leader", WAIT_S)
    assert refused[0] == 0, f"Kafka's error {refused[0]}"


def _batch(records: Sequence[RawRecord]) -> bytes:
    first = records[0].timestamp
    body = b"".join(_record(n, record, first) for n, record in enumerate(records))
    times = (first, max(record.timestamp for record in records))
    counted = struct.pack(">hiqqqhii", 0, len(records) - 1, *times, -1, -1, -1, len(records)) + body
    batch = struct.pack(">ibI", -1, 2, _crc32c(counted)) + counted
    return struct.pack(">qi", 0, len(batch)) + batch


def _record(number: int, record: RawRecord, first: int) -> bytes:
    headers = b"".join(_sized(name) + _sized(value) for name, value in record.headers)
    payload = _sized(record.key) + _sized(record.value) + _varint(len(record.headers)) + headers
    body = b"\0" + _varint(record.timestamp - first) + _varint(number) + payload
    return _varint(len(body)) + body


def _sized(value: bytes | None) -> bytes:
    return _varint(-1) if value is None else _varint(len(value)) + value


def _varint(number: int) -> bytes:
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
