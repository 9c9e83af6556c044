"""Which rows are the last of their key, however their hashes collide (C12)."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.columnar.keypass.keys import latest_rows as kernel
from lithify.columnar.keypass.keys.latest_rows import latest_rows

KEYS = st.lists(st.binary(max_size=3) | st.sampled_from([b"", b"\x00", b"\x00\x00", b"\xff" * 40]), max_size=60)


def last_by_hand(keys: list[bytes]) -> list[bool]:
    last = {key: row for row, key in enumerate(keys)}
    return [last[key] == row for row, key in enumerate(keys)]


def found(keys: list[bytes], hashes: list[int]) -> list[bool]:
    return list(latest_rows(pa.array(keys, pa.binary()), np.array(hashes, np.uint32)))


@given(KEYS, st.integers(1, 5))
def test_keys_are_distinguished_whatever_their_hashes(keys, distinct):
    hashes = [crc32(key) % distinct << 28 for key in keys]
    assert found(keys, hashes) == last_by_hand(keys)


@given(st.lists(st.binary(min_size=5, max_size=5), max_size=60))
def test_keys_of_one_length_as_well(keys):
    assert found(keys, [0] * len(keys)) == last_by_hand(keys)


@given(KEYS)
def test_hashes_that_differ_only_in_bits_that_are_cut_off_collide(keys):
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    assert found(keys, [numbers[key] for key in keys]) == last_by_hand(keys)


@given(KEYS, st.integers(0, 3))
def test_keys_that_keep_meeting_others_are_sorted(keys, attempts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "ATTEMPTS", attempts)
        assert found(keys, [crc32(key) % 3 << 29 for key in keys]) == last_by_hand(keys)


@given(KEYS, st.randoms())
def test_another_order_says_which_is_later(keys, random):
    order = random.sample(range(len(keys)), len(keys))
    last = {keys[row]: row for row in order}
    hashes = np.array([crc32(key) for key in keys], np.uint32)
    flags = latest_rows(pa.array(keys, pa.binary()), hashes, np.array(order, np.int64))
    assert list(flags) == [last[key] == row for row, key in enumerate(keys)]


@given(KEYS, st.data())
def test_keys_that_are_a_part_of_a_longer_array(keys, data):
    start = data.draw(st.integers(0, len(keys)))
    array = pa.array(keys, pa.binary()).slice(start)
    hashes = np.array([crc32(key) for key in keys[start:]], np.uint32)
    assert list(latest_rows(array, hashes)) == last_by_hand(keys[start:])


def test_a_long_key_that_many_short_ones_meet_is_not_gathered_for_each():
    """C38: 3 GiB of keys, which Arrow refuses to gather."""
    keys = [b"short"] * 3000 + [b"l" * 2**20]
    assert found(keys, [7] * len(keys)) == last_by_hand(keys)
