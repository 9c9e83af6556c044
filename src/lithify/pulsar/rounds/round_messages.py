"""Messages as a round sees them: which compete for their keys, and which remain or are removed whatever the others are.

marker, compacted out        go
no key                       stays or goes, as `retain_null_key` says
sealed batch                 stays, and hides keys
chunk                        competes as a whole message, once all of its chunks are known
all others                   compete
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from lithify.columnar.segment.dead_records import Flags, Integers
from lithify.pulsar.columns import Damage, Kind, Messages, messages_of
from lithify.pulsar.compaction.rules import Order
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.format.kinds import key_of


@dataclass(frozen=True, slots=True)
class RoundRules:
    """The rules of a round; `retain_null_key` is the broker's `topicCompactionRetainNullKey`.

    `skip_damaged`: a batch that its producer wrote damaged is taken for an encrypted one (C74).
    """

    retain_null_key: bool = False
    order: Order = "publish"
    skip_damaged: bool = False

    @property
    def by_event_time(self) -> bool:
        return self.order == "event-time"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk: the row of its entry, the message it is part of, and what that message is judged by."""

    row: int
    unit: tuple[bytes, bytes]
    chunk_id: int
    total: int
    key: bytes | None
    event_time: int


@dataclass(frozen=True, slots=True)
class RoundMessages:
    """Messages of some entries; `competes`, `stays` and `sealed` have a flag for each, others are removed."""

    messages: Messages
    competes: Flags
    stays: Flags
    sealed: Flags
    chunks: tuple[Chunk, ...]

    @property
    def count(self) -> int:
        return len(self.messages)

    def counted(self, chosen: Flags) -> int:
        """How many messages the chosen rows are, as reports count them: neither markers nor what was compacted out."""
        messages = self.messages
        counts = ~messages.compacted_out & (messages.kind != Kind.MARKER) & chosen
        hidden = messages.row[counts & (messages.kind == Kind.SEALED_BATCH)]
        return int(np.count_nonzero(counts) + (messages.headers.count[hidden] - 1).sum())


def round_messages_of(
    entries: Iterable[RawEntry], rules: RoundRules, damage: Damage | None = None
) -> Iterator[RoundMessages]:
    """All entries, in parts. `damage` is told what is skipped. Raises `DamagedError`, which names ledger and entry."""
    for messages in messages_of(entries, (damage or Damage()) if rules.skip_damaged else None):
        yield _round_messages(messages, rules)


def _round_messages(messages: Messages, rules: RoundRules) -> RoundMessages:
    kind = messages.kind
    has_key = _is_valid(messages)
    sealed: Flags = kind == Kind.SEALED_BATCH
    if not rules.by_event_time:
        sealed &= ~has_key
    alone: Flags = (kind != Kind.MARKER) & (kind != Kind.CHUNK) & ~sealed & ~messages.compacted_out
    stays = sealed | alone & ~has_key if rules.retain_null_key else sealed
    rows: Integers = np.flatnonzero(kind == Kind.CHUNK)
    return RoundMessages(
        messages, alone & has_key, stays, sealed, tuple(_chunk(messages, row) for row in rows.tolist())
    )


def _is_valid(messages: Messages) -> Flags:
    return np.asarray(messages.key.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _chunk(messages: Messages, row: int) -> Chunk:
    metadata = messages.entry_metadata(row)
    unit = (metadata.producer_name, metadata.uuid)
    return Chunk(row, unit, metadata.chunk_id, metadata.num_chunks_from_msg, key_of(metadata), metadata.event_time)
