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
from typing import Final, NamedTuple, Protocol

from lithify.columnar.files.replaced import sync_folder
from lithify.errors import DamagedError
from lithify.kafka_log.directories.files import opened
from lithify.kafka_log.directories.segment_names import offsets_of
from lithify.kafka_log.segment_scan import scanned

LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT = KINDS = (
    ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
)  # fmt: skip
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
DELETED: Final = ".deleted"

_NAME: Final = re.compile(rf"([0-9]{{20}})({'|'.join(map(re.escape, KINDS))})({CLEANED}|{SWAP}|{DELETED})?")


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
    _take_over(files, [named(base_offset, suffix, SWAP) for suffix in suffixes])


def has_leftovers(names: Iterable[str]) -> bool:
    """Whether a cleaner has ended among them before it was done."""
    return any(one.state in (CLEANED, SWAP) for one in _known(names))


def recover(files: Files) -> None:
    """Completes or forgets what a cleaner has left, as a broker does that starts.

    Files of other names stay. Raises `DamagedError` before it changes anything, or `OSError`.
    """
    known = _known(files.names())
    begun = min((one.offset for one in known if one.state == CLEANED), default=None)
    swaps = [one for one in known if one.state == SWAP and (begun is None or one.offset < begun)]
    ends = [_end(files.path / one.name, one.offset) for one in swaps if one.kind == LOG]
    for one in known:
        if one.state == DELETED or (one.state == SWAP and one not in swaps):
            files.delete(one.name)
    files.sync()  # without a `.cleaned` file a swap would count
    for one in known:
        if one.state == CLEANED:
            files.delete(one.name)
    start = min((one.offset for one in swaps if one.kind == LOG), default=0)
    for one in known:
        if not one.state and start <= one.offset < max(ends, default=0):
            files.delete(one.name)
    files.sync()
    _take_over(files, [one.name for one in swaps])


def _take_over(files: Files, swaps: Sequence[str]) -> None:
    """Segments first: while one is a swap, indexes without the suffix are deleted as old ones.

    After a loss of power any part of what was renamed since a `sync` may be on the disk.
    """
    for is_segment in (True, False):
        for name in swaps:
            if name.endswith(LOG + SWAP) is is_segment:
                files.rename(name, name.removesuffix(SWAP))
        files.sync()


class _Known(NamedTuple):
    """A file whose name says what it is."""

    name: str
    offset: int
    kind: str
    state: str


def _known(names: Iterable[str]) -> list[_Known]:
    matches = (_NAME.fullmatch(name) for name in names)
    return [_Known(one[0], int(one[1]), one[2], one[3] or "") for one in matches if one]


def _end(swap: Path, base_offset: int) -> int:
    """After its last offset. Raises `DamagedError`, as what it replaces may be gone."""
    with opened(swap) as file:
        scan = scanned(file, offsets=offsets_of([base_offset])[0])
    if (error := next(iter(scan.damaged), scan.broken)) is not None:
        raise DamagedError(
            f"{swap}, byte {error.position}: {error.what}",
            hint="what it replaces may be gone: give the broker the log of another replica",
        )
    return max(scan.end_offset or 0, base_offset + 1)
