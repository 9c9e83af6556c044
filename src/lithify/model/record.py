"""A record, as producers append it and readers return it.

Owns the vocabulary of C1 and C17: what a record consists of, and when it is a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from lithify.model.message import Chunk, Envelope

TimestampType = Literal["CreateTime", "LogAppendTime"]
Header = tuple[str, bytes | None]

LAST_OFFSET = 2**63 - 2
"""The largest offset of a record: the log end after it is the largest 64-bit integer."""

TIMESTAMP_TYPES: tuple[TimestampType, ...] = ("CreateTime", "LogAppendTime")


class Record(NamedTuple):  # a third of the time that a frozen dataclass takes to be made, by the million
    """One record of a log.

    `timestamp` is epoch milliseconds; in an append `None` means "now", `partition=None` Kafka's
    default partitioner, and `offset=None` the log's next offset. Records that readers return have
    all of them. Records of a topic that keeps Pulsar's message ids have an `envelope`, no others do (C52).
    """

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    offset: int | None = None
    timestamp_type: TimestampType = "CreateTime"
    envelope: Envelope | None = None

    @property
    def passed_through(self) -> bool:
        """Whether it is a whole entry of Pulsar that no round may remove (C53)."""
        return self.envelope is not None and self.envelope.passed_through

    @property
    def chunk(self) -> Chunk | None:
        """Which part of a large message it is; None if it is none, or does not show it (C53)."""
        return None if self.envelope is None else self.envelope.chunk

    @property
    def size_bytes(self) -> int:
        """Payload size, as `max.message.bytes` counts it: key, value, header names and values."""
        headers = sum(len(name.encode()) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


def payload_bytes(records: Iterable[Record]) -> int:
    """Their `size_bytes` in all, in a third of the time where they have no headers, as most have none."""
    return sum([r.size_bytes if r.headers else len(r.key or b"") + len(r.value or b"") for r in records])


def is_tombstone(value_size: int | None, *, empty_is_tombstone: bool) -> bool:
    """Whether a value of `size` bytes deletes its key (C17); `None` is the null value."""
    return value_size is None or (empty_is_tombstone and value_size == 0)
