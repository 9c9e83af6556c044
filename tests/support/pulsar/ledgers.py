"""Ledgers of views as files in a folder, for tests without BookKeeper."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from lithify.errors import BrokerError
from lithify.model.message import MessageId

_SIZE = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Closed:
    entries: int


class FileLedgers:
    """Writes one ledger at a time; see `rounds.view_ledger.LedgerWriter`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries = 0
        self._path = folder

    def create(self, topic: str, horizon: MessageId, run_id: str) -> int:
        for ledger in itertools.count(1000):
            self._path = self._folder / str(ledger)
            try:  # another task may take the number first
                self._path.touch(exist_ok=False)
                break
            except FileExistsError:
                continue
        self._entries = 0
        return ledger

    def append(self, entries: Sequence[bytes]) -> None:
        with self._path.open("ab") as file:
            for data in entries:
                file.write(_SIZE.pack(len(data)) + data)
        self._entries += len(entries)

    def close(self) -> Closed:
        return Closed(self._entries)

    def delete(self, ledger: int) -> None:
        (self._folder / str(ledger)).unlink(missing_ok=True)


class LeavingLedgers(FileLedgers):
    """Where nothing can be deleted."""

    def delete(self, ledger: int) -> None:
        raise BrokerError(f"ledger {ledger}: BookKeeper does not answer")


@dataclass(frozen=True, slots=True)
class LedgerFolder:
    """Opens ledgers in a folder; pickles."""

    folder: Path
    kind: type[FileLedgers] = FileLedgers

    def __call__(self) -> AbstractContextManager[FileLedgers]:
        return nullcontext(self.kind(self.folder))

    def entries(self, ledger: int) -> list[bytes]:
        return list(self._read(ledger))

    def ledgers(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def _read(self, ledger: int) -> Iterator[bytes]:
        with (self.folder / str(ledger)).open("rb") as file:
            while header := file.read(_SIZE.size):
                yield file.read(_SIZE.unpack(header)[0])
