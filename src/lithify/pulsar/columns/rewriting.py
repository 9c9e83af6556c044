"""Entries without some of their messages: what a compacted ledger holds of many entries at once.

    [k0][k1][k2][k3]  with k0 and k3 alive ──► [k0][.][.][k3]   runs of messages are copied as they are

The rules are those of `format/batch.py`, which writes batches one by one: an index never moves, and field 31
says which are alive.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from lithify.pulsar.columns.fields import Bools
from lithify.pulsar.columns.messages import Messages
from lithify.pulsar.format.batch import PLACEHOLDER, with_payload, without_messages
from lithify.pulsar.format.codecs import compressed
from lithify.pulsar.format.entry import Entry, RawEntry, entry_of


def rewritten(messages: Messages, alive: Bools) -> list[bytes | None]:
    """Each entry with the messages that are alive, by row; None where none is. The bytes have no frame."""
    return _Writer(messages, alive).entries()


def without(raw: RawEntry, dead: Collection[int]) -> bytes | None:
    """One entry, which must be a batch that can be opened, without the messages of these indexes."""
    return without_messages(entry_of(raw), dead)


class _Writer:
    def __init__(self, messages: Messages, alive: Bools) -> None:
        self._messages = messages
        self._alive = alive
        rows = np.arange(len(messages.entries) + 1)
        self._first = np.searchsorted(messages.row, rows).tolist()

    def entries(self) -> list[bytes | None]:
        return [self._written(number, entry) for number, entry in enumerate(self._messages.entries)]

    def _written(self, number: int, entry: Entry) -> bytes | None:
        messages, rows = self._messages, slice(self._first[number], self._first[number + 1])
        alive = self._alive[rows]
        start = messages.stored.start[rows]
        if not len(start):
            return None
        if start[0] < 0:
            return entry.raw.data if alive[0] else None
        stays: Bools = alive & ~messages.compacted_out[rows]
        if not stays.any():
            return None
        index, end = messages.batch_index[rows], start + messages.stored.size[rows]
        kept = index[stays].tolist()
        count = entry.metadata.num_messages_in_batch
        if len(start) == count and (stays | messages.compacted_out[rows]).all():
            return with_payload(entry, entry.payload, int(end[-1] - start[0]), kept)
        data = b"".join(self._pieces(count, index[stays], start[stays], end[stays]))
        return with_payload(entry, compressed(entry.metadata.compression, data), len(data), kept)

    def _pieces(self, count: int, index: Any, start: Any, end: Any) -> list[bytes]:
        """Runs of messages with their indexes in a row, and placeholders between."""
        data = self._messages.buffer.data
        breaks = np.flatnonzero(np.diff(index) != 1)
        firsts, lasts = np.append(0, breaks + 1), np.append(breaks, len(index) - 1)
        pieces: list[bytes] = []
        at = 0
        columns = (index[firsts], index[lasts], start[firsts], end[lasts])
        for first, last, begin, stop in zip(*(column.tolist() for column in columns), strict=True):
            pieces += (PLACEHOLDER * (first - at), data[begin:stop])
            at = last + 1
        return [*pieces, PLACEHOLDER * (count - at)]
