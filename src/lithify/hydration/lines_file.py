"""A table as a file of JSON lines, which is replaced atomically: a reader never sees half a table.

FILE  ◄── replaced at the end ── the new one, beside it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from lithify.columnar.files.replaced import replacing
from lithify.hydration.rows import Row, headers_of, unusable

WRITTEN_AT_ONCE = 8192
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

Lines = Callable[[pa.Table], Iterator[bytes]]
"""Makes lines of a table with the columns of a record."""


def write_lines(rows: Iterable[Row], path: Path, lines: Lines) -> None:
    """Raises `UnusableEnvironmentError`, and what `lines` raises; the file is then as it was."""
    try:
        with replacing(path) as file:
            for table in _tables(rows):
                file.writelines(lines(table))
    except OSError as error:
        raise unusable(path, error) from error


def _tables(rows: Iterable[Row]) -> Iterator[pa.Table]:
    rest = iter(rows)
    while some := list(islice(rest, WRITTEN_AT_ONCE)):
        partitions, keys, values, offsets, timestamps, headers = zip(*some, strict=True)
        pairs = [[{"key": name, "value": value} for name, value in headers_of(text)] for text in headers]
        yield pa.table(
            {
                "partition": pa.array(partitions, pa.int32()),
                "offset": pa.array(offsets, pa.int64()),
                "timestamp": pa.array(timestamps, pa.int64()),
                "timestamp_type": pa.array([0] * len(some), pa.int32()),
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(values, pa.binary()),
                "headers": pa.array(pairs, _HEADERS),
            }
        )
