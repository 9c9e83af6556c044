"""Puts a cleaned segment in the place of those that it was made of, so that a crash at any moment loses nothing.

    .cleaned ─► .swap ─► the old files are deleted ─► the suffix .swap goes
             1        2                             3

What a broker that starts makes of it, and `recover` as well: before 1 is complete, `.cleaned` files are there, and the
old segments count. After it, the swap counts: the old files in its range are deleted, and its suffix goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Protocol

from lithify.columnar.files.replaced import sync_folder
from lithify.kafka_log.batches.frames import BatchError
from lithify.kafka_log.segment_scan import scanned

LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT = (
    ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
)  # fmt: skip
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
DELETED: Final = ".deleted"

_OF_OFFSET = re.compile(r"(\d{20})\.")


class Files(Protocol):
    """The files of one folder, by name."""

    path: Path

    def names(self) -> Sequence[str]: ...
    def rename(self, old: str, new: str) -> None: ...
    def delete(self, name: str) -> None:
        """One that is not there is none."""
        ...

    def sync(self) -> None:
        """Makes all that was renamed and deleted durable."""
        ...


class FolderFiles:
    """Of a folder on a disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> Sequence[str]:
        return sorted(file.name for file in self.path.iterdir() if file.is_file())

    def rename(self, old: str, new: str) -> None:
        (self.path / old).rename(self.path / new)

    def delete(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def sync(self) -> None:
        sync_folder(self.path)


def named(base_offset: int, suffix: str, state: str = "") -> str:
    return f"{base_offset:020}{suffix}{state}"


def swap_in(files: Files, base_offset: int, suffixes: Sequence[str], replaced: Iterable[int]) -> None:
    """Of a segment with these files, which are `.cleaned`, in the place of those with these base offsets.

    Swaps of one log are in the order of their offsets, as an expired tombstone goes only after what it deletes. Raises
    `OSError`.
    """
    for suffix in suffixes:
        files.rename(named(base_offset, suffix, CLEANED), named(base_offset, suffix, SWAP))
    files.sync()
    for base in replaced:
        # A broker makes all indexes anew where the first is missing: a segment never has only some of its own.
        gone = (INDEX, TIME_INDEX, TRANSACTION_INDEX, LOG)
        for suffix in gone if base == base_offset else (*gone, SNAPSHOT):
            files.delete(named(base, suffix))
    files.sync()
    for suffix in suffixes:
        files.rename(named(base_offset, suffix, SWAP), named(base_offset, suffix))
    files.sync()


def has_leftovers(names: Iterable[str]) -> bool:
    """Whether a cleaner has ended among them before it was done."""
    return any(name.endswith((CLEANED, SWAP)) for name in names)


def recover(files: Files) -> None:
    """Completes or forgets what a cleaner has left, as a broker does that starts. Raises `OSError`."""
    names = files.names()
    begun = min((_offset(name) for name in names if name.endswith(CLEANED)), default=None)
    for name in names:
        is_void = name.endswith(SWAP) and begun is not None and _offset(name) >= begun
        if is_void or name.endswith(DELETED):
            files.delete(name)
    files.sync()  # without a `.cleaned` file a swap would count
    for name in names:
        if name.endswith(CLEANED):
            files.delete(name)
    names = files.names()
    covered = [_range(files.path / name) for name in names if name.endswith(LOG + SWAP)]
    for name in names:
        if covered and not name.endswith(SWAP) and _OF_OFFSET.match(name):
            start, end = min(start for start, _ in covered), max(end for _, end in covered)
            if start <= _offset(name) < end:
                files.delete(name)
    files.sync()
    for name in names:
        if name.endswith(SWAP):
            files.rename(name, name.removesuffix(SWAP))
    files.sync()


def _range(path: Path) -> tuple[int, int]:
    with path.open("rb") as file:
        scan = scanned(file)
    if scan.broken is not None:
        raise BatchError(scan.broken.what, scan.broken.position)
    base = _offset(path.name)
    return base, max(scan.end_offset or 0, base + 1)


def _offset(name: str) -> int:
    match = _OF_OFFSET.match(name)
    return int(match[1]) if match else -1
