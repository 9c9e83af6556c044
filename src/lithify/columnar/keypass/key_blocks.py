"""Keys on their way to their hash range, where ranges are too many to read all keys for each.

    segment ─► keys, ranks ─► blocks, one per hash range ─► shuffle ─► spool on disk ─► winners
               read once      Arrow, compressed                        read again if it does not fit

Of a range that does not fit into memory parts are made in the same way, by another hash (`winners`), so
its blocks are kept on disk until its winners are found.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from lithify.columnar.keypass.key_source import gathered
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keys.hash_range import ranges_of
from lithify.columnar.keys.key_hash import KeyHash
from lithify.columnar.keys.ranks import Portion
from lithify.columnar.segment.positions import DeadRecords, Integers
from lithify.columnar.segment.schema import KEY
from lithify.errors import EngineError

MOST_BLOCKS_BYTES = 32 * 2**20
"""So much of a segment's keys is cut into blocks at a time, where there is memory for it."""

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_LENGTH = struct.Struct("<Q")

_COPIES = 8
"""Of what is cut at a time there is less than twice as much, as it came, put together, and in its new order."""


def blocks_by_range(
    batches: Iterator[pa.RecordBatch], ranges: int, hashes: KeyHash, memory_bytes: int
) -> Iterator[tuple[int, bytes]]:
    """(index of the hash range, block) for batches of a key scan; ranges without keys are left out."""
    for rows in gathered(batches, min(MOST_BLOCKS_BYTES, memory_bytes // _COPIES)):
        by_row = ranges_of(hashes(rows.column(KEY)), ranges)
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
    """The blocks of one hash range, in a file per portion in `folder`, which it makes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.dirty_blocks = 0

    def add(self, block: bytes, portion: Portion) -> None:
        self.dirty_blocks += portion is Portion.DIRTY
        try:
            with (self._folder / portion).open("ab") as file:
                file.write(_LENGTH.pack(len(block)))
                file.write(block)
        except OSError as error:
            raise EngineError(
                f"{self._folder}: keys that do not fit into memory cannot be spooled: {error.strerror}",
                hint="make room there, or set TMPDIR to a folder that has it, or give tasks more --task-memory",
            ) from error

    def clear(self) -> None:
        """Lets the disk go."""
        shutil.rmtree(self._folder)

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
        self.dead = DeadRecords(starts)
        self._spool = spool
        self._dirty_blocks = 0

    @property
    def dirty_read(self) -> float:
        return self._dirty_blocks / max(1, self._spool.dirty_blocks)

    def has(self, portion: Portion) -> bool:
        return self._spool.has(portion)

    def keys(self, portion: Portion) -> Iterator[pa.RecordBatch]:
        for block in self._spool.keys(portion):
            self._dirty_blocks += portion is Portion.DIRTY
            yield block
