"""Rules out segments by their indexes of keys, without parsing their footers.

    footer   row groups and columns .. | lithify.path, lithify.keys | ..          some hundred KiB, 14 ms of Python
                                         └─ found from the end ──► front of the index ──► the key's bucket

A footer is parsed and checked before a file is read, which takes ten times as long as to ask the index; and a key is in
few of the segments that may have it. Bytes of a footer are believed here only behind the file's own path, which no
producer can have put into a key or a value, as it is random and made after them. A file in which anything is wrong is
not ruled out: who reads it names what it is (C8).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keyindex.key_index import KeyIndex
from lithify.columnar.keyindex.layout import ENTRY, Named, named_by, unpacked
from lithify.columnar.parquet.footer import Footer, UnsoundFileError, raw_footer
from lithify.columnar.parquet.thrift import read_struct
from lithify.columnar.segment.checked_file import LOCAL_GAP_BYTES, OWN_PATH
from lithify.model.replicas.file_names import was_written_to
from lithify.model.segment import Segment

_HEAD_BYTES = 2
"""Of an entry of the footer's metadata, before its name."""


def is_ruled_out(access: FileAccess, segment: Segment, key: bytes) -> bool:
    """Whether the index of a segment rules out that a record of it has this key. False if it does not have an index."""
    with suppress(ValueError, OSError), access.open(segment.path) as source:
        file = _UnparsedFile(source)
        if file.size_bytes != segment.size_bytes:
            return False
        named = _named(raw_footer(source, file.size_bytes), segment.path, file.size_bytes)
        if named is not None:
            front = unpacked(file.read_at(named.front_bytes, named.start), named, segment.records_in_file)
            return not len(KeyIndex(file, named, *front).candidates(pa.array([key], pa.binary())))
    return False


def _named(footer: bytes, path: str, size_bytes: int) -> Named | None:
    """The index that the footer of the file at `path` names. Raises `UnsoundFileError` or `ThriftError`."""
    (keys, keys_at, keys_end), (own, own_at, own_end) = (_entry(footer, name) for name in (ENTRY, OWN_PATH.encode()))
    beside = keys_end == own_at or own_end == keys_at
    if not beside or not was_written_to(path, own.decode(errors="replace")):
        return None
    return named_by(keys, 0, size_bytes)


def _entry(footer: bytes, name: bytes) -> tuple[bytes, int, int]:
    """The value of the last entry of this name, and where that begins and ends."""
    at = footer.rfind(name) - _HEAD_BYTES
    entry, length = read_struct(footer[at:]) if at >= 0 else ({}, 0)
    if entry.keys() != {1, 2} or entry[1] != name or type(entry[2]) is not bytes:
        raise UnsoundFileError(f"its footer has no {name.decode()}")
    return entry[2], at, at + length


class _UnparsedFile:
    """An open file, as an index reads it. What is wrong with it is an `UnsoundFileError`."""

    gap_bytes = LOCAL_GAP_BYTES
    footer: Footer

    def __init__(self, source: Any) -> None:
        self._source = source
        self.size_bytes = int(source.seek(0, 2))

    def read_at(self, size: int, start: int) -> bytes:
        self._source.seek(start)
        content = bytes(self._source.read(size))
        if len(content) != size:
            raise UnsoundFileError(f"it ends before byte {start + size}")
        return content

    def damaged(self, what: str) -> Exception:
        return UnsoundFileError(what)
