"""Ids and positions of messages in a Pulsar topic, as Pulsar orders and writes them.

    ledger 5:  entry 0 [ 0 1 2 ]   entry 1 [ . ]      batch index 0, 1, 2, and -1 for an entry without a batch
    ledger 9:  entry 0 [ . ]       entry 1 [ ? ? ]    an encrypted batch: one record 9:1, which has 9:1:0 and 9:1:1

Ids of one partition ascend by ledger, entry and batch index. An id never belongs to another message. Clients of Pulsar
have ids with an index of messages in an encrypted batch: a start at any of them is a start at its record (C52).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self

NO_BATCH: Final = -1
"""The batch index of a message that is an entry of its own."""

_LAST: Final = 2**63 - 1
_TEXT: Final = re.compile(r"[0-9]{1,19}:[0-9]{1,19}(:-?[0-9]{1,10})?")


class MessageId(NamedTuple):
    """The id of a message, or with batch index -1 of a whole entry."""

    ledger: int
    entry: int
    batch_index: int = NO_BATCH

    @classmethod
    def parsed(cls, text: str) -> Self:
        """LEDGER:ENTRY or LEDGER:ENTRY:INDEX, as `str` writes it. Raises `ValueError`."""
        if not _TEXT.fullmatch(text):
            raise ValueError(f"{text!r} is no message id: LEDGER:ENTRY, in a batch LEDGER:ENTRY:INDEX")
        return cls(*map(int, text.split(":")))

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


class Envelope(NamedTuple):
    """What a message of Pulsar has besides the fields of a record.

    `metadata` is a serialised `MessageMetadata` with the fields that have no column (docs/format.md). With
    `passed_through` the record is a whole entry that compaction cannot look into (C53): its value is the entry's
    payload as it is, and `metadata` that of the entry.
    """

    id: MessageId
    event_time: int | None = None
    """Epoch ms."""
    metadata: bytes | None = None
    passed_through: bool = False

    def reaches(self, sought: MessageId) -> bool:
        """Whether a reader that starts at `sought` gets this record: a whole entry has all indexes of its own."""
        return self.id >= sought or (self.passed_through and self.id.place == sought.place)


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
