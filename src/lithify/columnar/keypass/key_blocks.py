"""Partitions keys by hash range into blocks, for logs with too many ranges to read all keys for each.

    segment ─► keys, ranks ─► blocks, one per hash range ─► shuffle ─► spool on disk ─► winners
               read once      Arrow, compressed       encrypted        read again if it does not fit

A range that does not fit into memory is divided in the same way by another hash (`winners`), so its blocks
remain on disk until its winners are found.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pyarrow as pa

from lithify.columnar.files.spilled import MORE_SPACE, Sealer, spilling
from lithify.columnar.key_hash import KeyHash, ranges_of
from lithify.columnar.keypass.key_source import gathered
from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.segment.dead_records import DeadRecords, Integers
from lithify.columnar.segment.schema import KEY

MOST_BLOCKS_BYTES = 32 * 2**20
"""Upper bound for the bytes of keys that are partitioned into blocks at a time."""

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")

_COPIES = 8
"""Memory for partitioning, in multiples of the batch size: below 2 each for input, concatenation and result."""


def blocks_by_range(
    batches: Iterator[pa.RecordBatch], ranges: int, hashes: KeyHash, memory_bytes: int
) -> Iterator[tuple[int, bytes]]:
    """Yields (index of the hash range, block); a block is a compressed Arrow IPC stream of that range's rows.

    `batches` come from a key scan. Ranges without keys are left out.
    """
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
    """Stores the blocks of one hash range, encrypted, in one file per portion in `folder`, which it creates."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._sealer = folder, Sealer()
        with self._spooling():
            folder.mkdir()
        self._places: dict[Portion, list[tuple[int, int, int]]] = {}
        self.dirty_blocks = 0

    def add(self, block: bytes, portion: Portion, place: int = 0) -> None:
        """Blocks are read in the order of their `place`, and within one place in the order of arrival."""
        self.dirty_blocks += portion is Portion.DIRTY
        sealed = self._sealer.seal(block)
        with self._spooling(), (self._folder / portion).open("ab") as file:
            self._places.setdefault(portion, []).append((place, file.tell(), len(sealed)))
            file.write(sealed)

    def clear(self) -> None:
        """Deletes the files."""
        with self._spooling():
            shutil.rmtree(self._folder)
        self._places.clear()

    def has(self, portion: Portion) -> bool:
        return portion in self._places

    def keys(self, portion: Portion) -> Iterator[pa.RecordBatch]:
        if not self.has(portion):
            return
        with self._spooling(), (self._folder / portion).open("rb") as file:
            for _place, start, size in sorted(self._places[portion]):
                file.seek(start)
                with pa.ipc.open_stream(self._sealer.open(file.read(size))) as reader:
                    yield from reader

    def _spooling(self) -> AbstractContextManager[None]:
        what = "keys that do not fit into memory cannot be spooled"
        return spilling(self._folder, what, f"{MORE_SPACE}, or raise --task-memory")


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

    def keys(self, portion: Portion, wanted: pa.Array | None = None) -> Iterator[pa.RecordBatch]:
        for block in self._spool.keys(portion):
            self._dirty_blocks += portion is Portion.DIRTY
            yield block
