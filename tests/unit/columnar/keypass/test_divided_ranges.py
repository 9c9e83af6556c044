"""Ranges that do not fit into memory: what is left of them, and how often their keys are read (C4, C12, C30)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.columnar.key_hash import HashRange, KeyHash
from lithify.columnar.keypass.held_rows import Rows
from lithify.columnar.keypass.key_comparison import FULL_AGAIN, KeyComparison
from lithify.columnar.keypass.key_source import KeySource, MemoryExceededError
from lithify.columnar.keypass.parted_rows import SPARE
from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.rules.compaction.key_pass_shape import MAX_READS, KeyPassShape
from support.engines.kernel import goes_and_stays
from support.engines.keys_in_memory import KeysInMemory

pytestmark = pytest.mark.long


class SmallComparison(KeyComparison):
    """Memory is full when there are more keys than `most`, or clean rows besides with `later`."""

    most: int
    later: bool

    def _batches(self, portion: Portion, wanted: pa.Array | None = None) -> Iterator[Rows]:
        keys: set[bytes] = set()
        for rows in super()._batches(portion, wanted):
            keys.update(rows.keys.to_pylist())
            if len(keys) > self.most and portion is (Portion.CLEAN if self.later else Portion.DIRTY):
                raise MemoryExceededError
            yield rows


@dataclass(frozen=True)
class Small:
    most: int
    later: bool

    def __call__(self, source: KeySource, part: HashRange, hashes: KeyHash, memory_bytes: int) -> SmallComparison:
        comparison = SmallComparison(source, part, hashes, memory_bytes)
        comparison.most, comparison.later = self.most, self.later
        return comparison


class Counted(KeysInMemory):
    """`read` gets the number of records of each batch that is read."""

    def __init__(self, clean: list[bytes], dirty: list[bytes], read: list[int]) -> None:
        super().__init__(clean=clean, dirty=dirty, batch=3)
        self._read = read

    def keys(self, portion: Portion, wanted: pa.Array | None = None) -> Iterator[pa.RecordBatch]:
        for batch in super().keys(portion, wanted):
            self._read.append(batch.num_rows)
            yield batch


def logs() -> st.SearchStrategy[list[int]]:
    """Numbers of keys: many of few keys and many of their own, in any order, so that memory is full early or late."""
    runs = st.tuples(st.integers(0, 60), st.integers(1, 60), st.booleans())
    return st.lists(runs, min_size=1, max_size=5).map(
        lambda runs: [first + (i if alone else 0) for first, count, alone in runs for i in range(count)]
    )


@dataclass(frozen=True)
class Little:
    """Memory is full as it is for millions of keys: rows take what they take, and are reduced to the latest."""

    memory_bytes: int
    ahead: bool

    def __call__(self, source: KeySource, part: HashRange, hashes: KeyHash, memory_bytes: int) -> KeyComparison:
        return KeyComparison(source, part, hashes, self.memory_bytes, ahead=self.ahead)


def compares() -> st.SearchStrategy[Small | Little]:
    small = st.builds(Small, st.integers(1, 40), st.booleans())
    return small | st.builds(Little, st.integers(500, 8000), st.booleans())


@given(logs(), st.integers(0, 60), st.integers(1, MAX_READS), compares())
@settings(max_examples=150, deadline=None)
def test_keys_are_read_as_often_as_planned_at_most(
    numbers: list[int], clean: int, ranges: int, compare: Small | Little
) -> None:
    dirty, old = [b"%d" % n for n in numbers], [b"%d" % n for n in range(clean)]
    read: list[int] = []
    finder = WinnerFinder(2**24, "seed", compare)
    parts = [finder.find(lambda _: Counted(old, dirty, read), HashRange(i, ranges)) for i in range(ranges)]
    planned = KeyPassShape(ranges, shuffled=False, may_exceed=True).most_reads
    assert sum(read) <= planned * (len(dirty) + len(old))
    found = [goes_and_stays(dead, Counted(old, dirty, read).starts) for _, dead in parts]
    last = {key: i for i, key in enumerate(dirty)}
    assert sorted(i for goes, _ in found for i in goes) == [i for i, key in enumerate(old) if key in last]
    assert sorted(i for _, stays in found for i in stays) == sorted(last.values())
    assert sum(tally.compared for tally, _ in parts) == len(dirty)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("memory_bytes", "reads"), [(200_000, 1), (60_000, 2), (42_000, 3)])
def test_a_range_that_is_too_large_goes_on_with_some_of_its_keys(ahead: bool, memory_bytes: int, reads: int) -> None:
    """No part is read in vain."""
    dirty, old = [b"%05d" % n for n in range(3000)], [b"%05d" % n for n in range(0, 5000, 50)]
    read: list[int] = []
    finder = WinnerFinder(2**24, "seed", Little(memory_bytes, ahead))
    tally, dead = finder.find(lambda _: Counted(old, dirty, read), HashRange(0, 1))
    assert sum(read) == reads * (len(dirty) + len(old))
    assert (tally.compared, tally.winners, tally.clean_superseded) == (3000, 3000, 60)
    goes, stays = goes_and_stays(dead, Counted(old, dirty, []).starts)
    assert (goes, stays) == (list(range(60)), list(range(3000)))


@pytest.mark.parametrize("size", [16, 100, 200])
@pytest.mark.parametrize("ahead", [False, True])
def test_keys_of_any_size_that_fit_are_read_once(ahead: bool, size: int) -> None:
    """Winners fill more than `FULL_AGAIN` of the memory, when only few others are still to come."""
    random, count = Random(1), 3000
    dirty = [b"%0*d" % (size, random.randrange(count)) for _ in range(4 * count)]
    read: list[int] = []
    memory_bytes = int(count * (size + 12) * (1 + SPARE) / 0.8)
    finder = WinnerFinder(2**24, "seed", Little(memory_bytes, ahead))
    tally, dead = finder.find(lambda _: Counted([], dirty, read), HashRange(0, 1))
    last = {key: n for n, key in enumerate(dirty)}
    assert memory_bytes * FULL_AGAIN < len(last) * (size + 12) * (1 + SPARE)
    assert (sum(read), tally.compared, tally.winners) == (len(dirty), len(dirty), len(last))
    assert goes_and_stays(dead, Counted([], dirty, []).starts) == ([], sorted(last.values()))
