"""PyIceberg's files in an object store: few requests, each with a deadline, and an error for each cause.

    the store has no such file                           ──► FileNotFoundError
    no answer, too slow for too long, busy, refused      ──► WarehouseError
    the bytes came, but fail a check                     ──► the reader's own error (`DamagedError`)

So a broken connection is never reported as a damaged file (C8). Defaults for the catalog's configuration:
    s3.connect-timeout       5 s to connect
    s3.request-timeout       10 s without a single byte
    s3.retry-strategy-impl   5 attempts of each request, with pauses of up to 1, 2, 4 and 8 s

A request to an unreachable store fails after some 8 s if connections are refused, and after some 60 s without
a response. A busy store is retried. One that sends single bytes is abandoned after `REQUEST_S` and more (C50).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from threading import Lock
from types import TracebackType
from typing import Any

import pyarrow as pa
from cachetools import TTLCache
from pyarrow.fs import AwsStandardS3RetryStrategy, FileSelector, FileSystem, FileType, S3FileSystem
from pyiceberg.io import S3_CONNECT_TIMEOUT, S3_REQUEST_TIMEOUT, S3_RETRY_STRATEGY_IMPL, InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from lithify.columnar.files.access import check_small, local_path
from lithify.errors import LithifyError, WarehouseError
from lithify.store.iceberg.error_mapping import warehouse_error
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.store.iceberg.io.local_io import LocalInput, LocalOutput
from lithify.waits.deadline import within

IMPLEMENTATION = f"{__name__}.RemoteFileIO"
"""Its name for PyIceberg's property `py-io-impl`."""

TIMEOUTS_S = {S3_CONNECT_TIMEOUT: "5", S3_REQUEST_TIMEOUT: "10"}
ATTEMPTS = 5

REQUEST_S = 90.0
"""Seconds for a request with all its attempts; the client's own timeouts end one to a silent store before that."""
FOLDER_S = 900.0
"""Seconds for listing everything below a folder, which is many requests."""
LEAST_BYTES = 128 * 1024
"""Bytes a second: a slower store counts as unreachable."""

FILE_SYSTEMS_KEPT = 64
_OF_FILE_SYSTEMS = ("s3.", "client.", "gcs.", "adls.", "hdfs.")
"""Prefixes of the properties that say how to open a file system."""

_BUCKETS: TTLCache[tuple[int, str], bool] = TTLCache(FILE_SYSTEMS_KEPT, ttl=60)
"""Buckets that existed a minute ago: optional files are often looked for."""
_DOCUMENTS = "lithify/"
"""In the path of a file that may be missing: a document of ours."""
_LOCK = Lock()


class RemoteFileIO(PyArrowFileIO):
    """Files of any store that Arrow speaks to. File systems are shared, and with them their connections."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        # Tables bring their own properties, which change with every commit and open no file.
        opening = frozenset((k, str(v)) for k, v in self.properties.items() if k.startswith(_OF_FILE_SYSTEMS))
        self.fs_by_scheme = partial(_file_system, opening)

    def new_input(self, location: str) -> InputFile:  # type: ignore[override]  # Arrow syncs no file of a local disk
        return self._file(location) if local_path(location) is None else LocalInput(location)

    def new_output(self, location: str) -> OutputFile:  # type: ignore[override]
        return self._file(location) if local_path(location) is None else LocalOutput(location)

    def delete(self, location: Any) -> None:
        """Raises `FileNotFoundError` or `WarehouseError`."""
        path = location if isinstance(location, str) else location.location
        FILE_CACHE.drop(path)
        with _errors_mapped(path):
            super().delete(path)

    def _file(self, location: str) -> RemoteFile:
        scheme, netloc, path = self.parse_location(location, self.properties)
        with _errors_mapped(location):
            return RemoteFile(location, path, self.fs_by_scheme(scheme, netloc))


@lru_cache(maxsize=FILE_SYSTEMS_KEPT)
def _file_system(opening: frozenset[tuple[str, str]], scheme: str, netloc: str | None) -> BoundedFileSystem:
    properties = TIMEOUTS_S | dict(opening)
    made = PyArrowFileIO(properties).fs_by_scheme(scheme, netloc)
    if isinstance(made, S3FileSystem) and S3_RETRY_STRATEGY_IMPL not in properties:
        # PyIceberg passes neither on. A small file is then one request instead of three, and an
        # unfinished one leaves nothing behind.
        _, (options,) = made.__reduce__()
        options |= {"allow_delayed_open": True, "retry_strategy": AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS)}
        made = S3FileSystem(**options)
    return BoundedFileSystem(made)


class BoundedFileSystem:
    """A file system of Arrow's whose calls end. What it opens is read and written through `RemoteStream`."""

    def __init__(self, real: FileSystem) -> None:
        self.real = real

    def get_file_info(self, what: Any) -> Any:
        return within(FOLDER_S if isinstance(what, FileSelector) else REQUEST_S, partial(self.real.get_file_info, what))

    def open_input_file(self, path: str) -> Any:
        return within(REQUEST_S, partial(self.real.open_input_file, path))

    def open_input_stream(self, path: str, **options: Any) -> Any:
        return within(REQUEST_S, partial(self.real.open_input_stream, path, **options))

    def open_output_stream(self, path: str, **options: Any) -> Any:
        return within(REQUEST_S, partial(self.real.open_output_stream, path, **options))

    def delete_file(self, path: str) -> None:
        within(REQUEST_S, partial(self.real.delete_file, path))


