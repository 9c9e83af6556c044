"""The messages of entries as records with their ids (C52, C53).

    message in a batch, or on its own     key, payload, properties, event time; the rest as `metadata`
    the same, encrypted on its own        its key, and the payload as it is
    encrypted batch, chunk                one record without a key, passed through whole
    marker, message compacted out         no record

`metadata` is a `MessageMetadata`: of the entry, and of the message where that has the same field. What has a
column is left out, but the fields that Pulsar requires. Producers give a batch the keys of its first message, which
are not the keys of the others. A field of a message in a batch that is not known here has no place in it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.segment.schema import (
    BATCH_INDEX,
    ENTRY_ID,
    EVENT_TIME,
    HEADERS,
    KEY,
    LEDGER_ID,
    METADATA,
    PARTITION,
    PASSED_THROUGH,
    TIMESTAMP,
    VALUE,
)
from lithify.errors import DamagedError
from lithify.model.message import NO_BATCH, MessageId
from lithify.pulsar.columns import (
    Damage,
    Kind,
    Messages,
    messages_of,
    numbers_as_fields,
    properties_of,
    sequence_ids_of,
    values_of,
)
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.format.wire_pb2 import MessageMetadata, SingleMessageMetadata

_IN_COLUMNS: Final = ("partition_key", "properties", "event_time", "null_value", "compacted_batch_indexes")
_OF_THE_PAYLOAD: Final = ("compression", "uncompressed_size")
"""Not true of a value that was taken out."""
_SEQUENCE_ID: Final = 0x10
"""The tag of that field of `MessageMetadata`."""
_OF_KEYS: Final = ("ordering_key", "partition_key_b64_encoded", "null_partition_key")
_OF_ONE: Final = ("sequence_id", *_OF_KEYS)
"""Fields that the metadata of one message in a batch has as well."""


def records_of(
    messages: Messages, partition: int, after: MessageId | None = None, damage: Damage | None = None
) -> pa.Table:
    """A row per record, with columns that `append` takes, of messages behind `after`.

    Raises `DamagedError`; with `damage` a message on its own whose payload cannot be opened has it as it is.
    """
    whole = np.isin(messages.kind, (Kind.SEALED_BATCH, Kind.CHUNK))
    values = _values(messages, damage)
    metadata = _metadata(messages, whole)
    count, event_time = len(messages), messages.event_time
    ledger, entry, index = messages.ledger, messages.entry, messages.batch_index
    keys = messages.key.to_pylist() if whole.any() else None
    table = pa.table(
        {
            PARTITION: pa.repeat(pa.scalar(partition, pa.int32()), count),
            TIMESTAMP: pa.array(messages.publish_time.astype(np.int64)),
            KEY: messages.key if keys is None else pa.array(keys, pa.binary(), mask=whole),
            VALUE: values,
            HEADERS: properties_of(messages),
            LEDGER_ID: pa.array(ledger),
            ENTRY_ID: pa.array(entry),
            BATCH_INDEX: pa.array(index.astype(np.int32)),
            EVENT_TIME: pa.array(event_time.astype(np.int64), mask=event_time == 0),
            PASSED_THROUGH: pa.array(whole),
            METADATA: metadata,
        }
    )
    kept = ~messages.compacted_out & (messages.kind != Kind.MARKER)
    if after is not None and after.batch_index != NO_BATCH:  # the copy ends within a batch
        last = np.where(index == NO_BATCH, messages.headers.count[messages.row] - 1, index)  # of a whole one
        kept &= (ledger != after.ledger) | (entry != after.entry) | (last > after.batch_index)
    return table if kept.all() else table.filter(pa.array(kept))


def timestamp_of(entry: RawEntry) -> int | None:
    """The timestamp of an entry's records, which are published together; None: there is none, or it is unreadable."""
    with suppress(DamagedError):
        for messages in messages_of([entry], Damage()):
            return int(messages.publish_time[0])
    return None


