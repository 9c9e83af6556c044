"""Ids and positions of messages in a Pulsar topic, as Pulsar orders and writes them.

    ledger 5:  entry 0 [ 0 1 2 ]   entry 1 [ . ]      batch index 0, 1, 2, and -1 for an entry without a batch
    ledger 9:  entry 0 [ . ]       entry 1 [ ? ? ]    an encrypted batch: one record 9:1, which has 9:1:0 and 9:1:1

Ids of one partition ascend by ledger, entry and batch index. An id never belongs to another message. Clients of Pulsar
have ids with an index of messages in an encrypted batch: a start at any of them is a start at its record (C52).

An encrypted batch hides its keys, and a chunk of a large message has the key of that in its metadata, so it can hide
older values of this key alone (C53).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, Self

NO_BATCH: Final = -1
"""The batch index of a message that is an entry of its own."""
DAMAGED_NAMED_AT_MOST: Final = 100
"""Places of entries that their producers wrote damaged, as reports of rounds and copies name them (C74)."""

_LAST: Final = 2**63 - 1
_TEXT: Final = re.compile(r"[0-9]{1,19}:[0-9]{1,19}(:-?[0-9]{1,10})?")
_OF_CLIENTS: Final = re.compile(r"\(?([0-9]{1,19})[:,]([0-9]{1,19})[:,]-?[0-9]{1,10}[:,](-?[0-9]{1,10})\)?")

_PARTITION_KEY, _BATCH_SIZE, _SERVER_ONLY, _UUID, _CHUNKS = 6, 11, 20, 26, 27
"""Numbers of fields of `MessageMetadata`."""
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_WIDTHS: Final = {_FIXED_64: 8, _FIXED_32: 4}
_LONGEST_VARINT: Final = 10


class MessageId(NamedTuple):
    """The id of a message, or with batch index -1 of a whole entry."""

    ledger: int
    entry: int
    batch_index: int = NO_BATCH

    @classmethod
    def parsed(cls, text: str) -> Self:
        """LEDGER:ENTRY or LEDGER:ENTRY:INDEX, as `str` writes it. Raises `ValueError`."""
        if not _TEXT.fullmatch(text):
            raise ValueError(f"{text!r} is not a message id: use LEDGER:ENTRY, or LEDGER:ENTRY:INDEX in a batch")
        return cls(*map(int, text.split(":")))

    @classmethod
    def printed_by_clients(cls, text: str) -> Self | None:
        """The id in a text with the partition as third of four numbers, as Pulsar's clients print it; None: in none."""
        match = _OF_CLIENTS.fullmatch(text)
        return None if match is None else cls(*map(int, match.groups()))

    def __str__(self) -> str:
        whole = f"{self.ledger}:{self.entry}"
        return whole if self.batch_index == NO_BATCH else f"{whole}:{self.batch_index}"

    @property
    def is_end(self) -> bool:
        """Whether it is before all messages of a log, or behind them: those are in every log."""
        return self.ledger < 0 or self.place == (_LAST, _LAST)

    @property
    def place(self) -> tuple[int, int]:
        """The entry that has it."""
        return self.ledger, self.entry

    @property
    def previous(self) -> MessageId:
        """Where a copy ends that has everything before this id, and it not; entry -1 is the start of a ledger."""
        if self.batch_index > 0:
            return MessageId(self.ledger, self.entry, self.batch_index - 1)
        return MessageId(self.ledger, self.entry - 1)

    def covers(self, other: MessageId) -> bool:
        """Whether a copy with everything up to this id has `other` too; an id without index is a whole entry."""
        if self.place != other.place:
            return self.place > other.place
        return self.batch_index == NO_BATCH or 0 <= other.batch_index <= self.batch_index


class MessagePosition(NamedTuple):
    """Where the last or the sought message of a log is, and when it was published, in epoch ms.

    As Pulsar's compaction service gives it since PIP-429. Pulsar 4.2.4 has `EARLIEST` with these values; `LATEST` is
    Pulsar's id of that name.
    """

    ledger: int
    entry: int
    batch_index: int
    publish_time: int

    @property
    def id(self) -> MessageId:
        return MessageId(self.ledger, self.entry, self.batch_index)


EARLIEST: Final = MessagePosition(-1, -1, 0, 0)
"""The position in a log that has no message."""
LATEST: Final = MessagePosition(_LAST, _LAST, NO_BATCH, 0)
"""Behind every message of a log."""


class Chunk(NamedTuple):
    """One of several entries that are one message."""

    key: bytes | None
    """The message's key; None: it does not have a key, and so hides no value of any key."""


def chunk_of(metadata: bytes | None) -> Chunk | None:
    """What the entry with this metadata, a `MessageMetadata`, is a chunk of.

    None if it is not a chunk by the rules of `pulsar.format.kinds`, or if its metadata does not show it: such an entry
    may hide a value of any key.
    """
    try:
        fields = dict(_fields(metadata or b""))  # of a field that is repeated the last one counts
    except ValueError:
        return None
    count, uuid, key = fields.get(_CHUNKS), fields.get(_UUID), fields.get(_PARTITION_KEY)
    whole = _SERVER_ONLY not in fields and _BATCH_SIZE not in fields
    if not whole or not isinstance(count, int) or not 1 < count < 2**31 or not isinstance(uuid, bytes):
        return None
    return Chunk(key) if key is None or isinstance(key, bytes) else None


class Envelope(NamedTuple):
    """What a message of Pulsar has besides the fields of a record.

    `metadata` is a serialised `MessageMetadata` with the fields that have no column (docs/reference/format.md). With
    `passed_through` the record is a whole entry that compaction cannot decode (C53): its value is the entry's
    unchanged payload, and `metadata` is the entry's.
    """

    id: MessageId
    event_time: int | None = None
    """Epoch ms."""
    metadata: bytes | None = None
    passed_through: bool = False

    @property
    def chunk(self) -> Chunk | None:
        """Which part of a large message it is; None if it is none, or its metadata does not say so (C53)."""
        return chunk_of(self.metadata) if self.passed_through else None

    def reaches(self, sought: MessageId) -> bool:
        """Whether a reader that starts at `sought` gets this record: a whole entry has all indexes of its own.

        So does an entry that is not a batch: clients of Pulsar print 5:2:0 for entry 2 of partition 0.
        """
        whole = self.passed_through or self.id.batch_index == NO_BATCH
        return self.id >= sought or (whole and self.id.place == sought.place)


class EnvelopeFacts(NamedTuple):
    """What the manifests know of the messages in a segment: bounds of their ids, and how many are passed through."""

    min_ledger: int
    max_ledger: int
    min_entry: int
    max_entry: int
    passed_through: int

    def may_reach(self, sought: MessageId) -> bool:
        """Whether the segment may have this id, or a later one."""
        if self.max_ledger != sought.ledger:
            return self.max_ledger > sought.ledger
        return self.max_entry >= sought.entry


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers and values of the fields of a message. Raises `ValueError`."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        size, at = _varint(data, at) if kind == _BYTES else (_WIDTHS.get(kind, -1), at)
        if size < 0 or at + size > len(data):
            raise ValueError("no such field, or one that is cut off")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends. Raises `ValueError`."""
    value = 0
    for index, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError("a number that is cut off, or too long")
