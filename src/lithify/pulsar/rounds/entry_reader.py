"""The entries of a topic as a round reads them, and what makes two reads of them comparable."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from lithify.model.message import MessageId
from lithify.pulsar.format.entry import RawEntry


class EntryReader(Protocol):
    """Reads the entries of one partition. Goes to tasks, so it pickles."""

    def read(self, start: MessageId | None, end: MessageId, *, compacted: bool = False) -> Iterator[list[RawEntry]]:
        """Whole entries from `start` (None: the first one) to `end`, both inclusive, in lists of some MiB.

        `compacted`: the view's entries first. Raises `BrokerError`.
        """
        ...


ReaderOf = Callable[[str, bool], EntryReader]
"""Makes a reader of the partition of that name, and for many small entries or not. Goes to tasks, so it pickles."""


@dataclass(slots=True)
class EntriesRead:
    """Counts the entries of one range; equal for two reads of the same entries."""

    entries: int = 0
    rows: int = 0
    size_bytes: int = 0
    digest: int = 0

    def add(self, entries: Sequence[RawEntry]) -> None:
        """Rows are counted apart."""
        self.entries += len(entries)
        self.size_bytes += sum(len(raw.data) for raw in entries)
        ids = struct.pack(f"<{2 * len(entries)}q", *(number for raw in entries for number in raw[:2]))
        self.digest = zlib.crc32(ids, self.digest)
