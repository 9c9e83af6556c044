"""Opens a Parquet file of Lithify's, and reads row groups of it with checks before Arrow decodes them.

    footer    sizes, byte ranges, types                 (`parquet.footer`)
    pages     memory needed to decode them              (`parquet.pages`)

A file that is missing or damaged raises a `DamagedError` that names it (C8); reading one takes no more memory than a
row group of a segment may (C51).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lithify.columnar.files.access import FileAccess, local_path
from lithify.columnar.parquet.footer import Chunk, Footer, UnsoundFileError, read_footer
from lithify.columnar.parquet.pages import weigh
from lithify.errors import DamagedError, LithifyError
from lithify.errors.redaction import one_line
from lithify.model.replicas.file_names import was_written_to
from lithify.model.settings.units import format_bytes

OWN_PATH = "lithify.path"
"""Key in the footer's metadata: the file's path, from the topic's folder on, to detect a swapped file."""
WHOLE_BYTES = 256 * 2**10
"""Files in an object store up to this size are read in a single request."""
LOCAL_GAP_BYTES, REMOTE_GAP_BYTES = 2048, 256 * 2**10
BUFFER_BYTES = 2**20
"""Read at a time of a column that is decoded."""
PIECE_BYTES = 8 * 2**20
"""Read at a time of what is read whole, and not decoded."""
MOST_GROUP_BYTES = 2**31 + 2**26
"""Largest decoded size of a row group: one record of maximum size, and the rest of a usual row group."""


def own_path(path: str, location: str) -> str:
    """What `OWN_PATH` says of a file in the folder `location` of a topic."""
    return path.removeprefix(f"{location.rpartition('/')[0]}/")


