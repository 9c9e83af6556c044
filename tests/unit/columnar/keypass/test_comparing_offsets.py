"""The latest of each key within little memory: held, put together, held again (C9, C38)."""

from __future__ import annotations

from random import Random
from threading import active_count, current_thread
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass.key_comparison import KeyComparison
from lithify.columnar.keypass.key_source import MemoryExceededError
from lithify.columnar.keypass.keys import key_table
from lithify.columnar.keypass.ranks import EXPIRED_BIT, PAST_BIT, TOMBSTONE_BIT
from lithify.errors import DamagedError
from support.engines.kernel import goes_and_stays
from support.engines.keys_in_memory import KeysInMemory

ALL = HashRange(0, 1)


def plain_hashes(keys: pa.Array) -> np.ndarray:
    return np.array([crc32(key) << 32 for key in keys.to_pylist()], np.uint64)


def compared(source: KeysInMemory, memory_bytes: int, part: HashRange = ALL) -> tuple[list[int], list[int]]:
    """The clean records that go and the dirty ones that stay, each numbered from 0."""
    results = KeyComparison(source, part, plain_hashes, memory_bytes).run()
    return goes_and_stays(results.dead, source.starts)


def by_hand(clean: list[bytes], dirty: list[bytes]) -> tuple[list[int], list[int]]:
    last = {key: i for i, key in enumerate(dirty)}
    return [i for i, key in enumerate(clean) if key in last], sorted(last.values())


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("memory_bytes", [30_000, 100_000, 2**30])
@pytest.mark.parametrize("looked_up", [1, 250, 2**20])
@pytest.mark.parametrize("ahead", [False, True])
def test_little_memory_finds_the_same(monkeypatch, shuffled, memory_bytes, looked_up, ahead):
    monkeypatch.setattr(key_table, "_BLOCK", looked_up)
    random = Random(2)
    clean = [b"%d" % i for i in random.sample(range(3000), 1500)]
    dirty = [b"%d" % random.randrange(300) for _ in range(5000)]
    source = KeysInMemory(clean=clean, dirty=dirty, batch=100, shuffled=shuffled)
    results = KeyComparison(source, ALL, plain_hashes, memory_bytes, ahead=ahead).run()
    assert goes_and_stays(results.dead, source.starts) == by_hand(clean, dirty)
    assert (results.tally.compared, results.tally.winners) == (5000, 300)
    assert results.tally.clean_superseded == len(set(clean) & set(dirty))


def test_too_many_keys_are_said_to_be():
    with pytest.raises(MemoryExceededError):
        compared(KeysInMemory(dirty=[b"%d" % i for i in range(5000)], batch=100), 15_000)


def test_keys_are_read_and_hashed_on_other_threads_where_they_are_ahead():
    threads = {False: set(), True: set()}

    class Watched(KeysInMemory):
        def keys(self, *args):
            for batch in super().keys(*args):
                reads.add(current_thread())
                yield batch

    for ahead, hashed in threads.items():
        reads = set()

        def hashes(keys, hashed=hashed):
            hashed.add(current_thread())
            return plain_hashes(keys)

        keys = [b"%d" % (i % 700) for i in range(2000)]
        KeyComparison(Watched(clean=keys[:600], dirty=keys, batch=100), ALL, hashes, 2**20, ahead=ahead).run()
        assert (current_thread() in reads, current_thread() in hashed) == (not ahead, not ahead)
        assert reads.isdisjoint(hashed) == ahead
    assert active_count() == 1


def test_what_ends_a_comparison_early_ends_its_threads():
    """An error of the source, as of a damaged segment, comes out as it is."""

    class Damaged(KeysInMemory):
        def keys(self, *args):
            yield from super().keys(*args)
            raise DamagedError("damaged")

    keys = [b"%d" % i for i in range(5000)]
    with pytest.raises(DamagedError, match="damaged"):
        KeyComparison(Damaged(dirty=keys, batch=100), ALL, plain_hashes, 2**20, ahead=True).run()
    with pytest.raises(MemoryExceededError):
        KeyComparison(KeysInMemory(dirty=keys, batch=100), ALL, plain_hashes, 15_000, ahead=True).run()
    assert active_count() == 1


def test_parts_share_the_keys_out():
    keys = [b"%d" % (i % 700) for i in range(2000)]
    parts = [compared(KeysInMemory(clean=keys[:600], dirty=keys), 2**20, HashRange(index, 3)) for index in range(3)]
    assert sorted(i for lost, _ in parts for i in lost) == list(range(600))
    assert sorted(i for _, stays in parts for i in stays) == by_hand([], keys)[1]
    assert all(lost for lost, _ in parts)


def test_clean_records_go_by_themselves_too():
    """C18, C24: what no dirty record beats may be past its time all the same."""
    bits = {b"expired": TOMBSTONE_BIT | EXPIRED_BIT, b"young": TOMBSTONE_BIT, b"past": PAST_BIT, b"beaten": PAST_BIT}
    clean = [(key, None, bits.get(key, 0)) for key in (b"expired", b"young", b"past", b"beaten", b"stays")]
    source = KeysInMemory(clean=clean, dirty=[b"beaten"])
    results = KeyComparison(source, ALL, plain_hashes, 2**20).run()
    assert goes_and_stays(results.dead, source.starts) == ([0, 2, 3], [0])
    tally = results.tally
    assert (tally.clean_expired, tally.clean_past, tally.clean_superseded) == (1, 1, 1)


def test_clean_records_are_judged_without_a_dirty_one():
    assert compared(KeysInMemory(clean=[b"a", (b"b", None, PAST_BIT)]), 2**20) == ([1], [])