def _values(messages: Messages, damage: Damage | None) -> pa.Array:
    """Payloads: null if the message says so, and as they are where the entry cannot be opened."""
    try:
        values = values_of(messages)
    except DamagedError:
        if damage is None:
            raise
        _seal(messages, damage)
        values = values_of(messages)
    sealed = np.flatnonzero(~np.isin(messages.kind, (Kind.PLAIN, Kind.MARKER)))
    empty = np.flatnonzero(messages.empty & (messages.kind == Kind.PLAIN)).tolist()
    null = [row for row in empty if _is_null(messages, row)]
    if not len(sealed) and not null:
        return values
    payloads = values.to_pylist()
    for row in sealed.tolist():
        number = int(messages.row[row])
        payloads[row] = messages.entries[number].data[messages.headers.payload_start[number] :]
    for row in null:
        payloads[row] = None
    return pa.array(payloads, pa.binary())


def _seal(messages: Messages, damage: Damage) -> None:
    """Takes messages on their own whose payload cannot be opened for encrypted ones."""
    for row in np.flatnonzero((messages.kind == Kind.PLAIN) & (messages.stored.start < 0)).tolist():
        number = int(messages.row[row])
        try:
            messages.headers.value(messages.entries[number], number)
        except DamagedError:
            messages.kind[row] = Kind.SEALED
            damage.add(messages.entries[number])


def _is_null(messages: Messages, row: int) -> bool:
    one = _one(messages, row)
    return messages.entry_metadata(row).null_value if one is None else one.null_value


def _one(messages: Messages, row: int) -> SingleMessageMetadata | None:
    """The metadata of a message in an open batch."""
    start = int(messages.stored.start[row])
    if start < 0:
        return None
    return SingleMessageMetadata.FromString(messages.buffer.data[start + 4 : int(messages.payload_start[row])])


def _metadata(messages: Messages, whole: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    sequence_ids, more = sequence_ids_of(messages)
    own = numbers_as_fields(_SEQUENCE_ID, sequence_ids)
    if more.any():
        others = [_of_one(messages, row) for row in np.flatnonzero(more).tolist()]
        own = pc.replace_with_mask(own, pa.array(more), pa.array(others, pa.binary()))
    metadata = pc.binary_join_element_wise(_of_entries(messages).take(pa.array(messages.row)), own, b"")
    if not whole.any():
        return metadata
    numbers = messages.row[whole].tolist()
    stored = [messages.headers.metadata(messages.entries[number], number) for number in numbers]
    return pc.replace_with_mask(metadata, pa.array(whole), pa.array(stored, pa.binary()))


def _of_entries(messages: Messages) -> pa.Array:
    """By number of the entry, its metadata without what records have as columns."""
    metadata: list[bytes | None] = [None] * len(messages.entries)
    numbers, rows = np.unique(messages.row, return_index=True)
    for number, row in zip(numbers.tolist(), rows.tolist(), strict=True):
        opened, in_batch = messages.kind[row] == Kind.PLAIN, messages.stored.start[row] >= 0
        metadata[number] = _rest(messages.entry_metadata(row), opened=opened, in_batch=in_batch)
    return pa.array(metadata, pa.binary())


def _rest(metadata: MessageMetadata, *, opened: bool, in_batch: bool) -> bytes:
    """The metadata of an entry without what records have as columns, and what each message of a batch has."""
    for name in (*_IN_COLUMNS, *(_OF_THE_PAYLOAD if opened else ()), *(_OF_KEYS if in_batch else ())):
        metadata.ClearField(name)
    return metadata.SerializeToString()


def _of_one(messages: Messages, row: int) -> bytes:
    """What a message in a batch has of its own; it is put behind the entry's, whose fields it overrides."""
    one = _one(messages, row)
    assert one is not None  # it is in an open batch
    rest = MessageMetadata()
    for name in _OF_ONE:
        if one.HasField(name):
            setattr(rest, name, getattr(one, name))
    return rest.SerializePartialToString()
