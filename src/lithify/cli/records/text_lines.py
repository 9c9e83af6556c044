"""Lines of a file or a pipe, cut into the batches that are appended one by one.

    a file     lines 1 .. 20000 | 20001 .. 40000 | ...       by number and by bytes
    a pipe     the same, or what has come `linger_ms` after the first line of the batch

A program that keeps a pipe open and writes a line now and then has each line appended after `linger_ms`, not when
it ends. Every line has the time at which it was read. A pipe is read with `select`, by the one thread that there is:
a thread of its own would block in a read that no signal and no end of the program interrupts.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from io import UnsupportedOperation
from pathlib import Path
from typing import BinaryIO, Protocol

from lithify.errors import InvalidInputError

BATCH_LINES = 20_000
BATCH_TEXT_BYTES = 16 * 2**20
STDIN = "-"
_READ_BYTES = 64 * 2**10
_BLANK = (b"", b"\r")


@dataclass(frozen=True, slots=True)
class LineLimits:
    """When a batch of lines ends, and what a line may have."""

    most_line_bytes: int
    linger_ms: int
    now_ms: Callable[[], int]
    """The time in epoch ms, as records get it."""


@dataclass(slots=True)
class LineBatch:
    """Lines without their ends, blank ones left out; their numbers from 1, and when each was read, in epoch ms."""

    lines: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    read_ms: list[int] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, line: bytes, number: int, read_ms: int) -> None:
        self.lines.append(line)
        self.numbers.append(number)
        self.read_ms.append(read_ms)
        self.size_bytes += len(line)

    @property
    def is_full(self) -> bool:
        return len(self.lines) >= BATCH_LINES or self.size_bytes >= BATCH_TEXT_BYTES


class Lines(Protocol):
    """A source of lines."""

    def next_line(self, most_bytes: int, within_s: float | None) -> bytes | None:
        """The next line with its end, no more than `most_bytes` of it; empty at the end.

        None if none has come `within_s` seconds.
        """
        ...


@contextmanager
def opened_lines(path: str) -> Iterator[Lines]:
    """The lines of a file, or of stdin for `-`. Raises `InvalidInputError`."""
    if path == STDIN and sys.stdin is None:
        raise InvalidInputError("stdin is closed", hint="pass the name of a file, or pipe records into it")
    try:
        with nullcontext(sys.stdin.buffer) if path == STDIN else Path(path).open("rb") as file:
            yield _lines_of(file)
    except OSError as error:  # also of a read, such as of a stdin that was opened for writing
        raise InvalidInputError(f"{'stdin' if path == STDIN else path}: {error.strerror}") from None


def batches_of(lines: Lines, source: str, limits: LineLimits) -> Iterator[LineBatch]:
    """The batches of a source, none of them empty. Raises `InvalidInputError` for a line that is too long (C51).

    An interrupt while it waits for lines is raised again after the last batch, of the lines that were read whole.
    """
    batch, number, deadline = LineBatch(), 0, 0.0
    most = limits.most_line_bytes
    interrupted = False
    while not interrupted:
        try:
            line = lines.next_line(most + 1, max(0.0, deadline - time.monotonic()) if batch.lines else None)
        except KeyboardInterrupt:
            interrupted, line = True, b""
        if line == b"":
            break
        if line is not None:
            number += 1
            if number == 1:
                line = line.removeprefix(BOM_UTF8)  # it says how the file is encoded, and is in no key
            if len(line) > most:
                raise _too_long(source, number, most)
            if (text := line.removesuffix(b"\n")) not in _BLANK:
                if not batch.lines:
                    deadline = time.monotonic() + limits.linger_ms / 1000
                batch.add(text, number, limits.now_ms())
        if batch.is_full or (line is None and batch.lines):
            yield batch
            batch = LineBatch()
    if batch.lines:
        yield batch
    if interrupted:
        raise KeyboardInterrupt


def _too_long(source: str, number: int, most: int) -> InvalidInputError:
    return InvalidInputError(
        f"{source}, line {number}: it has more than {most} bytes, too many for a record of max.message.bytes",
        hint="raise max.message.bytes with `lithify topic alter`, or set the kind of the file with --format",
    )


def _lines_of(file: BinaryIO) -> Lines:
    try:
        descriptor = file.fileno()
    except UnsupportedOperation:  # a buffer in memory
        return _FileLines(file)
    return _FileLines(file) if stat.S_ISREG(os.fstat(descriptor).st_mode) else _PipeLines(descriptor)


class _FileLines:
    """The lines of a file, which are all there already."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def next_line(self, most_bytes: int, within_s: float | None) -> bytes:
        return self._file.readline(most_bytes)


class _PipeLines:
    """The lines of a pipe, a socket or a terminal, as they come."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._whole: deque[bytes] = deque()
        self._rest = bytearray()
        self._ended = False

    def next_line(self, most_bytes: int, within_s: float | None) -> bytes | None:
        until = None if within_s is None else time.monotonic() + within_s
        while not self._whole and not self._ended and len(self._rest) < most_bytes:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._descriptor], [], [], left)[0]:
                return None
            self._read()
        if self._whole:
            return self._whole.popleft()[:most_bytes]
        line = bytes(self._rest[:most_bytes])
        self._rest.clear()
        return line

    def _read(self) -> None:
        data = os.read(self._descriptor, _READ_BYTES)
        self._ended = not data
        *ends, rest = data.split(b"\n")
        if ends:
            self._whole.append(bytes(self._rest) + ends[0] + b"\n")
            self._whole.extend(line + b"\n" for line in ends[1:])
            self._rest.clear()
        self._rest += rest
