"""Files of records, cut into the batches that are appended one by one, each atomic.

    orders.jsonl   lines 1 .. 20000 | 20001 .. 40000 | ...     see `text_lines`
    orders.parquet row group 0 | row group 1 | ...             larger ones are cut as well

A batch knows which line or row each of its records came from, so that an error can name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lithify.cli.records.text_lines import STDIN, LineBatch, LineLimits, batches_of, opened_lines
from lithify.columnar.text.encodings import Encodings
from lithify.columnar.text.lines import LineError, parse_json
from lithify.errors import InvalidInputError, InvalidRecordError, RefusedError

if TYPE_CHECKING:
    import pyarrow as pa

    from lithify.api.topic import Topic
    from lithify.columnar.parquet.bounded_batches import BoundedFile
    from lithify.service.write.append import AppendResult

Format = Literal["json", "tsv", "parquet", "values"]
FORMATS: tuple[Format, ...] = ("json", "tsv", "parquet")
"""The encodings that can be requested; lines are `values` if the key is given beside them."""

LINE_EXTRA_BYTES = 64 * 2**10
MOST_RECORD_BYTES = 2**31 - 1
"""Arrow's binary columns take no larger ones, and neither does Kafka."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records for one append. `numbers` are their lines (from 1) or rows (from 0)."""

    source: str
    unit: Literal["line", "row"]
    numbers: Sequence[int]

    def place(self, index: int) -> str:
        """Where a record came from."""
        return f"{self.source}, {self.unit} {self.numbers[index]}"

    def malformed(self, error: LineError) -> InvalidInputError:
        """The error for a line that is not a record."""
        return InvalidInputError(f"{self.place(error.index)}: {error.reason}")

    def misplaced(self, index: int, own: int, partition: int) -> RefusedError:
        """The error for a record with another partition than the one that the topic's name has."""
        return RefusedError(
            f"{self.place(index)}: the record has partition {own}, but the topic name has partition {partition}"
        )

    def named(self, error: InvalidInputError | InvalidRecordError) -> InvalidInputError | InvalidRecordError:
        """The error, with the line or row of the record that it is about, or all of them if it names none."""
        if isinstance(error, InvalidInputError):
            where = f"{self.source}, {self.unit}s {self.numbers[0]} to {self.numbers[-1]}"
            return InvalidInputError(f"{where}: {error.message}", hint=error.hint)
        if error.index < 0:
            return error
        return error.at(self.place(error.index))


@dataclass(frozen=True, slots=True)
class InputBatch(Batch):
    """The same as a table."""

    table: pa.Table

    def appended(self, topic: Topic, *, keep_offsets: bool) -> AppendResult:
        return topic.append(self.table, keep_offsets=keep_offsets)

    def placed(self, partition: int | None) -> InputBatch:
        """The records, all in the partition that the topic's name names, if it does. Raises `RefusedError`."""
        if partition is None:
            return self
        import pyarrow as pa
        import pyarrow.compute as pc

        column, table = "partition", self.table
        places = pa.repeat(pa.scalar(partition, pa.int32()), table.num_rows)
        if column not in table.schema.names:
            return replace(self, table=table.append_column(column, places))
        elsewhere = pc.fill_null(pc.not_equal(table.column(column), partition), False)
        index = elsewhere.index(True).as_py()
        if index >= 0:
            raise self.misplaced(index, table.column(column)[index].as_py(), partition)
        return replace(self, table=table.set_column(table.schema.get_field_index(column), column, places))


def format_of(path: str, given: str | None) -> Format:
    """The format of a file: the one given, or the one of its name, or JSON."""
    by_suffix: dict[str, Format] = {".parquet": "parquet", ".tsv": "tsv"}
    return next((f for f in FORMATS if f == given), by_suffix.get(Path(path).suffix, "json"))


@dataclass(frozen=True, slots=True)
class TextForm:
    """How the lines of text are read."""

    encodings: Encodings
    key: bytes | None
    null_marker: bytes | None
    limits: LineLimits