class RemoteFile(PyArrowFile):
    """A file to read or to write."""

    _written: RemoteStream | None = None

    def __len__(self) -> int:
        """Raises `FileNotFoundError` or `WarehouseError`."""
        if self._written is not None and self._written.closed:
            return self._written.size_bytes  # PyIceberg asks for every manifest that it wrote
        with _errors_mapped(self.location):
            return super().__len__()

    def exists(self) -> bool:
        """Raises `WarehouseError`."""
        with _errors_mapped(self.location):
            return super().exists()

    def open(self, seekable: bool = True) -> RemoteStream:
        """Raises `FileNotFoundError` or `WarehouseError`."""
        if not FILE_CACHE.takes(self.location):
            return self._opened(seekable)
        content = FILE_CACHE.get(self.location)
        if content is None:
            with self._opened(seekable) as stream:
                check_small(self.location, stream.seek(0, 2))
                stream.seek(0)
                content = stream.read()
            FILE_CACHE.put(self.location, content)
        return RemoteStream(self.location, pa.BufferReader(content), lambda: True)

    def _opened(self, seekable: bool) -> RemoteStream:
        with _errors_mapped(self.location):
            try:
                return RemoteStream(self.location, super().open(seekable), self.exists)
            except FileNotFoundError:
                self._check_bucket()
                raise

    def create(self, overwrite: bool = False) -> RemoteStream:
        """Raises `WarehouseError`. It checks for no existing file, which would take two requests and prove nothing:

        another writer may create one after the check. Files that must not collide have unique names.
        """
        with _errors_mapped(self.location):
            keep = FILE_CACHE.put if FILE_CACHE.takes(self.location) else None
            self._written = RemoteStream(self.location, super().create(overwrite=True), lambda: True, keep)
            return self._written

    def _check_bucket(self) -> None:
        bucket = self._path.partition("/")[0]
        if isinstance(self._filesystem.real, S3FileSystem) and not self._is_there(bucket):
            raise WarehouseError(
                f"{self.location}: there is no bucket {bucket}",
                hint="create it, or correct the catalog's configuration",
            )

    def _is_there(self, bucket: str) -> bool:
        seen = (id(self._filesystem), bucket)
        with _LOCK:
            if seen in _BUCKETS and _DOCUMENTS in self._path:
                return True
        try:
            there = self._filesystem.get_file_info(bucket).type is not FileType.NotFound
        except OSError:  # credentials that may read its files may lack the permission to ask
            there = True
        if there:
            with _LOCK:
                _BUCKETS[seen] = True
        return there


class RemoteStream:
    """An open file of Arrow's; its errors distinguish a missing file from an unreachable store."""

    def __init__(
        self,
        location: str,
        stream: Any,
        is_there: Callable[[], bool],
        keep: Callable[[str, bytes], None] | None = None,
    ) -> None:
        self._location = location
        self._stream = stream
        self._is_there = is_there
        self._keep = keep
        self._kept: list[bytes] = []
        self.size_bytes = 0
        """Bytes that were written."""

    def read(self, size: int = -1) -> bytes:
        """Raises `FileNotFoundError` or `WarehouseError`."""
        with _errors_mapped(self._location):
            try:
                wanted = None if size < 0 else size
                if isinstance(self._stream, pa.BufferReader):
                    return bytes(self._stream.read(wanted))
                return within(_seconds(self._left(wanted)), lambda: bytes(self._stream.read(wanted)))
            except OSError:
                # Arrow reports a file that was deleted since it was opened as a failure of the store.
                if not self._is_there():
                    raise FileNotFoundError(f"{self._location} no longer exists") from None
                raise

    def _left(self, wanted: int | None) -> int:
        """How much is read at most."""
        if wanted is not None:
            return wanted
        return int(self._stream.size() - self._stream.tell()) if self._stream.seekable() else 0

    def write(self, content: bytes) -> int:
        """Raises `WarehouseError`."""
        with _errors_mapped(self._location):
            within(_seconds(len(content)), partial(self._stream.write, content))
        if self._keep is not None:
            self._kept.append(bytes(content))
        self.size_bytes += len(content)
        return len(content)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def flush(self) -> None:
        """What is written counts when the file is closed."""

    def close(self) -> None:
        """Raises `WarehouseError`."""
        with _errors_mapped(self._location):
            # What was written may still be on its way.
            within(_seconds(self.size_bytes), self._stream.close)
        keep, self._keep = self._keep, None
        if keep is not None:
            keep(self._location, b"".join(self._kept))

    @property
    def closed(self) -> bool:
        return bool(self._stream.closed)

    def readable(self) -> bool:
        return bool(self._stream.readable())

    def writable(self) -> bool:
        return bool(self._stream.writable())

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def __enter__(self) -> RemoteStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._keep = None  # it is not whole
        self.close()


def _seconds(size_bytes: int) -> float:
    """For reading or writing so much."""
    return REQUEST_S + size_bytes / LEAST_BYTES


@contextmanager
def _errors_mapped(location: str) -> Iterator[None]:
    try:
        yield
    except (LithifyError, FileNotFoundError, FileExistsError):
        raise
    except OSError as error:
        raise warehouse_error(location, error) from error
