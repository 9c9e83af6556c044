"""The heart of the key pass: one winner per exact key, for one hash range of one log's keys.

    dirty (key, rank) ──► highest rank per key ──► winners ──► tombstones past their time go (C18)
                                                      │
    clean (key, rank) ──► lost where the key is among them, or the tombstone is past its time

Each clean key is there once (C4) and below every dirty record, so the clean part is streamed past
the dirty winners: memory follows the dirty keys, not the log. It is DuckDB that compares, by whole
keys (C12), in one thread, within a memory limit, spilling to disk; where even that is not enough
the range is cut in two, which reads its keys again (C38).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb
import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from lithify.columnar.access import FileAccess
from lithify.columnar.key_scan import (
    EXPIRED_BIT,
    ORDINAL_SHIFT,
    RANK,
    RANKED_KEYS,
    TOMBSTONE_BIT,
    KeyScan,
    LogScan,
    Tally,
    tombstones_by_step,
)
from lithify.columnar.marks import Integers, MarkSet, positions_between
from lithify.columnar.schema import OFFSET
from lithify.columnar.segment_file import read_segment
from lithify.compaction.rules import SurvivorRules
from lithify.errors import EngineError
from lithify.model.segment import Segment
from lithify.model.units import format_bytes

MAX_SPLITS = 8
"""How often a range may be cut in two before the task gives up."""

LEAST_MEMORY_BYTES = 16 * 2**20

HASH = "(hash(key) >> 24)"
"""What hash ranges are made of. The lowest bits place a key in DuckDB's own hash table, the highest
in its partitions: ranges made of those would crowd their keys together there."""

_RESULT_RECORDS = 1 << 17


@dataclass(frozen=True, slots=True)
class HashRange:
    """The keys whose `HASH` modulo `count` is `index`. It is DuckDB's, the same on every machine."""

    index: int
    count: int

    def halves(self) -> tuple[HashRange, HashRange]:
        return HashRange(self.index, 2 * self.count), HashRange(self.index + self.count, 2 * self.count)

    @property
    def sql(self) -> str:
        return "true" if self.count == 1 else f"{HASH} % {self.count} = {self.index}"


class KeySource(Protocol):
    """Where the kernel gets (key, rank) from; each of `dirty` and `clean` is read at most once."""

    starts: Integers
    tally: Tally
    marks: MarkSet

    @property
    def has_clean(self) -> bool: ...
    def dirty(self) -> Iterator[pa.RecordBatch]: ...
    def clean(self) -> Iterator[pa.RecordBatch]: ...


