"""Batches: their messages, read in either layout, and written again with placeholders for dead messages.

    uncompressed payload   [size][metadata of one message][its payload]   once per message, nothing between

    placeholders kept      k0  k1  .   k3       `compacted_out`, no key, no payload; indexes 0 to 3
    retained only          k0  k1  k3           field 31 of the entry says 0, 1, 3

Pulsar 4.2 writes the first layout with field 31 `compacted_batch_indexes`, and so do we; both are read (PIP-429).
An index never moves. Messages that say `compactedOut` by a property are messages as all others: PIP-14 thought of
that, but no Pulsar that was released has written it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from itertools import islice
from operator import lt
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from lithify.errors import DamagedError
from lithify.model.message import NO_BATCH
from lithify.pulsar.format.codecs import CodecError, compressed, decompressed
from lithify.pulsar.format.entry import Entry, damaged, joined, last_index_of
from lithify.pulsar.format.kinds import can_be_opened
from lithify.pulsar.format.wire_pb2 import MessageMetadata, SingleMessageMetadata

PLACEHOLDER: Final = bytes.fromhex("0000000418002001")
"""A message that was compacted out: a payload of 0 bytes, `compacted_out`."""

LARGEST_BYTES: Final = 5 << 20
"""The limit of an entry that is written larger than it was: Pulsar's own for messages, for which bookies have room."""

_SIZE: Final = struct.Struct(">I")


class Message(NamedTuple):
    """A message of a batch. `stored` is all of it in the uncompressed payload, with its size."""

    batch_index: int
    metadata: SingleMessageMetadata
    payload: bytes
    stored: bytes


def value_of(entry: Entry) -> bytes:
    """The uncompressed payload of an entry that can be opened."""
    metadata = entry.metadata
    try:
        return decompressed(metadata.compression, entry.payload, metadata.uncompressed_size)
    except CodecError as error:
        raise damaged(entry.raw, str(error)) from error


def messages_of_batch(entry: Entry) -> list[Message]:
    """The messages of a batch that can be opened, by ascending index, placeholders too where they are kept."""
    count, kept = entry.metadata.num_messages_in_batch, kept_indexes(entry)
    stored = list(islice(_stored(entry, value_of(entry)), count + 1))
    if len(stored) == count:
        indexes: Collection[int] = range(count)
    elif kept and len(stored) == len(kept):
        indexes = kept
    else:
        actual = f"more than {count}" if len(stored) > count else str(len(stored))
        raise damaged(entry.raw, f"its batch has {actual} messages, but its metadata has a count of {count}")
    return [Message(index, *parts) for index, parts in zip(indexes, stored, strict=True)]


def kept_indexes(entry: Entry) -> list[int]:
    """Field 31 of a batch: the indexes of the messages that earlier compactions kept; empty if there were none."""
    kept = list(entry.metadata.compacted_batch_indexes)
    bounded = [-1, *kept, entry.metadata.num_messages_in_batch]
    if not all(map(lt, bounded, bounded[1:])):
        raise damaged(entry.raw, "the indexes of the retained messages of its batch are not in order")
    return kept


def without_messages(entry: Entry, dead: Collection[int]) -> bytes | None:
    """The batch with placeholders for these indexes; None if no message would be left.

    A batch that loses nothing is written with field 31 as well, as Pulsar does: brokers that look for the last message
    of a view then need not open the batch.
    """
    messages = messages_of_batch(entry)
    kept = [m.batch_index for m in messages if m.batch_index not in dead and not m.metadata.compacted_out]
    if not kept:
        return None
    count = entry.metadata.num_messages_in_batch
    if len(messages) == count and all(m.metadata.compacted_out == (m.batch_index not in kept) for m in messages):
        return with_all(entry, sum(len(m.stored) for m in messages), kept)
    alive = {message.batch_index: message.stored for message in messages if message.batch_index in set(kept)}
    data = b"".join(alive.get(index, PLACEHOLDER) for index in range(count))
    return with_payload(entry, compressed(entry.metadata.compression, data), len(data), kept)


def with_all(entry: Entry, size: int, kept: Collection[int]) -> bytes:
    """A batch that loses nothing, of that uncompressed size; as it is, where field 31 would make it too large."""
    written = with_payload(entry, entry.payload, size, kept)
    return written if len(written) <= LARGEST_BYTES else entry.to_bytes()


def with_payload(entry: Entry, payload: bytes, size: int, kept: Collection[int]) -> bytes:
    """The entry of a batch with another payload of which these indexes are kept; all else remains."""
    metadata = MessageMetadata()
    metadata.CopyFrom(entry.metadata)
    metadata.uncompressed_size = size
    metadata.compacted_batch_indexes[:] = kept
    return joined(entry.broker_metadata, metadata.SerializeToString(), payload)


def last_batch_index(entry: Entry) -> int:
    """The batch index of the last message of the entry that was not compacted out, -1 for a message on its own.

    Field 31 tells without decompressing (PIP-429). Without it a batch is opened; the last index of one that
    cannot be opened is its size less one. Never an error.
    """
    last = last_index_of(entry.metadata)
    if last == NO_BATCH:
        return NO_BATCH
    if entry.metadata.compacted_batch_indexes:
        return entry.metadata.compacted_batch_indexes[-1]
    if not can_be_opened(entry):
        return last
    try:
        alive = [message.batch_index for message in messages_of_batch(entry) if not message.metadata.compacted_out]
    except DamagedError:  # another layout of the payload
        return last
    return max(alive, default=NO_BATCH)


def _stored(entry: Entry, data: bytes) -> Iterator[tuple[SingleMessageMetadata, bytes, bytes]]:
    """The parts of each message: its metadata, its payload, and all of it."""
    at = 0
    while at < len(data):
        start = at
        if len(data) - at < 4:
            raise damaged(entry.raw, f"its batch ends within a message, at byte {at}")
        (size,) = _SIZE.unpack_from(data, at)
        at += 4
        metadata = SingleMessageMetadata()
        try:
            metadata.ParseFromString(data[at : at + size])
        except DecodeError as error:
            raise damaged(entry.raw, f"a message in its batch, at byte {start}, has no valid metadata") from error
        at += size
        end = at + metadata.payload_size
        if not metadata.IsInitialized() or metadata.payload_size < 0 or end > len(data):
            raise damaged(entry.raw, f"a message in its batch, at byte {start}, has no valid size")
        yield metadata, data[at:end], data[start:end]
        at = end
