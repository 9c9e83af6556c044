"""The latest of each key within little memory: held, put together, held again (C9, C38)."""

from __future__ import annotations

from random import Random
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

from lithify.columnar.keypass import key_comparison
from lithify.columnar.keypass.key_comparison import KeyComparison
from lithify.columnar.keypass.key_source import MemoryExceededError
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keys.hash_range import HashRange
from lithify.columnar.keys.ranks import EXPIRED_BIT, ORDINAL_SHIFT, PAST_BIT, RANKED_KEYS, TOMBSTONE_BIT, Portion
from lithify.columnar.segment.positions import DeadRecords
from support.engines.kernel import goes_and_stays

BATCH = 100
ALL = HashRange(0, 1)


class Keys:
    """A `KeySource` over keys in memory, numbered from 0, clean ones first; `bits` are those of clean ranks."""

    schema = RANKED_KEYS

    def __init__(self, clean: list[bytes], dirty: list[bytes], bits: dict[int, int] | None = None) -> None:
        self.starts = np.array([0, len(clean), len(clean) + len(dirty)])
        self.tally = Tally()
        self.dead = DeadRecords(self.starts)
        self._rows = {Portion.CLEAN: clean, Portion.DIRTY: dirty, Portion.WAITING: []}
        self._bits = bits or {}
        self.dirty_read = 1.0

    def has(self, portion: Portion) -> bool:
        return bool(self._rows[portion])

    def keys(self, portion: Portion):
        keys = self._rows[portion]
        first = int(self.starts[1]) if portion is Portion.DIRTY else 0
        ranks = [i << ORDINAL_SHIFT | self._bits.get(i, 0) for i in range(first, first + len(keys))]
        rows = pa.record_batch([pa.array(keys, pa.binary()), pa.array(ranks, pa.int64())], schema=RANKED_KEYS)
        batches = [rows.slice(at, BATCH) for at in range(0, len(keys), BATCH)]
        yield from self.in_order(batches)

    def in_order(self, batches):
        return batches


class ShuffledKeys(Keys):
    """The same in batches that come in any order, as blocks of a shuffle do."""

    def in_order(self, batches):
        Random(1).shuffle(batches)
        return batches


def plain_hashes(keys: pa.Array) -> np.ndarray:
    return np.array([crc32(key) << 32 for key in keys.to_pylist()], np.uint64)


def compared(source: Keys, memory_bytes: int, part: HashRange = ALL) -> tuple[list[int], list[int]]:
    """The clean records that go and the dirty ones that stay, each numbered from 0."""
    KeyComparison(source, part, plain_hashes, memory_bytes).run()
    return goes_and_stays(source.dead, source.starts)


def by_hand(clean: list[bytes], dirty: list[bytes]) -> tuple[list[int], list[int]]:
    last = {key: i for i, key in enumerate(dirty)}
    return [i for i, key in enumerate(clean) if key in last], sorted(last.values())


@pytest.mark.parametrize("kind", [Keys, ShuffledKeys])
@pytest.mark.parametrize("memory_bytes", [30_000, 100_000, 2**30])
@pytest.mark.parametrize("clean_rows", [1, 250, 2**20])
def test_little_memory_finds_the_same(monkeypatch, kind, memory_bytes, clean_rows):
    monkeypatch.setattr(key_comparison, "PASSING_ROWS", clean_rows)
    random = Random(2)
    clean = [b"%d" % i for i in random.sample(range(3000), 1500)]
    dirty = [b"%d" % random.randrange(300) for _ in range(5000)]
    source = kind(clean, dirty)
    assert compared(source, memory_bytes) == by_hand(clean, dirty)
    assert (source.tally.compared, source.tally.winners) == (5000, 300)
    assert source.tally.clean_superseded == len(set(clean) & set(dirty))


def test_too_many_keys_are_said_to_be():
    with pytest.raises(MemoryExceededError):
        compared(Keys([], [b"%d" % i for i in range(5000)]), 30_000)


def test_parts_share_the_keys_out():
    keys = [b"%d" % (i % 700) for i in range(2000)]
    parts = [compared(Keys(keys[:600], keys), 2**20, HashRange(index, 3)) for index in range(3)]
    assert sorted(i for lost, _ in parts for i in lost) == list(range(600))
    assert sorted(i for _, stays in parts for i in stays) == by_hand([], keys)[1]
    assert all(lost for lost, _ in parts)


def test_clean_records_go_by_themselves_too():
    """C18, C24: what no dirty record beats may be past its time all the same."""
    bits = {0: TOMBSTONE_BIT | EXPIRED_BIT, 1: TOMBSTONE_BIT, 2: PAST_BIT, 3: PAST_BIT}
    source = Keys([b"expired", b"young", b"past", b"beaten", b"stays"], [b"beaten"], bits)
    assert compared(source, 2**20) == ([0, 2, 3], [0])
    tally = source.tally
    assert (tally.clean_expired, tally.clean_past, tally.clean_superseded) == (1, 1, 1)


def test_clean_records_are_judged_without_a_dirty_one():
    assert compared(Keys([b"a", b"b"], [], {1: PAST_BIT}), 2**20) == ([1], [])
