"""Entries kept, encrypted, in a file of the task while they are read, so that reading them again needs no broker.

first read   reader ─► caller
                    └► file
later reads  file ─► caller
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import IO

from lithify.columnar.files.spilled import Sealer, spill_place, spilling
from lithify.model.message import MessageId
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.rounds.entry_reader import EntryReader

LIST_BYTES = 4 << 20
_ENTRY = struct.Struct("<qqI")

_Range = tuple[MessageId | None, MessageId]


@dataclass(slots=True)
class KeptEntries:
    """An `EntryReader` that keeps what is read of ranges that are not compacted in `file`. One read at a time."""

    reader: EntryReader
    file: IO[bytes]
    _places: dict[_Range, tuple[int, int]] = field(default_factory=dict)
    """From where to where in the file the entries of a range are."""
    _sealer: Sealer = field(default_factory=Sealer)

    def read(self, start: MessageId | None, end: MessageId, *, compacted: bool = False) -> Iterator[list[RawEntry]]:
        """Raises `EngineError` if the disk is full, and what the reader raises."""
        if compacted:
            return self.reader.read(start, end, compacted=True)
        place = self._places.get((start, end))
        return self._first(start, end) if place is None else self._stored(*place)

    def _first(self, start: MessageId | None, end: MessageId) -> Iterator[list[RawEntry]]:
        with self._keeping():
            begin = self.file.seek(0, os.SEEK_END)
        for entries in self.reader.read(start, end):
            with self._keeping():
                for raw in entries:
                    sealed = self._sealer.seal(raw.data)
                    self.file.write(_ENTRY.pack(raw.ledger, raw.entry, len(sealed)))
                    self.file.write(sealed)
                self.file.flush()
            yield entries
        self._places[start, end] = begin, self.file.tell()

    def _stored(self, begin: int, end: int) -> Iterator[list[RawEntry]]:
        entries: list[RawEntry] = []
        size = 0
        with self._keeping():
            self.file.seek(begin)
            while self.file.tell() < end:
                ledger, entry, length = _ENTRY.unpack(self.file.read(_ENTRY.size))
                entries.append(RawEntry(ledger, entry, self._sealer.open(self.file.read(length))))
                size += length + _ENTRY.size
                if size >= LIST_BYTES:
                    yield entries
                    entries, size = [], 0
        if entries:
            yield entries

    def _keeping(self) -> AbstractContextManager[None]:
        return spilling(spill_place(), "entries cannot be kept until they are written")
