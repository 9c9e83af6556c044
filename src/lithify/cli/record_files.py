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
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from lithify.cli.records import Encoding, LineError, parse_json, parse_tsv
from lithify.errors import InvalidInputError, InvalidRecordError

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["json", "tsv", "parquet"]
FORMATS: tuple[Format, ...] = ("json", "tsv", "parquet")

BATCH_LINES = 20_000
BATCH_TEXT_BYTES = 16 * 2**20
BATCH_ROWS = 500_000
BATCH_COLUMN_BYTES = 128 * 2**20

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
    path: str, format_name: Format, encoding: Encoding, null_marker: str | None = None
) -> Iterator[InputBatch]:
    """The records of a file, or of stdin for `-`. Raises `InvalidInputError`, naming line or file."""
    source = "stdin" if path == STDIN else path
    match format_name:
        case "parquet":
            yield from _parquet_batches(path)
        case "json":
            yield from _text_batches(path, source, encoding, parse_json)
        case "tsv":
            yield from _text_batches(path, source, encoding, partial(parse_tsv, null_marker=null_marker))


def check_readable(path: str, format_name: Format) -> None:
    """Raises `InvalidInputError` now if a file cannot hold records, before anything is appended."""
    if format_name == "parquet":
        with _open_parquet(path) as file:
            from lithify.columnar.incoming_columns import check_columns

            try:
                check_columns(file.schema_arrow)
            except InvalidInputError as error:
                raise InvalidInputError(f"{path}: {error.message}", hint=error.hint) from None
    elif path != STDIN:
        with _opened(path):
            pass


Parse = Callable[[Sequence[bytes], Encoding], Any]


def _text_batches(path: str, source: str, encoding: Encoding, parse: Parse) -> Iterator[InputBatch]:
    with _opened(path) as file:
        for lines, numbers in _line_batches(file):
            try:
                table = parse(lines, encoding)
            except LineError as error:
                raise InvalidInputError(f"{source}, line {numbers[error.index]}: {error.reason}") from None
            yield InputBatch(table, source, "line", numbers)


def _line_batches(file: BinaryIO) -> Iterator[tuple[list[bytes], list[int]]]:
    """Lines without their ends, and their numbers; blank ones are passed over."""
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
        yield sys.stdin.buffer
        return
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from None


def _parquet_batches(path: str) -> Iterator[InputBatch]:
    import pyarrow as pa

    row = 0
    with _open_parquet(path) as file:
        for group in range(file.num_row_groups):
            facts = file.metadata.row_group(group)
            pieces = 1 + max(facts.num_rows // BATCH_ROWS, facts.total_byte_size // BATCH_COLUMN_BYTES)
            rows = max(1, ceil(facts.num_rows / pieces))
            for batch in file.iter_batches(batch_size=rows, row_groups=[group]):
                yield InputBatch(pa.Table.from_batches([batch]), path, "row", range(row, row + batch.num_rows))
                row += batch.num_rows


@contextmanager
def _open_parquet(path: str) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path == STDIN:
        raise InvalidInputError("Parquet cannot be read from stdin", hint="name a file")
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise InvalidInputError(f"{path}: {reason}") from None
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"{path}: not a Parquet file that can be read: {' '.join(str(error).split())}"
        ) from None
