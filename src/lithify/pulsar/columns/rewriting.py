"""Entries without some of their messages: what a compacted ledger holds of many entries at once.

    [k0][k1][k2][k3]  with k0 and k3 alive ──► [k0][.][.][k3]   runs of messages are copied as they are

The rules are the same as in `format/batch.py`, which writes batches one by one: an index never moves, and field 31
has which are alive.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from lithify.pulsar.columns.fields import Bools, Ints
from lithify.pulsar.columns.messages import Messages
from lithify.pulsar.format.batch import PLACEHOLDER, with_all, with_payload, without_messages
from lithify.pulsar.format.codecs import compressed
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.kinds import Kind


def rewritten(messages: Messages, alive: Bools) -> list[bytes | None]:
    """Each entry with the messages that are alive, by row; None if none is. The bytes have no frame."""
    writer = _Writer(messages, alive)
    return [writer.written(number, raw) for number, raw in enumerate(messages.entries)]


def without(raw: RawEntry, dead: Collection[int]) -> bytes | None:
    """One entry, which must be a batch that can be opened, without the messages of these indexes."""
    return without_messages(entry_of(raw), dead)


class _Writer:
    """Which messages remain, as runs of messages with their indexes in a row; `first` are limits per entry."""

    def __init__(self, messages: Messages, alive: Bools) -> None:
        self._messages, self._alive = messages, alive.tolist()
        self._is_batch = (messages.headers.kind == Kind.BATCH).tolist()
        stays = np.flatnonzero(alive & ~messages.compacted_out & (messages.stored.start >= 0))
        row, index, start = messages.row[stays], messages.batch_index[stays], messages.stored.start[stays]
        end = start + messages.stored.size[stays]
        new_run: Bools = np.ones(len(stays), np.bool_)
        new_run[1:] = (np.diff(row) != 0) | (np.diff(index) != 1)
        first, last = np.flatnonzero(new_run), np.flatnonzero(np.roll(new_run, -1))
        self._runs = list(zip(*(x.tolist() for x in (index[first], index[last], start[first], end[last])), strict=True))
        self._kept = index.tolist()
        self._first_row, self._first_kept, self._first_run = (
            self._limits(of_rows) for of_rows in (messages.row, row, row[first])
        )
        gone = np.bincount(messages.row[messages.compacted_out], minlength=len(messages.entries))
        self._gone = gone.tolist()

    def _limits(self, rows: Ints) -> list[int]:
        limits: list[int] = np.searchsorted(rows, np.arange(len(self._messages.entries) + 1)).tolist()
        return limits

    def written(self, number: int, raw: RawEntry) -> bytes | None:
        """The entry of that number with what remains of it."""
        first, end = self._first_row[number], self._first_row[number + 1]
        if not self._is_batch[number]:
            return raw.data if self._alive[first] else None
        kept = self._kept[self._first_kept[number] : self._first_kept[number + 1]]
        if not kept:
            return None
        entry = entry_of(raw)
        count = entry.metadata.num_messages_in_batch
        if end - first == count == len(kept) + self._gone[number]:
            return with_all(entry, self._uncompressed(first, end), kept)
        data = b"".join(self._pieces(count, self._runs[self._first_run[number] : self._first_run[number + 1]]))
        return with_payload(entry, compressed(entry.metadata.compression, data), len(data), kept)

    def _uncompressed(self, first: int, end: int) -> int:
        """The bytes of all messages of these rows; metadata need not say so of a payload that is not compressed."""
        stored = self._messages.stored
        return int(stored.start[end - 1] + stored.size[end - 1] - stored.start[first])

    def _pieces(self, count: int, runs: list[tuple[int, int, int, int]]) -> list[bytes]:
        """Runs of messages, and placeholders between."""
        data = self._messages.buffer.data
        pieces: list[bytes] = []
        at = 0
        for first, last, start, end in runs:
            pieces += (PLACEHOLDER * (first - at), data[start:end])
            at = last + 1
        return [*pieces, PLACEHOLDER * (count - at)]
