"""Which number of a header decides between two records of a key (C10); `test_survivors` has the strategies."""

from __future__ import annotations

import pytest

from lithify.rules.compaction.survivor_rules import NO_ORDER, header_order


def eight(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


@pytest.mark.parametrize("number", [0, 1, -1, 2**63 - 1, -(2**63), 256])
def test_an_order_is_signed_and_big_endian(number):
    """C10: any of them is above none at all."""
    assert header_order((("v", eight(number)),), "v") == number > NO_ORDER


@pytest.mark.parametrize("value", [None, b"", b"\x01", b"\x01" * 7, b"\x01" * 9, b"12345678 "])
def test_what_is_not_eight_bytes_long_is_no_order(value):
    """C10: also where an earlier header of the name is one."""
    assert header_order((("v", eight(1)), ("v", value)), "v") == NO_ORDER


def test_the_last_header_of_the_name_counts_and_none_of_another():
    """C10."""
    assert header_order((("v", eight(2)), ("v", eight(1)), ("w", eight(2))), "v") == 1
    assert header_order((("V", eight(2)), ("", eight(1))), "v") == NO_ORDER
    assert header_order((("", eight(1)),), "") == 1
