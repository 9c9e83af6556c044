"""Files of records, cut into the batches that are appended one by one, each atomic.

    orders.jsonl   lines 1 .. 20000 | 20001 .. 40000 | ...     by number and by bytes
    orders.parquet row group 0 | row group 1 | ...             larger ones are cut as well

A batch knows which line or row each of its records came from, so that an error can name it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from lithify.cli.records.lines import Encoding, LineError, parse_json, parse_tsv
from lithify.errors import InvalidInputError, InvalidRecordError

if TYPE_CHECKING:
    import pyarrow as pa

    from lithify.columnar.parquet.bounded_batches import BoundedFile

Format = Literal["json", "tsv", "parquet"]
FORMATS: tuple[Format, ...] = ("json", "tsv", "parquet")

BATCH_LINES = 20_000
BATCH_TEXT_BYTES = 16 * 2**20
LINE_EXTRA_BYTES = 64 * 2**10
MOST_RECORD_BYTES = 2**31 - 1
"""Arrow's binary columns take no larger ones, and neither does Kafka."""

STDIN = "-"


@dataclass(frozen=True, slots=True)
class InputBatch:
    """Records for one append. `numbers` are their lines (from 1) or rows (from 0)."""

    table: pa.Table
    source: str
    unit: Literal["line", "row"]
    numbers: Sequence[int]

    def named(self, error: InvalidRecordError) -> InvalidInputError | InvalidRecordError:
        """The error, with the line or row of the record that it is about."""
        if error.index < 0:
            return error
        return error.at(f"{self.source}, {self.unit} {self.numbers[error.index]}")


def format_of(path: str, given: str | None) -> Format:
    """The format of a file: the one given, or the one that its name says, or JSON."""
    by_suffix: dict[str, Format] = {".parquet": "parquet", ".tsv": "tsv"}
    return next((f for f in FORMATS if f == given), by_suffix.get(Path(path).suffix, "json"))


def read_batches(
    path: str, format_name: Format, encoding: Encoding, max_message_bytes: int, null_marker: str | None = None
) -> Iterator[InputBatch]:
    """The records of a file, or of stdin for `-`. Raises `InvalidInputError`, naming line or file."""
    most = most_line_bytes(max_message_bytes)
    source = "stdin" if path == STDIN else path
    match format_name:
        case "parquet":
            yield from _parquet_batches(path)
        case "json":
            yield from _text_batches(path, source, encoding, parse_json, most)
        case "tsv":
            yield from _text_batches(path, source, encoding, partial(parse_tsv, null_marker=null_marker), most)


def check_readable(path: str, format_name: Format) -> None:
    """Raises `InvalidInputError` now if a file cannot hold records, before anything is appended."""
    if format_name == "parquet":
        with _open_parquet(path) as file:
            from lithify.columnar.arrivals.columns import check_columns

            try:
                check_columns(file.file.schema_arrow)
            except InvalidInputError as error:
                raise InvalidInputError(f"{path}: {error.message}", hint=error.hint) from None
    elif path != STDIN and not Path(path).is_fifo():  # opening a pipe a second time would lose its content
        with _opened(path):
            pass


Parse = Callable[[Sequence[bytes], Encoding], Any]


def _text_batches(
    path: str, source: str, encoding: Encoding, parse: Parse, most_line_bytes: int
) -> Iterator[InputBatch]:
    with _opened(path) as file:
        for lines, numbers in _line_batches(_bounded_lines(file, source, most_line_bytes)):
            try:
                table = parse(lines, encoding)
            except LineError as error:
                raise InvalidInputError(f"{source}, line {numbers[error.index]}: {error.reason}") from None
            yield InputBatch(table, source, "line", numbers)


def most_line_bytes(max_message_bytes: int) -> int:
    """Of a line that can hold a record of `max.message.bytes`: JSON escapes a byte with 6, and has names beside it."""
    return 6 * min(max_message_bytes, MOST_RECORD_BYTES) + LINE_EXTRA_BYTES


def _bounded_lines(file: BinaryIO, source: str, most: int) -> Iterator[bytes]:
    """The lines of a file, no more than a line of `most` bytes in memory (C51)."""
    number = 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            raise InvalidInputError(
                f"{source}, line {number}: it has more than {most} bytes, which no record of max.message.bytes takes",
                hint="`lithify topic alter` raises max.message.bytes; --format says what kind of file it is",
            )
        yield line


def _line_batches(file: Iterator[bytes]) -> Iterator[tuple[list[bytes], list[int]]]:
    """Lines without their line ends, and their numbers; blank ones are skipped."""
    lines: list[bytes] = []
    numbers: list[int] = []
    size = 0
    for number, line in enumerate(file, 1):
        text = line.removesuffix(b"\n")
        if not text or text == b"\r":
            continue
        lines.append(text)
        numbers.append(number)
        size += len(text)
        if len(lines) >= BATCH_LINES or size >= BATCH_TEXT_BYTES:
            yield lines, numbers
            lines, numbers, size = [], [], 0
    if lines:
        yield lines, numbers


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == STDIN:
        if sys.stdin is None:
            raise InvalidInputError("stdin is closed", hint="name a file, or pipe records into it")
        yield sys.stdin.buffer
        return
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from None


def _parquet_batches(path: str) -> Iterator[InputBatch]:
    row = 0
    with _open_parquet(path) as file:
        for table in file.pieces():
            yield InputBatch(table, path, "row", range(row, row + table.num_rows))
            row += table.num_rows


@contextmanager
def _open_parquet(path: str) -> Iterator[BoundedFile]:
    import pyarrow as pa

    from lithify.columnar.parquet.bounded_batches import BoundedFile
    from lithify.columnar.parquet.footer import UnsoundFileError

    if path == STDIN:
        raise InvalidInputError("Parquet cannot be read from stdin", hint="name a file")
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise InvalidInputError(f"{path}: not a file that Parquet can be in")
        with pa.OSFile(path) as source:
            yield BoundedFile.of(source)
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise InvalidInputError(f"{path}: {reason}") from None
    except (pa.ArrowException, UnsoundFileError, KeyError, TypeError, OverflowError) as error:
        raise InvalidInputError(
            f"{path}: not a Parquet file that can be read: {' '.join(str(error).split())}"
        ) from None