class WinnerFinder:
    """Finds winners within `memory_bytes`. A context manager: it holds a DuckDB instance open."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = max(memory_bytes, LEAST_MEMORY_BYTES)
        self._opened = ExitStack()
        self._connection: duckdb.DuckDBPyConnection | None = None

    def __enter__(self) -> WinnerFinder:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def find(self, open_source: Callable[[HashRange], KeySource], hash_range: HashRange) -> tuple[Tally, MarkSet]:
        """What stays of the dirty part and what goes of the clean part, of the keys of one range.

        `open_source` is called anew for every part of the range that is tried. Raises `EngineError`
        when the memory is too little however small the part.
        """
        parts = [hash_range]
        found: KeySource | None = None
        wasted_bytes = 0
        while parts:
            part = parts.pop()
            source = open_source(part)
            try:
                _Comparison(source, part).run(self._open())
            except _OutOfMemoryError as error:
                self._close()
                if part.count >= hash_range.count << MAX_SPLITS:
                    raise EngineError(
                        f"hash range {part.index} of {part.count}: {format_bytes(self._memory_bytes)} are too few",
                        hint="give tasks more memory with --task-memory",
                    ) from error
                wasted_bytes += source.tally.bytes_read
                parts.extend(part.halves())
                continue
            if found is None:
                found = source
            else:
                found.tally.add(source.tally)
                found.marks.update(source.marks)
        assert found is not None  # there is always a first part
        found.tally.bytes_read += wasted_bytes
        return found.tally, found.marks

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            spill = self._opened.enter_context(tempfile.TemporaryDirectory(prefix="lithify-"))
            config = {
                "threads": 1,  # a Spark slot is one core
                "memory_limit": f"{self._memory_bytes // 1024}KiB",
                "temp_directory": spill,
                "preserve_insertion_order": False,
                "autoload_known_extensions": False,
                "autoinstall_known_extensions": False,
            }
            self._connection = self._opened.enter_context(duckdb.connect(config=config))
            self._connection.execute("SET enable_progress_bar = false")  # it goes to standard output, terminal or not
        return self._connection

    def _close(self) -> None:
        self._connection = None
        self._opened.close()


class _OutOfMemoryError(Exception):
    """The part does not fit, not even with spilling."""


class _Comparison:
    """One try at one part of a range."""

    def __init__(self, source: KeySource, part: HashRange) -> None:
        self._source = source
        self._part = part
        self._failure: Exception | None = None

    def run(self, connection: duckdb.DuckDBPyConnection) -> None:
        try:
            self._find(connection)
        except (duckdb.Error, OSError) as error:  # while results are streamed, DuckDB's come as OSError
            if self._failure is not None:  # the source failed, DuckDB only says so
                raise self._failure from None
            if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in str(error):
                raise _OutOfMemoryError from error
            raise

    def _find(self, connection: duckdb.DuckDBPyConnection) -> None:
        winners = f"SELECT {{}} max(rank) AS rank, count(*) AS records FROM dirty WHERE {self._part.sql} GROUP BY key"
        self._register(connection, "dirty", self._source.dirty)
        if not self._source.has_clean:
            self._take_winners(connection.execute(winners.format("")))
            return
        connection.execute(f"CREATE OR REPLACE TEMP TABLE winners AS {winners.format('key,')}")
        self._take_winners(connection.execute("SELECT rank, records FROM winners"))
        self._register(connection, "clean", self._source.clean)
        lost = connection.execute(
            f"SELECT rank, superseded FROM (SELECT rank, key IN (SELECT key FROM winners) AS superseded "
            f"FROM clean WHERE {self._part.sql}) WHERE superseded OR rank & {EXPIRED_BIT} = {EXPIRED_BIT}"
        )
        self._take_lost(lost)

    def _take_winners(self, result: Any) -> None:
        tally = self._source.tally
        for batch in result.to_arrow_reader(_RESULT_RECORDS):
            ranks = batch.column(RANK).to_numpy()
            tally.compared += int(batch.column("records").to_numpy().sum())
            tally.winners += len(ranks)
            tally.winning_tombstones += int((ranks & TOMBSTONE_BIT).sum())
            stays = ranks & EXPIRED_BIT == 0
            tally.expired_winners += len(ranks) - int(stays.sum())
            self._source.marks.add(ranks[stays] >> ORDINAL_SHIFT)

    def _take_lost(self, result: Any) -> None:
        tally = self._source.tally
        for batch in result.to_arrow_reader(_RESULT_RECORDS):
            ranks = batch.column(RANK).to_numpy()
            superseded = int(batch.column("superseded").to_numpy(zero_copy_only=False).sum())
            tally.clean_superseded += superseded
            tally.clean_expired += len(ranks) - superseded
            tally.clean_tombstones_lost += tombstones_by_step(ranks)
            self._source.marks.add(ranks >> ORDINAL_SHIFT)

    def _register(
        self, connection: duckdb.DuckDBPyConnection, name: str, batches: Callable[[], Iterator[pa.RecordBatch]]
    ) -> None:
        # The bare capsule, not the reader: DuckDB would wrap a reader in a scanner of Arrow's, which
        # reads ahead in threads of its own and so holds most of the input in memory.
        reader = pa.RecordBatchReader.from_batches(RANKED_KEYS, self._watched(batches()))
        connection.register(name, reader.__arrow_c_stream__())

    def _watched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            self._failure = error
            raise


def latest_offsets(
    access: FileAccess,
    segments: tuple[Segment, ...],
    rules: SurvivorRules,
    *,
    memory_bytes: int = 2**30,
) -> BitMap64:
    """The offsets of the records of one log that survive `rules`; `segments` in offset order."""
    if not segments:
        return BitMap64()
    log = LogScan(rules, (), segments)
    with WinnerFinder(memory_bytes) as finder:
        _, marks = finder.find(lambda part: KeyScan(access, log, settles=part.index == 0), HashRange(0, 1))
    offsets = BitMap64()
    for index, bitmap in marks.bitmaps().items():
        position = 0
        for table in read_segment(access, segments[index], columns=[OFFSET]):
            here = positions_between(bitmap, position, position + table.num_rows)
            offsets |= BitMap64(table.column(OFFSET).to_numpy()[here].astype(np.uint64))
            position += table.num_rows
    return offsets
