"""What a compaction leaves of a topic partition, in plain Python: the reference for all faster ways.

    entries ──► messages with their keys ──► rules.py, key by key ──► one frame per entry that keeps a message

Server-only markers are dropped. A chunked message counts where it is complete, and its chunks are kept or removed
together. While it is not complete they are kept and replace nothing. Chunks that no reader can put together are
removed. A sealed batch is kept, unless it has one message, whose key is then the batch's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from lithify.errors import InvalidInputError
from lithify.pulsar.compaction.chunks import ChunkId, assembled
from lithify.pulsar.compaction.rules import KeyedMessage, Order, Position, order_of, survivors
from lithify.pulsar.format.batch import messages_of_batch, without_messages
from lithify.pulsar.format.entry import Entry, RawEntry, entry_of
from lithify.pulsar.format.framing import framed, without_frame
from lithify.pulsar.format.kinds import Kind, is_empty, key_of, kind_of, shown_key
from lithify.pulsar.format.wire_pb2 import MessageMetadata


def compact_entries(
    entries: Iterable[tuple[int, int, bytes]], *, retain_null_key: bool = False, order: str = "publish"
) -> list[tuple[int, int, bytes]]:
    """The entries of the compacted ledger for these (ledger, entry, bytes), framed as it holds them.

    The entries of a partition in any order, each once, with or without frame: the entries of an earlier compacted
    ledger, under the ids that they had in the topic, and the entries after it. `order` is "publish" or
    "event-time"; `retain_null_key` is the broker's `topicCompactionRetainNullKey`. Raises DamagedError for
    an entry that cannot be right, and InvalidInputError for an id that comes twice.
    """
    whole = [entry_of(without_frame(raw)) for raw in _in_order(entries)]
    topic = _Topic(order_of(order), retain_null_key)
    for row, entry in enumerate(whole):
        topic.add(row, entry)
    kept = topic.kept()
    written = ((entry, _written(entry, row, kept)) for row, entry in enumerate(whole))
    return [(e.raw.ledger, e.raw.entry, framed(e.raw._replace(data=data))) for e, data in written if data is not None]


def _in_order(entries: Iterable[tuple[int, int, bytes]]) -> list[RawEntry]:
    ordered = sorted((RawEntry(*entry) for entry in entries), key=lambda raw: raw[:2])
    for one, other in pairwise(ordered):
        if one[:2] == other[:2]:
            raise InvalidInputError(f"entry {one.place} is given twice", hint="give each entry of the partition once")
    return ordered


def _written(entry: Entry, row: int, kept: set[Position]) -> bytes | None:
    """The entry with what is kept of it."""
    if (row,) in kept:
        return entry.raw.data
    if kind_of(entry) is not Kind.BATCH:
        return None
    alive = {position[1] for position in kept if position[0] == row}
    return without_messages(entry, set(range(entry.metadata.num_messages_in_batch)) - alive)


@dataclass(slots=True)
class _Topic:
    """The messages of a partition, by key. The position of a whole entry is one number."""

    order: Order
    retain_null_key: bool
    by_key: dict[bytes, list[KeyedMessage]] = field(default_factory=lambda: defaultdict(list))
    kept_anyway: set[Position] = field(default_factory=set)
    sealed: list[Position] = field(default_factory=list)
    chunks: list[tuple[int, MessageMetadata]] = field(default_factory=list)

    def add(self, row: int, entry: Entry) -> None:
        """An entry, after all entries before it."""
        kind = kind_of(entry)
        match kind:
            case Kind.MARKER:
                return
            case Kind.CHUNK:
                self.chunks.append((row, entry.metadata))
            case Kind.BATCH:
                self._add_batch(row, entry)
            case Kind.SEALED_BATCH if self.order != "publish" or shown_key(entry, kind) is None:
                self.sealed.append((row,))
                self.kept_anyway.add((row,))
            case _:
                message = KeyedMessage((row,), is_empty(entry), entry.metadata.event_time, entry.is_batch)
                self._add(shown_key(entry, kind), message)

    def kept(self) -> set[Position]:
        """The positions of all messages and whole entries that remain."""
        whole: dict[Position, list[Position]] = {}
        chunked = assembled(self.chunks, lambda chunk: _chunk_id(chunk[1]))
        for message in chunked.complete:
            row, metadata = message[-1]
            whole[(row,)] = [(row,) for row, _ in message]
            self._add(key_of(metadata), KeyedMessage((row,), False, message[0][1].event_time, False))
        self.kept_anyway.update((row,) for message in chunked.waiting for row, _ in message)
        stay = [
            m.position for of_key in self.by_key.values() for m in survivors(sorted(of_key), self.order, self.sealed)
        ]
        return {place for position in [*self.kept_anyway, *stay] for place in whole.get(position, [position])}

    def _add(self, key: bytes | None, message: KeyedMessage) -> None:
        if key is not None:
            self.by_key[key].append(message)
        elif self.retain_null_key:
            self.kept_anyway.add(message.position)

    def _add_batch(self, row: int, entry: Entry) -> None:
        for index, metadata, payload, _stored in messages_of_batch(entry):
            if not metadata.compacted_out:
                self._add(key_of(metadata), KeyedMessage((row, index), not payload, metadata.event_time, True))


def _chunk_id(metadata: MessageMetadata) -> ChunkId:
    message = (metadata.producer_name, metadata.uuid, key_of(metadata))
    return ChunkId(message, metadata.chunk_id, metadata.num_chunks_from_msg)
