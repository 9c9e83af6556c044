"""What not every user of the columns wants: values, properties, and which entries are one chunked message."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from lithify.pulsar.columns.batches import KEY_VALUE, PAIR_KEY, PAIR_VALUE, SINGLE_MESSAGE
from lithify.pulsar.columns.binary import binary_of, in_order
from lithify.pulsar.columns.fields import Bools, Ints, Spans, fields_of
from lithify.pulsar.columns.messages import Messages
from lithify.pulsar.format.kinds import Kind
from lithify.pulsar.format.wire_pb2 import MessageMetadata, SingleMessageMetadata

PROPERTIES: Final = pa.map_(pa.binary(), pa.binary())

SEQUENCE_ID: Final = 0x40
WITH_SEQUENCE_ID: Final = replace(SINGLE_MESSAGE, numbers={**SINGLE_MESSAGE.numbers, SEQUENCE_ID: -1}, others=())


def values_of(messages: Messages) -> pa.Array:
    """The payloads as Arrow binary, null if they do not show: sealed, a chunk, of a broker."""
    stored = messages.stored
    batched = stored.start >= 0
    start = messages.payload_start[batched]
    end = stored.start[batched] + stored.size[batched]
    own = [
        messages.headers.value(messages.entries[row], row) if kind == Kind.PLAIN else None
        for row, kind in zip(messages.row[~batched].tolist(), messages.kind[~batched].tolist(), strict=True)
    ]
    parts = [binary_of(messages.buffer.data, Spans(start, end - start)), pa.array(own, pa.binary())]
    return in_order(parts, _places(batched))


def sequence_ids_of(messages: Messages) -> tuple[Ints, Bools]:
    """The sequence id of each message in an open batch, -1: none; and which of them have more in their metadata.

    More than that and what other columns have. Messages that have one are to be read by protobuf.
    """
    batched = np.flatnonzero(messages.stored.start >= 0)
    start = messages.stored.start[batched] + 4
    fields = fields_of(messages.buffer, start, messages.payload_start[batched], WITH_SEQUENCE_ID)
    ids, more = np.full(len(messages), -1, np.int64), np.zeros(len(messages), np.bool_)
    ids[batched], more[batched] = fields.numbers[SEQUENCE_ID], ~fields.plain
    return ids, more


def properties_of(messages: Messages) -> pa.Array:
    """The properties of the messages, in their order, as an Arrow map from binary to binary."""
    stored = messages.stored
    batched = np.flatnonzero(stored.start >= 0)
    fields = fields_of(messages.buffer, stored.start[batched] + 4, messages.payload_start[batched], SINGLE_MESSAGE)
    rows, pairs = fields.repeated
    order = np.argsort(pairs.start)
    quick = _maps(messages, rows[order], Spans(pairs.start[order], pairs.size[order]), len(batched))
    rest = np.append(batched[~fields.plain], np.flatnonzero(stored.start < 0))
    slow = pa.array([_pairs_of(messages, row) for row in rest.tolist()], PROPERTIES)
    both = pa.concat_arrays([quick.filter(pa.array(fields.plain)), slow])
    return both.take(pa.array(np.argsort(np.append(batched[fields.plain], rest))))


def _maps(messages: Messages, rows: Ints, pairs: Spans, count: int) -> pa.Array:
    """A map for each of the messages; `rows` are the messages of the pairs, in ascending order."""
    read = fields_of(messages.buffer, pairs.start, pairs.start + pairs.size, KEY_VALUE)
    columns = [binary_of(messages.buffer.data, read.spans[tag]) for tag in (PAIR_KEY, PAIR_VALUE)]
    offsets = np.searchsorted(rows, np.arange(count + 1)).astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), *columns)


def _pairs_of(messages: Messages, row: int) -> list[tuple[bytes, bytes]]:
    """The properties of one message, by protobuf."""
    start = int(messages.stored.start[row])
    if start < 0:
        metadata: MessageMetadata | SingleMessageMetadata = messages.entry_metadata(row)
    else:
        stored = messages.buffer.data[start + 4 : int(messages.payload_start[row])]
        metadata = SingleMessageMetadata.FromString(stored)
    return [(pair.key, pair.value) for pair in metadata.properties]


def chunks_of(messages: Messages) -> pa.Table:
    """The rows that are chunks: which message each is of (its producer and its uuid), which chunk, and of how many."""
    rows = np.flatnonzero(messages.kind == Kind.CHUNK)
    metadata = [messages.entry_metadata(row) for row in rows.tolist()]
    columns = {
        "row": pa.array(rows, pa.int64()),
        "producer": pa.array([of.producer_name for of in metadata], pa.binary()),
        "uuid": pa.array([of.uuid for of in metadata], pa.binary()),
        "chunk_id": pa.array([of.chunk_id for of in metadata], pa.int32()),
        "chunks": pa.array([of.num_chunks_from_msg for of in metadata], pa.int32()),
    }
    return pa.table(columns)


def _places(batched: Bools) -> Ints:
    """Where each row is after all rows in batches and then all others."""
    places: Ints = np.where(batched, np.cumsum(batched), np.cumsum(~batched) + np.count_nonzero(batched)) - 1
    return places
