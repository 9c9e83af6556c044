"""The heart of the key pass: one winner per exact key, for one hash range of one log's keys.

    a range ──► comparison ──► winners of the dirty part, losers of the clean part
                    └─ out of memory ──► both halves of the range, each read and compared anew

Where the memory there is does not do, the range is cut in two, so that no number of keys is too many (C38).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import duckdb
import numpy as np
from pyroaring import BitMap64

from lithify.columnar.access import FileAccess
from lithify.columnar.hash_range import HashRange, key_hashes
from lithify.columnar.key_scan import KeyScan, LogScan
from lithify.columnar.key_source import KeySource, MemoryExceededError
from lithify.columnar.marks import MarkSet, positions_between
from lithify.columnar.offset_comparison import OffsetComparison
from lithify.columnar.ranks import VERSIONED_KEYS
from lithify.columnar.schema import OFFSET
from lithify.columnar.segment_reader import read_segment
from lithify.columnar.tally import Tally
from lithify.columnar.version_comparison import VersionComparison
from lithify.compaction.rules import SurvivorRules
from lithify.errors import EngineError
from lithify.model.segment import Segment
from lithify.model.units import format_bytes

MAX_SPLITS = 8
"""How often a range may be cut in two before the task gives up."""

LEAST_MEMORY_BYTES = 16 * 2**20
MOST_MEMORY_BYTES = 3 * 2**30
"""Half of it is keys, and Arrow puts no more than 2 GiB of them together."""


class WinnerFinder:
    """Finds winners within `memory_bytes`. A context manager: it holds a DuckDB instance open."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = min(max(memory_bytes, LEAST_MEMORY_BYTES), MOST_MEMORY_BYTES)
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
                self._compare(source, part)
            except MemoryExceededError as error:
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

    def _compare(self, source: KeySource, part: HashRange) -> None:
        connection = self._open()
        if source.schema == VERSIONED_KEYS:
            VersionComparison(source, part).run(connection)
        else:
            OffsetComparison(source, part, partial(key_hashes, connection), self._memory_bytes).run()

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            spill = self._opened.enter_context(tempfile.TemporaryDirectory(prefix="lithify-"))
            config = {
                "threads": 1,  # a Spark slot is one core
                "memory_limit": f"{self._memory_bytes // 1024}KiB",
                "temp_directory": spill,
                "autoload_known_extensions": False,
                "autoinstall_known_extensions": False,
            }
            self._connection = self._opened.enter_context(duckdb.connect(config=config))
            self._connection.execute("SET enable_progress_bar = false")  # it goes to standard output, terminal or not
            # The right side of a join is the one held in memory, whatever DuckDB guesses of their sizes.
            self._connection.execute("SET disabled_optimizers = 'build_side_probe_side'")
        return self._connection

    def _close(self) -> None:
        self._connection = None
        self._opened.close()


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
