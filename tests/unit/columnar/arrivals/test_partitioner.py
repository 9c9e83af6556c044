"""Kafka's default partitioner, against the one of an independent client."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
from aiokafka.partitioner import murmur2 as murmur2_of_aiokafka
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.columnar.arrivals.partitioner import murmur2, partition_of, partitions_of
from lithify.model.record import LAST_OFFSET


def partition_of_aiokafka(key: bytes, partitions: int) -> int:
    return (murmur2_of_aiokafka(key) & 0x7FFFFFFF) % partitions


@given(st.binary(max_size=40))
def test_hash_of_one_key(key: bytes) -> None:
    assert murmur2(key) == murmur2_of_aiokafka(key)


def test_known_hashes() -> None:
    # From Kafka's own UtilsTest.
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    assert {key: np.uint32(murmur2(key)).astype(np.int32) for key in known} == known


KEYS = st.one_of(st.binary(max_size=24), st.binary(min_size=60, max_size=200))


@settings(deadline=None)
@given(st.lists(KEYS, max_size=80), st.integers(1, 50))
def test_column_of_keys(keys: list[bytes], partitions: int) -> None:
    found = partitions_of(pa.array(keys, pa.binary()), partitions)
    assert found.tolist() == [partition_of_aiokafka(key, partitions) for key in keys]
    assert found.tolist() == [partition_of(key, partitions) for key in keys]


def test_slices_are_hashed_where_they_are() -> None:
    random.seed(7)
    keys = [random.randbytes(random.randrange(30)) for _ in range(500)]
    sliced = pa.array(keys, pa.binary()).slice(123, 200)
    assert partitions_of(sliced, 7).tolist() == [partition_of_aiokafka(k, 7) for k in keys[123:323]]


def test_one_very_long_key_among_short_ones() -> None:
    keys = [b"k%d" % n for n in range(50)] + [bytes(range(256)) * 4000]
    assert partitions_of(pa.array(keys), 12).tolist() == [partition_of_aiokafka(k, 12) for k in keys]


def test_keyless_records_go_round() -> None:
    keys = pa.array([None, b"a", None, None, b"b", None], pa.binary())
    found = partitions_of(keys, 3, round_from=7).tolist()
    assert [found[i] for i in (0, 2, 3, 5)] == [1, 2, 0, 1]
    assert [found[i] for i in (1, 4)] == [partition_of_aiokafka(k, 3) for k in (b"a", b"b")]


def test_keyless_records_go_round_where_log_ends_add_up_to_more_than_64_bits() -> None:
    assert partitions_of(pa.nulls(2, pa.binary()), 2, round_from=2 * LAST_OFFSET + 1).tolist() == [1, 0]


def test_one_partition_takes_all() -> None:
    assert partitions_of(pa.array([b"a", None]), 1).tolist() == [0, 0]
