"""Keys are found by themselves, however their hashes collide (C12)."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.columnar.keypass.keys import key_bytes, key_table
from lithify.columnar.keypass.keys.key_table import KeyTable

KEYS = st.lists(st.binary(max_size=3) | st.sampled_from([b"\x00\x00", b"\xff" * 40]), max_size=60)
OF_ONE_SIZE = st.lists(st.binary(min_size=2, max_size=2), max_size=60)


def found(there: list[bytes], wanted: list[bytes], hashed) -> list[int]:
    there_hashes, wanted_hashes = (np.array([hashed(key) for key in keys], np.uint32) for keys in (there, wanted))
    table = KeyTable(pa.array(there, pa.binary()), there_hashes)
    return table.find(pa.array(wanted, pa.binary()), wanted_hashes).tolist()


def by_hand(there: list[bytes], wanted: list[bytes]) -> list[int]:
    numbers = {key: number for number, key in enumerate(there)}
    return [numbers.get(key, -1) for key in wanted]


@given(KEYS | OF_ONE_SIZE, KEYS | OF_ONE_SIZE, st.integers(1, 5), st.sampled_from([0, 6, 29]))
def test_keys_are_found_whatever_their_hashes(keys, others, distinct, shift):
    there = list(dict.fromkeys(keys))
    wanted = [*others, *keys]
    assert found(there, wanted, lambda key: crc32(key) % distinct << shift) == by_hand(there, wanted)


@given(KEYS, KEYS, st.integers(1, 7))
def test_keys_are_looked_at_a_part_at_a_time(keys, others, looked_at):
    there = list(dict.fromkeys(keys))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_table, "_BLOCK", looked_at)
        assert found(there, [*others, *keys], crc32) == by_hand(there, [*others, *keys])


def test_many_keys_are_told_from_as_many_others():
    there, others = [b"%d" % n for n in range(5000)], [b"-%d" % n for n in range(5000)]
    assert found(there, [*others, *there], crc32) == [-1] * 5000 + list(range(5000))


def test_a_long_key_that_many_short_ones_meet_is_not_gathered_for_each():
    """C38: 3 GiB of keys, which Arrow refuses to gather."""
    there, wanted = [b"l" * 2**20, b"other"], [b"short"] * 3000 + [b"other"]
    assert found(there, wanted, lambda _: 7) == by_hand(there, wanted)


def test_keys_of_one_size_are_told_from_others(monkeypatch):
    monkeypatch.setattr(key_bytes, "GATHERED_BYTES", 10)
    there, wanted = [b"%04d" % n for n in range(50)], [b"%d" % n for n in range(2000)]
    assert found(there, wanted, lambda key: crc32(key) % 3) == by_hand(there, wanted)
    assert found(wanted, there, lambda key: crc32(key) % 3) == by_hand(wanted, there)
