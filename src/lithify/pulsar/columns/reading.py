"""From entries to columns.

    entries ──► metadata: protobuf, one by one ──► batches: uncompressed into one buffer
                     │                                  ├──► batches.py: all messages at once
                     │ entries that are one row         └──► format/batch.py: those that are unusual
                     ╰──────────────► columns, a row per message, in order ◄─────╯

Entries are taken in parts, so that what a user holds is bounded whatever a payload decompresses to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa

from lithify.model.message import NO_BATCH
from lithify.pulsar.columns.batches import Batches, find_messages
from lithify.pulsar.columns.binary import binary_of, in_order
from lithify.pulsar.columns.fields import PADDING, Bools, Buffer, Ints, Spans
from lithify.pulsar.columns.messages import Messages
from lithify.pulsar.format.batch import kept_indexes, messages_of_batch, value_of
from lithify.pulsar.format.entry import Entry, RawEntry, entry_of
from lithify.pulsar.format.framing import without_frame
from lithify.pulsar.format.kinds import Kind, is_empty, key_of, kind_of, shown_key

PART_BYTES: Final = 64 << 20
"""Most bytes of a part, uncompressed, unless one entry alone has more."""

_ENTRY_BYTES: Final = 1024
"""What an entry costs besides its bytes, at most or so."""


def messages_of(entries: Iterable[RawEntry]) -> Iterator[Messages]:
    """The messages of entries of one partition, framed or not, in parts of some entries each.

    Raises DamagedError, which names ledger and entry, for one that cannot be right.
    """
    part: list[Entry] = []
    held = 0
    for raw in entries:
        entry = entry_of(without_frame(raw))
        size = max(len(raw.data), entry.metadata.uncompressed_size) + _ENTRY_BYTES
        if part and held + size > PART_BYTES:
            yield _messages_of(part)
            part, held = [], 0
        part.append(entry)
        held += size
    if part:
        yield _messages_of(part)


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


def _messages_of(entries: Sequence[Entry]) -> Messages:
    kinds = [kind_of(entry) for entry in entries]
    batches = [row for row, kind in enumerate(kinds) if kind is Kind.BATCH]
    buffer, sources = _read_batches(entries, batches) if batches else (Buffer(PADDING), [])
    if len(batches) < len(entries):
        sources.append(_whole_entries(entries, kinds))
    return _joined(entries, buffer, sources)


def _read_batches(entries: Sequence[Entry], rows: list[int]) -> tuple[Buffer, list[_Rows]]:
    payloads = [value_of(entries[row]) for row in rows]
    ends = list(accumulate(map(len, payloads)))
    buffer = Buffer(b"".join((*payloads, PADDING)))
    start, end = np.array([0, *ends[:-1]], np.int64), np.array(ends, np.int64)
    count = np.array([entries[row].metadata.num_messages_in_batch for row in rows], np.int64)
    kept = {number: kept for number, row in enumerate(rows) if (kept := kept_indexes(entries[row]))}
    found, left = find_messages(buffer, Batches(start, end, count, kept))
    quick = _Rows(
        np.array(rows, np.int64)[found.batch],
        found.batch_index,
        binary_of(buffer.data, found.key),
        found.event_time,
        found.payload_start == found.end,
        found.compacted_out,
        np.full(len(found.batch), Kind.PLAIN),
        found.start,
        found.payload_start,
        found.end,
    )
    return buffer, [quick, *(_one_by_one(entries[rows[odd]], rows[odd], int(start[odd])) for odd in left)]


def _one_by_one(entry: Entry, row: int, start: int) -> _Rows:
    """A batch that is unusual, whose payload starts there in the buffer."""
    messages = messages_of_batch(entry)
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


def _whole_entries(entries: Sequence[Entry], kinds: Sequence[Kind]) -> _Rows:
    """Entries that are a row each."""
    rows = [row for row, kind in enumerate(kinds) if kind is not Kind.BATCH]
    chosen = [entries[row] for row in rows]
    keys = [shown_key(entries[row], kinds[row]) for row in rows]
    none = np.full(len(rows), -1)
    return _Rows(
        np.array(rows, np.int64),
        np.full(len(rows), NO_BATCH),
        pa.array(keys, pa.binary()),
        np.array([entry.metadata.event_time for entry in chosen], np.int64),
        np.array([is_empty(entry) for entry in chosen], np.bool_),
        np.zeros(len(rows), np.bool_),
        np.array([kinds[row] for row in rows], np.int64),
        none,
        none,
        none,
    )


def _joined(entries: Sequence[Entry], buffer: Buffer, sources: Sequence[_Rows]) -> Messages:
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
