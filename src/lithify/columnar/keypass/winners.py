"""The heart of the key pass: one winner per exact key, for one hash range of one log's keys.

    a range ──► comparison ──► winners of the dirty part, losers of the clean part
                    └─ memory full ──► few parts:  each reads the range again, and is compared
                                  └──► many parts: the range is read again once, and spooled to them

No number, no size and no choice of keys is too much (C38): how many parts it takes shows in how much had
been read when memory was full, and those of a spool are made by another hash each time, so that keys which
share one are parted by the next. What cannot be parted is one key.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keypass.key_blocks import Spool, SpooledKeys, blocks_by_range
from lithify.columnar.keypass.key_comparison import KeyComparison
from lithify.columnar.keypass.key_scan import KeyScan, LogScan
from lithify.columnar.keypass.key_source import KeySource, MemoryExceededError, of_part
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keys.hash_range import HashRange
from lithify.columnar.keys.key_hash import KeyHash
from lithify.columnar.keys.ranks import Portion
from lithify.columnar.segment.positions import DeadRecords
from lithify.columnar.segment.reader import read_segment
from lithify.columnar.segment.schema import OFFSET
from lithify.compaction.key_pass_shape import MAX_READS, MOST_MEMORY_BYTES
from lithify.compaction.rules import SurvivorRules
from lithify.errors import EngineError
from lithify.model.segment import Segment
from lithify.model.settings.units import format_bytes

MAX_SPOOLS = 64
"""Into no more parts are keys spooled at a time, so that the blocks of each are not too small."""

MAX_DEPTH = 16
"""How often keys are spooled anew, each time by another hash. Two keys that no memory holds together stay
together each time with a chance of a quarter at most."""

SPARE = 1.25
"""So many times the parts are made that seem to be needed, since they are not all of one size."""

LEAST_MEMORY_BYTES = 16 * 2**20

Open = Callable[[HashRange], KeySource]


@dataclass(frozen=True, slots=True)
class WinnerFinder:
    """Finds winners within `memory_bytes`.

    Hashes use the `seed`: secret, and the same for all tasks of one log.
    """

    memory_bytes: int
    seed: str = field(repr=False)

    def find(self, open_source: Open, hash_range: HashRange) -> tuple[Tally, DeadRecords]:
        """Positions that survive of the dirty part, and that lose of the clean part, for the keys of one range.

        `open_source` is called anew for every part of the range that is tried. Raises `EngineError` where keys
        cannot be spooled.
        """
        found = self._find(open_source, hash_range, depth=0)
        return found.tally, found.dead

    def blocks(self, batches: Iterator[pa.RecordBatch], ranges: int) -> Iterator[tuple[int, bytes]]:
        """Batches of a key scan as blocks for so many ranges of its log."""
        return blocks_by_range(batches, ranges, KeyHash(self.seed), self._memory_bytes)

    def _find(self, open_source: Open, whole: HashRange, depth: int) -> KeySource:
        """A source of the range, with what was found of all of it."""
        hashes = KeyHash(self.seed, 2 * depth)
        parts = [whole]
        found: KeySource | None = None
        wasted_bytes = 0
        while parts:
            part = parts.pop()
            source = open_source(part)
            if not self._fits(source, part, hashes):
                wasted_bytes += source.tally.bytes_read
                needed = max(2, math.ceil(SPARE / max(source.dirty_read, SPARE / MAX_SPOOLS)))
                if part.count * needed <= MAX_READS:
                    parts.extend(part.cut(needed))
                    continue
                source = open_source(part)
                self._find_spooled(source, part, needed, depth)
            if found is None:
                found = source
            else:
                _add(found, source)
        assert found is not None  # there is always a first part
        found.tally.bytes_read += wasted_bytes
        return found

    def _fits(self, source: KeySource, part: HashRange, hashes: KeyHash) -> bool:
        """Finds the winners of a part, if there is the memory for it."""
        try:
            KeyComparison(source, part, hashes, self._memory_bytes).run()
        except MemoryExceededError:
            return False
        return True

    def _find_spooled(self, source: KeySource, part: HashRange, count: int, depth: int) -> None:
        """Reads the part once, divides it into so many parts on disk, and adds the findings of each to the source."""
        if depth == MAX_DEPTH:
            raise EngineError(
                f"keys that take more than {format_bytes(self._memory_bytes)} share {MAX_DEPTH} hashes",
                hint="try again, since hashes differ from round to round, or with a higher --task-memory",
            )
        picks, spreads = KeyHash(self.seed, 2 * depth), KeyHash(self.seed, 2 * depth + 1)
        with tempfile.TemporaryDirectory(prefix="lithify-") as folder:
            spools = [Spool(Path(folder) / str(index)) for index in range(count)]
            for portion in Portion:
                rows = of_part(source.keys(portion), part, picks)
                for index, block in blocks_by_range(rows, count, spreads, self._memory_bytes):
                    spools[index].add(block, portion)
            for spool in spools:
                opened = partial(_opened, spool, source)
                _add(source, self._find(opened, HashRange(0, 1), depth + 1))
                spool.clear()

    @property
    def _memory_bytes(self) -> int:
        return min(max(self.memory_bytes, LEAST_MEMORY_BYTES), MOST_MEMORY_BYTES)


def _opened(spool: Spool, source: KeySource, _: HashRange) -> KeySource:
    return SpooledKeys(spool, source.schema, source.starts)


def _add(found: KeySource, more: KeySource) -> None:
    found.tally.add(more.tally)
    found.dead.update(more.dead)


def latest_offsets(
    access: FileAccess,
    segments: tuple[Segment, ...],
    rules: SurvivorRules,
    finder: WinnerFinder,
) -> BitMap64:
    """The offsets of the records of one log that survive `rules`; `segments` in offset order."""
    if not segments:
        return BitMap64()
    log = LogScan(rules, (), segments)
    _, found = finder.find(lambda part: KeyScan(access, log, settles=part.index == 0), HashRange(0, 1))
    offsets = BitMap64()
    for index, dead in found.by_segment().items():
        position = 0
        for table in read_segment(access, segments[index], columns=[OFFSET]):
            live = ~dead.flags(position, position + table.num_rows)
            offsets |= BitMap64(table.column(OFFSET).to_numpy()[live].astype(np.uint64))
            position += table.num_rows
    return offsets