def read_batches(path: str, format_name: Format, form: TextForm, partition: int | None = None) -> Iterator[InputBatch]:
    """The records of a file, or of stdin for `-`, in the partition that the topic's name has, if it has one.

    Raises `InvalidInputError`, naming line or file, or `RefusedError` for a record of another partition.
    """
    for batch in _parquet_batches(path) if format_name == "parquet" else _text_batches(path, format_name, form):
        yield batch.placed(partition)


def check_readable(path: str, format_name: Format) -> None:
    """Raises `InvalidInputError` now if a file cannot hold records, before anything is appended."""
    if not path:
        raise InvalidInputError("the name of a file is empty", hint="pass the name of a file, or - for stdin")
    if format_name == "parquet":
        with _open_parquet(path) as file:
            from lithify.columnar.arrivals.arrived_columns import check_types

            try:
                check_types(file.file.schema_arrow)
            except InvalidInputError as error:
                raise InvalidInputError(f"{path}: {error.message}", hint=error.hint) from None
    elif path != STDIN and not _is_pipe(path):  # opening a pipe a second time would lose its content
        with opened_lines(path):
            pass


def _is_pipe(path: str) -> bool:
    with suppress(OSError):  # of a name that is too long; who opens it says so
        return Path(path).is_fifo()
    return False


def line_batches(path: str, limits: LineLimits) -> Iterator[tuple[Batch, LineBatch]]:
    """The lines of a file, or of stdin, and where they came from."""
    source = "stdin" if path == STDIN else path
    with opened_lines(path) as lines:
        for read in batches_of(lines, source, limits):
            yield Batch(source, "line", read.numbers), read


def _text_batches(path: str, format_name: Format, form: TextForm) -> Iterator[InputBatch]:
    parse: Callable[[Sequence[bytes], Encodings], Any] = parse_json
    if format_name == "tsv":
        from lithify.columnar.text.pairs import parse_tsv

        parse = partial(parse_tsv, null_marker=form.null_marker)
    elif format_name == "values":
        from lithify.columnar.text.pairs import parse_values

        assert form.key is not None
        parse = partial(parse_values, key=form.key, null_marker=form.null_marker)
    for batch, read in line_batches(path, form.limits):
        try:
            table = parse(read.lines, form.encodings)
        except LineError as error:
            raise batch.malformed(error) from None
        yield InputBatch(batch.source, batch.unit, batch.numbers, _stamped(table, read.read_ms))


def _stamped(table: pa.Table, read_ms: Sequence[int]) -> pa.Table:
    """The records, those without a timestamp with the time at which each was read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, read = "timestamp", pa.array(read_ms, pa.int64())
    if column not in table.schema.names:
        return table.append_column(column, read)
    own = table.column(column)
    return table.set_column(table.schema.get_field_index(column), column, pc.coalesce(own.cast(pa.int64()), read))


def most_line_bytes(max_message_bytes: int) -> int:
    """The size of a line that can hold a record of `max.message.bytes`: JSON escapes a byte with 6, and adds names."""
    return 6 * min(max_message_bytes, MOST_RECORD_BYTES) + LINE_EXTRA_BYTES


def _parquet_batches(path: str) -> Iterator[InputBatch]:
    row = 0
    with _open_parquet(path) as file:
        for table in file.pieces():
            yield InputBatch(path, "row", range(row, row + table.num_rows), table)
            row += table.num_rows


@contextmanager
def _open_parquet(path: str) -> Iterator[BoundedFile]:
    import pyarrow as pa

    from lithify.columnar.parquet.bounded_batches import BoundedFile
    from lithify.columnar.parquet.footer import UnsoundFileError

    if path == STDIN:
        raise InvalidInputError("Parquet cannot be read from stdin", hint="pass the name of a file")
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise InvalidInputError(f"{path}: Parquet cannot be read from it, because it is not a regular file")
        path.encode()  # Arrow opens no others
        with pa.OSFile(path) as source:
            yield BoundedFile.of(source)
    except UnicodeEncodeError:
        raise InvalidInputError(f"{path}: its name is not UTF-8", hint="rename it, or pass a link to it") from None
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise InvalidInputError(f"{path}: {reason}") from None
    except (pa.ArrowException, UnsoundFileError, KeyError, TypeError, OverflowError) as error:
        raise InvalidInputError(
            f"{path}: it cannot be read as a Parquet file: {' '.join(str(error).split())}"
        ) from None
