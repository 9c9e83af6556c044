"""The metadata that records of Pulsar have is what protobuf reads of their entry and their message (C52, C53)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from lithify.columnar.segment.schema import BATCH_INDEX, ENTRY_ID, LEDGER_ID, METADATA
from lithify.model.message import MessageId
from lithify.pulsar.columns import Kind, messages_of
from lithify.pulsar.columns.binary import numbers_as_fields
from lithify.pulsar.format.batch import messages_of_batch
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import without_frame
from lithify.pulsar.format.kinds import kind_of
from lithify.pulsar.format.wire_pb2 import MessageMetadata
from lithify.pulsar.lake.records import records_of
from support.pulsar.generated import topics

IN_COLUMNS = ("partition_key", "properties", "event_time", "null_value", "compacted_batch_indexes")
OF_THE_PAYLOAD = ("compression", "uncompressed_size")
OF_A_MESSAGE = ("sequence_id", "ordering_key", "partition_key_b64_encoded", "null_partition_key")


def without_fields(metadata: MessageMetadata, names: tuple[str, ...]) -> MessageMetadata:
    rest = MessageMetadata()
    rest.CopyFrom(metadata)
    for name in names:
        rest.ClearField(name)
    return rest


def expected(raw: RawEntry) -> Iterator[tuple[MessageId, MessageMetadata]]:
    """By message of an entry."""
    entry = entry_of(without_frame(raw))
    kind = kind_of(entry)
    if kind in (Kind.SEALED_BATCH, Kind.CHUNK):
        yield MessageId(raw.ledger, raw.entry), entry.metadata
    elif kind is not Kind.BATCH:
        left_out = (*IN_COLUMNS, *OF_THE_PAYLOAD) if kind is Kind.PLAIN else IN_COLUMNS
        yield MessageId(raw.ledger, raw.entry), without_fields(entry.metadata, left_out)
    else:
        for message in messages_of_batch(entry):
            rest = without_fields(entry.metadata, (*IN_COLUMNS, *OF_THE_PAYLOAD))
            own: Message = message.metadata
            for name in OF_A_MESSAGE:
                if own.HasField(name):
                    setattr(rest, name, getattr(own, name))
            yield MessageId(raw.ledger, raw.entry, message.batch_index), rest


@given(topics())
def test_the_metadata_of_records_is_that_of_their_messages(entries):
    wanted = {place: metadata for raw in entries for place, metadata in expected(raw)}
    for part in messages_of(entries):
        for row in records_of(part, 0).to_pylist():
            place = MessageId(row[LEDGER_ID], row[ENTRY_ID], row[BATCH_INDEX])
            assert MessageMetadata.FromString(row[METADATA]) == wanted[place]


@given(st.lists(st.integers(-1, 2**63 - 1) | st.sampled_from([0, 127, 128, 2**14, 2**56])))
def test_numbers_are_encoded_as_protobuf_does(numbers):
    encoded = numbers_as_fields(0x10, np.array(numbers, np.int64)).to_pylist()
    partial = [
        MessageMetadata(sequence_id=number).SerializePartialToString() if number >= 0 else b"" for number in numbers
    ]
    assert encoded == partial
