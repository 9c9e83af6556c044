"""Files that are produced from in a process of little memory. Run as functions of `bounded_child`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lithify
from lithify.cli.main import run
from support.generated.parquet_bombs import write_bomb

SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary())])
KEYS = pa.array([b"k%d" % n for n in range(4096)])


def one_value_for_all(path: Path) -> None:
    write_bomb(path, SCHEMA, {"key": KEYS.cast(pa.binary())})


def one_page(path: Path) -> None:
    """300 MiB of zeros, in a page of a few kilobytes."""
    pq.write_table(pa.table([[b"k"], [bytes(300 * 2**20)]], schema=SCHEMA), path, compression="zstd")


def many_headers(path: Path) -> None:
    """Millions of headers of one record, a bit each."""
    count = 40_000_000
    header = pa.StructArray.from_arrays([pa.nulls(count, pa.string()), pa.nulls(count, pa.binary())], ["key", "value"])
    headers = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), header)
    schema = SCHEMA.append(pa.field("headers", headers.type))
    pq.write_table(pa.table([[b"k"], [b"v"], headers], schema=schema), path, compression="zstd")


def one_line(path: Path) -> None:
    """Two gigabytes without an end of line, and nothing on the disk."""
    with path.open("wb") as file:
        file.truncate(2**31)


PARQUET: dict[str, Callable[[Path], None]] = {
    "one value for all": one_value_for_all,
    "one page": one_page,
    "many headers": many_headers,
}


def produced(folder: Path, name: str, source: str) -> tuple[int, str, int]:
    """The exit code of `produce`, what it said, and how many records there are then."""
    warehouse = str(folder / "warehouse")
    lithify.open(warehouse).create_topic("t")
    said = folder / "said"
    descriptor = os.open(said, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 2)
    code = run(["produce", "t", source, "--warehouse", warehouse])
    return code, said.read_text(), lithify.open(warehouse).topic("t").info().records
