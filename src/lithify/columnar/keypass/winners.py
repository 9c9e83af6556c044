"""Finds the winner of each key of one hash range of a log.

    a range ──► comparison ──► winners of the dirty part, losers of the clean part
                    └─ memory full ──► few parts:  one goes on, the others read the range again; once memory is
                                  │                full again, what is left is spooled
                                  └──► many parts: the range is read once more and spooled to disk by part

Works for any number, size and choice of keys (C38). The number of parts follows from how much had been read
when memory was full. Each level of spooling uses another hash, so that keys that collide in one are
separated by the next. Only the records of a single key cannot be separated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from lithify.columnar.files.access import FileAccess
from lithify.columnar.files.spilled import spill_folder
from lithify.columnar.key_hash import HashRange, KeyHash
from lithify.columnar.keypass.key_blocks import Spool, SpooledKeys, blocks_by_range
from lithify.columnar.keypass.key_comparison import KeyComparison
from lithify.columnar.keypass.key_scan import KeyScan, LogScan
from lithify.columnar.keypass.key_source import SPARE, KeyResults, KeySource, MemoryExceededError, of_parts
from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.segment.dead_records import DeadRecords
from lithify.columnar.segment.schema import OFFSET
from lithify.columnar.segment.segment_reader import read_segment
from lithify.errors import EngineError
from lithify.model.segment import Segment
from lithify.model.settings.units import format_bytes
from lithify.rules.compaction.key_pass_shape import MAX_READS, MOST_MEMORY_BYTES
from lithify.rules.compaction.survivor_rules import SurvivorRules

MAX_SPOOLS = 64
"""Most parts that keys are spooled into at a time, so that blocks do not get too small."""

MAX_DEPTH = 16
"""Most levels of spooling, each by another hash. Two keys that do not fit into memory together remain in one
part with a probability of at most a quarter per level."""

LEAST_MEMORY_BYTES = 16 * 2**20

Open = Callable[[HashRange], KeySource]


class Comparison(Protocol):
    """Compares the keys of one part of a range, such as `KeyComparison`."""

    def run(self) -> KeyResults:
        """Raises `MemoryExceededError`, or what the source raises."""
        ...


Compare = Callable[[KeySource, HashRange, KeyHash, int], Comparison]
"""Makes a comparison of a source's keys in a part, by the hash that defines the parts, within this number of bytes."""


@dataclass(frozen=True, slots=True)
class WinnerFinder:
    """Finds winners within `memory_bytes`.

    `seed` of the hashes is secret, and the same for all tasks of one log.
    """

    memory_bytes: int
    seed: str = field(repr=False)
    compare: Compare = KeyComparison

    def find(self, open_source: Open, hash_range: HashRange) -> tuple[Tally, DeadRecords]:
        """The counts and the dead records of one hash range.

        Calls `open_source` for each part of the range that is tried. Raises `EngineError` if keys cannot be
        spooled or separated, and what the source raises.
        """
        results = self._find(open_source, hash_range, depth=0)
        return results.tally, results.dead

    def blocks(self, batches: Iterator[pa.RecordBatch], ranges: int) -> Iterator[tuple[int, bytes]]:
        """Batches of a key scan as blocks for `ranges` hash ranges; see `blocks_by_range`."""
        return blocks_by_range(batches, ranges, KeyHash(self.seed), self._memory_bytes)

    def _find(self, open_source: Open, whole: HashRange, depth: int) -> KeyResults:
        """The results of the whole range."""
        hashes = KeyHash(self.seed, 2 * depth)
        parts = [whole]
        total: KeyResults | None = None
        wasted_bytes = 0
        while parts:
            part = parts.pop()
            source = open_source(part)
            results = self._compared(source, part, hashes)
            if results is None:
                wasted_bytes += source.tally.bytes_read
                needed = max(2, math.ceil(SPARE / max(source.dirty_read, SPARE / MAX_SPOOLS)))
                if part == whole and part.count * needed <= MAX_READS:
                    parts = part.cut(math.ceil(part.parts / needed))
                    continue
                left, parts = [*parts, part], []
                source = open_source(left[0])
                results = self._find_spooled(source, left, min(needed * len(left), MAX_SPOOLS), depth)
            parts += results.left
            results.add(source)
            if total is None:
                total = results
            else:
                total.add(results)
        assert total is not None  # there is always a first part
        total.tally.bytes_read += wasted_bytes
        return total

    def _compared(self, source: KeySource, part: HashRange, hashes: KeyHash) -> KeyResults | None:
        """The results of comparing a part; None if memory does not suffice."""
        try:
            return self.compare(source, part, hashes, self._memory_bytes).run()
        except MemoryExceededError:
            return None

    def _find_spooled(self, source: KeySource, parts: Sequence[HashRange], count: int, depth: int) -> KeyResults:
        """Reads these parts once, spools them to disk as `count` parts, and returns the results of all of them."""
        if depth == MAX_DEPTH:
            raise EngineError(
                f"keys that take more than {format_bytes(self._memory_bytes)} share {MAX_DEPTH} hashes",
                hint="try again, as hashes differ from round to round, or raise --task-memory",
            )
        picks, spreads = KeyHash(self.seed, 2 * depth), KeyHash(self.seed, 2 * depth + 1)
        with spill_folder() as folder:
            spools = [Spool(folder / str(index)) for index in range(count)]
            for portion in Portion:
                rows = of_parts(source.keys(portion), parts, picks)
                for index, block in blocks_by_range(rows, count, spreads, self._memory_bytes):
                    spools[index].add(block, portion)
            results = KeyResults(source.starts)
            for spool in spools:
                opened = partial(_opened, spool, source)
                results.add(self._find(opened, HashRange(0, 1), depth + 1))
                spool.clear()
            return results

    @property
    def _memory_bytes(self) -> int:
        return min(max(self.memory_bytes, LEAST_MEMORY_BYTES), MOST_MEMORY_BYTES)


def _opened(spool: Spool, source: KeySource, _: HashRange) -> KeySource:
    return SpooledKeys(spool, source.schema, source.starts)


def latest_offsets(
    access: FileAccess,
    segments: tuple[Segment, ...],
    rules: SurvivorRules,
    finder: WinnerFinder,
) -> BitMap64:
    """The offsets of the records of one log that survive `rules`; `segments` are in offset order.

    Raises `DamagedError` or `EngineError`.
    """
    if not segments:
        return BitMap64()
    log = LogScan(rules, (), segments)
    _, dead_records = finder.find(lambda part: KeyScan(access, log, settles=part.is_first), HashRange(0, 1))
    offsets = BitMap64()
    for index, dead in dead_records.by_segment().items():
        position = 0
        for table in read_segment(access, segments[index], columns=[OFFSET]):
            live = ~dead.flags(position, position + table.num_rows)
            offsets |= BitMap64(table.column(OFFSET).to_numpy()[live].astype(np.uint64))
            position += table.num_rows
    return offsets
