"""The last message that is in a record of the lake: of an encrypted batch its size less one (PIP-429)."""

from __future__ import annotations

from lithify.model.message import NO_BATCH
from lithify.model.record import Record


def last_index_in(record: Record) -> int:
    """The batch index of that message, -1 for one on its own."""
    envelope = record.envelope
    if envelope is None or not envelope.passed_through or envelope.id.batch_index != NO_BATCH:
        return NO_BATCH if envelope is None else envelope.id.batch_index
    from google.protobuf.message import DecodeError

    from lithify.pulsar.format.entry import last_index_of  # few topics have such records: others need no protobuf
    from lithify.pulsar.format.wire_pb2 import MessageMetadata

    try:
        return last_index_of(MessageMetadata.FromString(envelope.metadata or b""))
    except DecodeError:  # it was appended by a program with other metadata
        return NO_BATCH
