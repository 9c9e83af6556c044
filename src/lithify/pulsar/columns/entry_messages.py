"""From entries to columns.

    entries ──► headers.py ──► batches: uncompressed into one buffer
                    │                  ├──► batches.py: all messages at once
                    │                  └──► format/batch.py: batches that are unusual, one by one
                    │ entries of one row           │
                    ╰──────────────────────────────┴──► columns, a row per message, in order

Entries are taken in parts, so that what a user holds is bounded whatever a payload decompresses to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa

from lithify.errors import DamagedError
from lithify.model.message import NO_BATCH
from lithify.pulsar.columns.batches import Batches, find_messages
from lithify.pulsar.columns.binary import binary_of, in_order
from lithify.pulsar.columns.damage import Damage
from lithify.pulsar.columns.fields import PADDING, Bools, Buffer, Ints, Spans
from lithify.pulsar.columns.headers import Headers, headers_of
from lithify.pulsar.columns.messages import Messages
from lithify.pulsar.format.batch import messages_of_batch
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.framing import without_frame
from lithify.pulsar.format.kinds import Kind, key_of

PART_BYTES: Final = 32 << 20
"""Most bytes of a part, uncompressed, unless one entry alone has more."""

PART_MESSAGES: Final = 1 << 18
"""Most messages of a part, unless one entry alone has more."""

_PART_ENTRIES: Final = 32_768
_STORED_BYTES: Final = 16 << 20
"""The number of stored bytes that are decoded together."""


def messages_of(entries: Iterable[RawEntry], damage: Damage | None = None) -> Iterator[Messages]:
    """The messages of entries of one partition, framed or not, in parts of some entries each.

    Raises DamagedError, which names ledger and entry, for one that cannot be right; with `damage` only for one that
    its producer did not write so.
    """
    held: list[RawEntry] = []
    size = 0
    for raw in entries:
        held.append(without_frame(raw))
        size += len(raw.data)
        if size >= _STORED_BYTES or len(held) >= _PART_ENTRIES:
            yield from _in_parts(held, damage)
            held, size = [], 0
    if held:
        yield from _in_parts(held, damage)


def _in_parts(entries: list[RawEntry], damage: Damage | None) -> Iterator[Messages]:
    try:
        headers = headers_of(entries)
    except DamagedError:
        if damage is None:
            raise
        headers = headers_of(entries, damage.places_in(entries))
    start = size = count = 0
    sizes = np.maximum(headers.size, [len(raw.data) for raw in entries]).tolist()
    for row, (more, messages) in enumerate(zip(sizes, headers.count.tolist(), strict=True)):
        if row > start and (size + more > PART_BYTES or count + messages > PART_MESSAGES):
            yield _part_of(entries[start:row], headers.part(start, row), damage)
            start, size, count = row, 0, 0
        size, count = size + more, count + max(1, messages)
    yield _part_of(entries[start:], headers.part(start, len(entries)) if start else headers, damage)


def _part_of(entries: Sequence[RawEntry], headers: Headers, damage: Damage | None) -> Messages:
    try:
        return _messages_of(entries, headers)
    except DamagedError:
        if damage is None:
            raise
        return _messages_of(entries, headers_of(entries, damage.places_in(entries)))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Columns of some of the rows, of one way to read them."""

    row: Ints
    batch_index: Ints
    key: pa.Array
    event_time: Ints
    empty: Bools
    compacted_out: Bools
    kind: Ints
    start: Ints
    payload_start: Ints
    end: Ints


def _messages_of(entries: Sequence[RawEntry], headers: Headers) -> Messages:
    batches = np.flatnonzero(headers.kind == Kind.BATCH)
    buffer, sources = _read_batches(entries, headers, batches) if len(batches) else (Buffer(PADDING), [])
    if len(batches) < len(entries):
        sources.append(_whole_entries(headers, np.flatnonzero(headers.kind != Kind.BATCH)))
    return _joined(entries, headers, buffer, sources)


def _read_batches(entries: Sequence[RawEntry], headers: Headers, rows: Ints) -> tuple[Buffer, list[_Rows]]:
    payloads = [headers.value(entries[row], row) for row in rows.tolist()]
    ends = list(accumulate(map(len, payloads)))
    buffer = Buffer(b"".join((*payloads, PADDING)))
    start, end = np.array([0, *ends[:-1]], np.int64), np.array(ends, np.int64)
    kept = {number: headers.kept[row] for number, row in enumerate(rows.tolist()) if row in headers.kept}
    messages, left = find_messages(buffer, Batches(start, end, headers.count[rows], kept))
    quick = _Rows(
        rows[messages.batch],
        messages.batch_index,
        binary_of(buffer.data, messages.key),
        messages.event_time,
        messages.payload_start == messages.end,
        messages.compacted_out,
        np.full(len(messages.batch), Kind.PLAIN),
        messages.start,
        messages.payload_start,
        messages.end,
    )
    return buffer, [quick, *(_one_by_one(entries[rows[odd]], int(rows[odd]), int(start[odd])) for odd in left)]


def _one_by_one(raw: RawEntry, row: int, start: int) -> _Rows:
    """A batch that is unusual, whose payload starts there in the buffer."""
    messages = messages_of_batch(entry_of(raw))
    size = np.array([len(message.stored) for message in messages], np.int64)
    payload_size = np.array([len(message.payload) for message in messages], np.int64)
    end = start + np.cumsum(size)
    return _Rows(
        np.full(len(messages), row),
        np.array([message.batch_index for message in messages], np.int64),
        pa.array([key_of(message.metadata) for message in messages], pa.binary()),
        np.array([message.metadata.event_time for message in messages], np.int64),
        payload_size == 0,
        np.array([message.metadata.compacted_out for message in messages], np.bool_),
        np.full(len(messages), Kind.PLAIN),
        end - size,
        end - payload_size,
        end,
    )


def _whole_entries(headers: Headers, rows: Ints) -> _Rows:
    """Entries that are a row each."""
    none = np.full(len(rows), -1)
    return _Rows(
        rows,
        np.full(len(rows), NO_BATCH),
        headers.key if len(rows) == len(headers.key) else headers.key.take(pa.array(rows)),
        headers.event_time[rows],
        headers.empty[rows],
        np.zeros(len(rows), np.bool_),
        headers.kind[rows],
        none,
        none,
        none,
    )


def _joined(entries: Sequence[RawEntry], headers: Headers, buffer: Buffer, sources: Sequence[_Rows]) -> Messages:
    """All rows in the order of their entries."""

    def column(name: str) -> Ints:
        whole: Ints = np.concatenate([getattr(rows, name) for rows in sources])
        return whole if order is None else whole[order]

    order = None
    if len(sources) > 1:
        order = np.argsort(np.concatenate([rows.row for rows in sources]), kind="stable")
    keys = [rows.key for rows in sources]
    start, end = column("start"), column("end")
    return Messages(
        entries,
        headers,
        column("row"),
        column("batch_index"),
        keys[0] if order is None else in_order(keys, order),
        column("event_time"),
        column("empty").astype(np.bool_),
        column("compacted_out").astype(np.bool_),
        column("kind").astype(np.int8),
        Spans(start, end - start),
        column("payload_start"),
        buffer,
    )
