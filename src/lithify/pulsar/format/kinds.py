"""What an entry is for a compaction and for a reader: which of its keys and values show."""

from __future__ import annotations

from enum import IntEnum

from lithify.pulsar.format.codecs import KNOWN
from lithify.pulsar.format.entry import Entry
from lithify.pulsar.format.wire_pb2 import MessageMetadata, SingleMessageMetadata


class Kind(IntEnum):
    """What an entry is; the messages of an open batch are PLAIN."""

    PLAIN = 0
    """A message on its own."""
    SEALED = 1
    """A message on its own, encrypted or in an unknown codec: its key shows, its value does not."""
    SEALED_BATCH = 2
    """A batch whose messages do not show."""
    CHUNK = 3
    """One of several entries that are one message."""
    MARKER = 4
    """Written by a broker, for brokers."""
    BATCH = 5
    """A batch whose messages show."""


def kind_of(entry: Entry) -> Kind:
    metadata = entry.metadata
    if metadata.HasField("marker_type"):
        return Kind.MARKER
    if metadata.HasField("num_messages_in_batch"):
        return Kind.BATCH if can_be_opened(entry) else Kind.SEALED_BATCH
    if metadata.num_chunks_from_msg > 1 and metadata.HasField("uuid"):
        return Kind.CHUNK
    return Kind.PLAIN if can_be_opened(entry) else Kind.SEALED


def can_be_opened(entry: Entry) -> bool:
    """Whether the payload can be read without a key, in a codec that is known."""
    return entry.metadata.compression in KNOWN and not entry.metadata.encryption_keys


def key_of(metadata: MessageMetadata | SingleMessageMetadata) -> bytes | None:
    """The key of a message as the bytes of its string; None: it has none, which the empty key is not."""
    return metadata.partition_key if metadata.HasField("partition_key") else None


def shown_key(entry: Entry, kind: Kind) -> bytes | None:
    """The key of an entry that is one row; None if it does not have a key, or hides the key of a message in it.

    A sealed batch shows the key of its one message: clients give a batch the key of its first one.
    """
    if kind is Kind.MARKER or (kind is Kind.SEALED_BATCH and entry.metadata.num_messages_in_batch > 1):
        return None
    return key_of(entry.metadata)


def is_empty(entry: Entry) -> bool:
    """Whether the payload of a message on its own is empty, as its metadata says; else by its bytes."""
    metadata = entry.metadata
    return metadata.uncompressed_size == 0 if metadata.HasField("uncompressed_size") else not entry.payload
