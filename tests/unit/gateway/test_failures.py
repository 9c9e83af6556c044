"""How often an address may fail: exact, forgiven with time, and in bounded memory."""

from __future__ import annotations

from lithify.gateway.access import failures
from lithify.gateway.access.failures import ADDRESSES, AT_ONCE, EACH_S, Failures


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_so_many_at_once_then_one_each_while():
    clock = Clock()
    counted = Failures(clock)
    assert [counted.too_many("10.0.0.1") for _ in range(AT_ONCE)] == [0] * AT_ONCE
    assert [counted.too_many("10.0.0.1") for _ in range(100)] == [3] * 100  # refused ones add nothing
    assert counted.too_many("10.0.0.2") == 0
    clock.now_s = EACH_S
    assert [counted.too_many("10.0.0.1") > 0 for _ in range(2)] == [False, True]
    clock.now_s = 1_000.0
    assert [counted.too_many("10.0.0.1") for _ in range(AT_ONCE)] == [0] * AT_ONCE


def test_addresses_of_one_network_of_version_six_are_one():
    counted = Failures(Clock())
    waits = [counted.too_many(f"2001:db8:0:1::{n:x}") for n in range(AT_ONCE + 1)]
    assert waits[-1] > 0 and counted.too_many("2001:db8:0:2::1") == 0


def test_a_flood_from_many_addresses_takes_no_more_memory():
    counted = Failures(Clock())
    for n in range(ADDRESSES + 500):
        counted.too_many(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}")
    assert len(counted._free_at_s) == ADDRESSES
    assert failures.ADDRESSES == 10_000
