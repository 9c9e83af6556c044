"""Entries kept, encrypted, in a file of the task while they are read, so that reading them again asks no broker.

first read   reader ─► caller
                    └► file
later reads  file ─► caller
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from lithify.columnar.files.spilled import Sealer, spilling
from lithify.model.message import MessageId
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.rounds.entry_reader import EntryReader

LIST_BYTES = 4 << 20
_ENTRY = struct.Struct("<qqI")

_Range = tuple[MessageId | None, MessageId]


@dataclass(slots=True)
class KeptEntries:
    """An `EntryReader` that keeps what is read of ranges that are not compacted in `folder`."""

    reader: EntryReader
    folder: Path
    _files: dict[_Range, Path] = field(default_factory=dict)
    _sealer: Sealer = field(default_factory=Sealer)

    def read(self, start: MessageId | None, end: MessageId, *, compacted: bool = False) -> Iterator[list[RawEntry]]:
        """Raises `EngineError` if the disk is full, and what the reader raises."""
        if compacted:
            return self.reader.read(start, end, compacted=True)
        kept = self._files.get((start, end))
        return self._first(start, end) if kept is None else self._stored(kept)

    def _first(self, start: MessageId | None, end: MessageId) -> Iterator[list[RawEntry]]:
        path = self.folder / f"{start}-{end}"
        with self._keeping():
            path.unlink(missing_ok=True)  # of a read that was not finished
        for entries in self.reader.read(start, end):
            with self._keeping(), path.open("ab") as file:
                for raw in entries:
                    sealed = self._sealer.seal(raw.data)
                    file.write(_ENTRY.pack(raw.ledger, raw.entry, len(sealed)))
                    file.write(sealed)
            yield entries
        with self._keeping():
            path.touch()  # where there were no entries
        self._files[start, end] = path

    def _stored(self, path: Path) -> Iterator[list[RawEntry]]:
        entries: list[RawEntry] = []
        size = 0
        with self._keeping(), path.open("rb") as file:
            while header := file.read(_ENTRY.size):
                ledger, entry, length = _ENTRY.unpack(header)
                entries.append(RawEntry(ledger, entry, self._sealer.open(file.read(length))))
                size += length + _ENTRY.size
                if size >= LIST_BYTES:
                    yield entries
                    entries, size = [], 0
        if entries:
            yield entries

    def _keeping(self) -> AbstractContextManager[None]:
        return spilling(self.folder, "entries cannot be kept until they are written")
