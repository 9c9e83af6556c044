"""Keys on their way to their hash range, where ranges are too many to read all keys for each.

    segment ─► keys, ranks ─► blocks, one per hash range ─► shuffle ─► spool on disk ─► winners
               read once      Arrow, compressed                        read again if the range is cut

A range is cut in two when it does not fit into memory, so its blocks are kept on disk until its
winners are found.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from lithify.columnar.hash_range import key_hashes, ranges_of
from lithify.columnar.key_source import gathered
from lithify.columnar.marks import Integers, MarkSet
from lithify.columnar.ranks import Portion
from lithify.columnar.schema import KEY
from lithify.columnar.tally import Tally

BLOCK_ROWS_BYTES = 32 * 2**20
"""So much of a segment's keys is cut into blocks at a time."""

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_LENGTH = struct.Struct("<Q")


def blocks_by_range(batches: Iterator[pa.RecordBatch], ranges: int) -> Iterator[tuple[int, bytes]]:
    """(index of the hash range, block) for batches of a key scan; ranges without keys are left out."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for rows in gathered(batches, BLOCK_ROWS_BYTES):
            by_row = ranges_of(key_hashes(connection, rows.column(KEY)), ranges)
            order = np.argsort(by_row, kind="stable")
            ordered = rows.take(pa.array(order))
            cuts = np.searchsorted(by_row[order], np.arange(ranges + 1))
            for index in np.flatnonzero(np.diff(cuts)):
                yield int(index), _block(ordered.slice(cuts[index], cuts[index + 1] - cuts[index]))


def _block(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_COMPRESSED) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue().to_pybytes())


class Spool:
    """The blocks of one hash range, in a file per portion under `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, block: bytes, portion: Portion) -> None:
        with (self._folder / portion).open("ab") as file:
            file.write(_LENGTH.pack(len(block)))
            file.write(block)

    def has(self, portion: Portion) -> bool:
        return (self._folder / portion).exists()

    def keys(self, portion: Portion) -> Iterator[pa.RecordBatch]:
        if not self.has(portion):
            return
        with (self._folder / portion).open("rb") as file:
            while header := file.read(_LENGTH.size):
                with pa.ipc.open_stream(file.read(_LENGTH.unpack(header)[0])) as reader:
                    yield from reader


class SpooledKeys:
    """A `KeySource` over the blocks of a spool."""

    def __init__(self, spool: Spool, schema: pa.Schema, starts: Integers) -> None:
        self.schema = schema
        self.starts = starts
        self.tally = Tally()
        self.marks = MarkSet(starts)
        self._spool = spool

    def has(self, portion: Portion) -> bool:
        return self._spool.has(portion)

    def keys(self, portion: Portion) -> Iterator[pa.RecordBatch]:
        return self._spool.keys(portion)