class CheckedFile:
    """An open file with a checked footer. All methods raise `DamagedError`.

    In an object store one of up to `whole_bytes` is read in a single request. A row group that may expand to more than
    `most_group_bytes` is not read. `as_indexes` names columns that are decoded as a dictionary of few values.
    """

    def __init__(
        self,
        access: FileAccess,
        path: str,
        size_bytes: int,
        *,
        whole_bytes: int = WHOLE_BYTES,
        most_group_bytes: int = MOST_GROUP_BYTES,
        as_indexes: Sequence[str] = (),
    ) -> None:
        with damage_named(path):
            source = _opened(access, path, size_bytes, whole_bytes)
        self._begin(path, source, most_group_bytes, as_indexes)

    @classmethod
    def in_memory(cls, path: str, content: bytes) -> CheckedFile:
        """One that was put together from pages of the file at `path`."""
        file = cls.__new__(cls)
        file._begin(path, pa.BufferReader(content), MOST_GROUP_BYTES, ())
        return file

    def _begin(self, path: str, source: Any, most_group_bytes: int, as_indexes: Sequence[str]) -> None:
        self._path = path
        self._source = source
        self._most_group_bytes = most_group_bytes
        with damage_named(path):
            try:
                self.footer: Footer = read_footer(self._source)
                self._file = pq.ParquetFile(
                    self._source,
                    metadata=self.footer.metadata,
                    read_dictionary=list(as_indexes),
                    page_checksum_verification=True,
                    pre_buffer=False,
                    buffer_size=BUFFER_BYTES,  # else it reads all pages of a column before it decodes one
                )
            except BaseException:
                self._source.close()
                raise

    def check(self, *, size_bytes: int, records: int) -> None:
        """Checks that it is the file that the metadata names."""
        for what, actual, named in (
            ("bytes", self.footer.size_bytes, size_bytes),
            ("records", self.footer.metadata.num_rows, records),
        ):
            if actual != named:
                raise DamagedError(f"{self._path}: holds {actual} {what}, but the metadata has {named}", hint=RESTORE)
        if not all(self.footer.chunks):
            raise DamagedError(f"{self._path}: has a row group without records", hint=RESTORE)
        own = (self.footer.metadata.metadata or {}).get(OWN_PATH.encode(), b"")  # absent before format 3
        if own and not was_written_to(self._path, own.decode(errors="replace")):
            raise DamagedError(f"{self._path}: is a copy of {own.decode(errors='replace')}", hint=RESTORE)

    @property
    def schema(self) -> pa.Schema:
        """Its columns, as Arrow reads them."""
        return self._file.schema_arrow

    @property
    def row_groups(self) -> int:
        return int(self.footer.metadata.num_row_groups)

    def read(self, row_group: int, columns: Sequence[str]) -> pa.Table:
        """These columns of a row group, in the given order."""
        with damage_named(self._path):
            self._prepare(row_group, columns)
            table = self._file.read_row_group(row_group, columns=list(columns), use_threads=False)
            return table.select(list(columns))

    def pieces(self, row_group: int, columns: Sequence[str], piece_bytes: int) -> Iterator[pa.Table]:
        """The same in pieces of about that number of bytes, at least a record each."""
        records = left = self.footer.metadata.row_group(row_group).num_rows
        with damage_named(self._path):
            most = self._prepare(row_group, columns)
            each = max(1, records * piece_bytes // max(1, most))
            batches = self._file.iter_batches(each, [row_group], list(columns), use_threads=False)
        while left:
            with damage_named(self._path):
                batch = next(batches, None)
                if batch is None or not 0 < batch.num_rows <= left:
                    raise UnsoundFileError(f"the records of row group {row_group} do not match its footer")
                left -= batch.num_rows
                table = pa.Table.from_batches([batch]).select(list(columns))
            yield table
        if isinstance(self._source, HeldFile):
            self._source.hold([])

    def _prepare(self, row_group: int, columns: Sequence[str]) -> int:
        """Holds the columns of a row group that are to be read. Returns what they may expand to, which is checked."""
        chunks = list(self.footer.of_columns(row_group, columns).values())
        if isinstance(self._source, HeldFile):
            self._source.hold([(chunk.start, chunk.size_bytes) for chunk in chunks])
        most = self._most_bytes(chunks)
        if most > self._most_group_bytes:
            raise DamagedError(
                f"{self._path}: row group {row_group} can expand to {format_bytes(most)}, but row"
                f" groups of Lithify stay below {format_bytes(self._most_group_bytes)}",
                hint=RESTORE,
            )
        return most

    def read_at(self, size: int, start: int) -> bytes:
        """These bytes of the file."""
        with damage_named(self._path):
            content = bytes(self._source.read_at(size, start))
            if len(content) != size:
                raise UnsoundFileError(f"it ends before byte {start + size}")
            return content

    def pieces_from(self, start: int) -> Iterator[bytes]:
        """All bytes from there on."""
        for at in range(start, self.footer.size_bytes, PIECE_BYTES):
            yield self.read_at(min(PIECE_BYTES, self.footer.size_bytes - at), at)

    @property
    def gap_bytes(self) -> int:
        """So many bytes are read faster than it takes to begin another read."""
        return LOCAL_GAP_BYTES if local_path(self._path) is not None else REMOTE_GAP_BYTES

    def damaged(self, what: str) -> DamagedError:
        """The error that says so of this file."""
        return DamagedError(f"{self._path}: {what}", hint=RESTORE)

    def close(self) -> None:
        self._source.close()

    def _most_bytes(self, chunks: Sequence[Chunk]) -> int:
        weights = [weigh(self._source.read_at, chunk) for chunk in chunks]
        if any(weight.all_pages_bytes > chunk.expanded_bytes for weight, chunk in zip(weights, chunks, strict=True)):
            raise UnsoundFileError("its pages expand to more than its footer states")
        return sum(weight.most(chunk.values) for weight, chunk in zip(weights, chunks, strict=True))


def _opened(access: FileAccess, path: str, size_bytes: int, whole_bytes: int) -> Any:
    source = access.open(path)
    if local_path(path) is not None:
        return source
    if size_bytes > whole_bytes:
        return HeldFile(source)
    with source:
        return pa.BufferReader(source.read(size_bytes + 1))  # one byte more, to detect a larger file


RESTORE = "restore the file from a backup or a replica; nothing was changed"


class damage_named:  # noqa: N801 - used as a statement: `with damage_named(path):`
    """Turns exceptions from reading a file into a `DamagedError` that names it.

    Arrow reports damage by a dozen exception types, which cannot be distinguished from defects of Lithify, so
    only code that reads belongs in this block.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise DamagedError(f"{self._path}: the file is missing", hint=RESTORE) from error
        if isinstance(error, (MemoryError, LithifyError)):
            return  # not the file's fault: its sizes were checked before
        if isinstance(error, Exception):
            raise DamagedError(f"{self._path}: the file cannot be read: {_one_line(error)}", hint=RESTORE) from error


def _one_line(error: BaseException) -> str:
    return one_line(str(error), 300) or type(error).__name__


class HeldFile:
    """A readable file that buffers the byte ranges last passed to `hold`, compressed as stored."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._held: list[tuple[int, bytes]] = []
        self._at = 0
        self._size = int(source.seek(0, 2))

    def hold(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Reads (start, size) ranges, in bytes, into the buffer, whose content goes before."""
        self._held = []
        self._held = [(start, self._read(start, size)) for start, size in ranges]

    def read_at(self, size: int, start: int) -> bytes:
        """Reads `size` bytes at `start` without moving the position, as Arrow's `NativeFile.read_at` does."""
        for at, content in self._held:
            if at <= start and start + size <= at + len(content):
                return content[start - at : start - at + size]
        return self._read(start, size)

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._size - self._at if size is None or size < 0 else size
        content = self.read_at(wanted, self._at)
        self._at += len(content)
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self._held = []
        self._source.close()

    @property
    def closed(self) -> bool:
        return bool(self._source.closed)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def _read(self, start: int, size: int) -> bytes:
        self._source.seek(start)
        return bytes(self._source.read(size))
