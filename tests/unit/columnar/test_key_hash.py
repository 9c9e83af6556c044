"""The hash of keys: nothing that can be chosen makes keys share it (C38)."""

from __future__ import annotations

from hashlib import blake2b, shake_256
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.columnar import key_hash
from lithify.columnar.key_hash import LONG_BYTES, KeyHash, ranges_of
from support.generated.chosen_keys import CHOSEN, duckdb_hashes, of_one_duckdb_hash, of_one_hash_behind_any_prefix

LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, LONG_BYTES - 1, LONG_BYTES, LONG_BYTES + 1, 3 * LONG_BYTES]


def by_hand(key: bytes, seed: str, number: int = 0) -> int:
    """One key's hash, as the module's picture has it."""
    factors = LONG_BYTES // 4 + 2
    secret = shake_256(f"{seed} {number}".encode()).digest(8 * factors + 64)
    if len(key) > LONG_BYTES:
        found = int.from_bytes(blake2b(key, digest_size=8, key=secret[8 * factors :]).digest(), "big")
    else:
        added, of_length, *of_words = (int.from_bytes(secret[8 * i : 8 * i + 8], "little") for i in range(factors))
        words = [key[i : i + 4] for i in range(0, len(key) // 4 * 4, 4)]
        if len(key) % 4:
            words += [key[-4:]] if words else [bytes([byte]) for byte in key]
        products = (int.from_bytes(word, "little") * factor for word, factor in zip(words, of_words, strict=False))
        found = (added + of_length * len(key) + sum(products)) % 2**64
    return found ^ (found >> 32)


def hashed(keys: list[bytes], seed: str = "seed", number: int = 0) -> list[int]:
    return KeyHash(seed, number)(pa.array(keys, pa.binary())).tolist()


@given(st.lists(st.binary(max_size=20), max_size=40), st.integers(1, 9), st.integers(0, 3))
def test_every_key_has_its_own_hash_wherever_it_stands(keys, block, number):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_hash, "_BLOCK", block)
        assert hashed(keys, number=number) == [by_hand(key, "seed", number) for key in keys]


def test_keys_of_every_length():
    random = Random(1)
    keys = [random.randbytes(length) for length in LENGTHS * 3]
    assert hashed(keys) == [by_hand(key, "seed") for key in keys]
    for length in LENGTHS:
        alone = [random.randbytes(length) for _ in range(3)]
        assert hashed(alone) == [by_hand(key, "seed") for key in alone]


@given(st.lists(st.binary(max_size=9), max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_keys_that_are_a_part_of_a_longer_array(keys, start, count):
    array = pa.array(keys, pa.binary()).slice(start, count)
    assert KeyHash("s")(array).tolist() == [by_hand(key, "s") for key in keys[start : start + count]]


def test_another_seed_or_number_is_another_hash():
    keys = [b"%d" % i for i in range(1000)]
    others = [hashed(keys, "seed"), hashed(keys, "Seed"), hashed(keys, "seed", 1), hashed(keys, "seed", 2)]
    assert len({number for hashes in others for number in hashes}) == 4 * len(keys)


def test_the_keys_chosen_against_duckdb_share_its_hash():
    """Else the tests with them would show nothing."""
    assert len(duckdb_hashes(of_one_duckdb_hash(1000))) == 1
    keys = of_one_hash_behind_any_prefix(1000)
    assert len(set(keys)) == 1000
    for prefix in (b"", b"8 bytes.", b"12345678"):
        assert len(duckdb_hashes([prefix + key for key in keys])) == 1


@pytest.mark.long
@pytest.mark.parametrize("chosen", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("seed", ["one", "another", "a third"])
def test_chosen_keys_spread_like_any(chosen, seed):
    """C38: over the ranges, and over the upper bits that put keys in order."""
    count = 50_000
    keys = chosen(count)
    assert len(set(keys)) == count
    hashes = KeyHash(seed)(pa.array(keys, pa.binary()))
    assert count - len(np.unique(hashes)) <= 5
    assert count - len(np.unique(hashes >> np.uint64(24))) <= 10
    for ranges in (2, 3, 8, 64):
        sizes = np.bincount(ranges_of(hashes, ranges), minlength=ranges)
        assert sizes.min() > 0.8 * count / ranges
        assert sizes.max() < 1.2 * count / ranges
