"""What decides between two records of a key (C10, C11)."""

from __future__ import annotations

import pytest

from lithify.compaction.record_order import NO_ORDER, header_order, order_of
from lithify.model.record import Record
from support.builders import some_rules

RECORD = Record(b"k", b"v", -7, (("v", (5).to_bytes(8, "big")),), 0, 3)


def test_by_offset_all_records_have_the_same_order():
    """C9: so that the offset decides."""
    other = Record(b"k", None, 99, (), 0, 4)
    assert order_of(RECORD, some_rules(9)) == order_of(other, some_rules(9))


def test_by_timestamp_the_timestamp_is_the_order():
    """C10: also one before 1970."""
    assert order_of(RECORD, some_rules(9, strategy="timestamp")) == -7


def test_by_header_the_header_of_that_name_is_the_order():
    """C10."""
    assert order_of(RECORD, some_rules(9, strategy="header", order_header="v")) == 5
    assert order_of(RECORD, some_rules(9, strategy="header", order_header="w")) == NO_ORDER


@pytest.mark.parametrize("number", [0, 1, -1, 2**63 - 1, -(2**63), 256])
def test_an_order_is_signed_and_big_endian(number):
    """C10: any of them is above none at all."""
    found = header_order((("v", number.to_bytes(8, "big", signed=True)),), "v")
    assert found == number > NO_ORDER


@pytest.mark.parametrize("value", [None, b"", b"\x01", b"\x01" * 7, b"\x01" * 9, b"12345678 "])
def test_what_is_not_eight_bytes_long_is_no_order(value):
    """C10."""
    assert header_order((("v", value),), "v") == NO_ORDER


def test_the_last_header_of_the_name_counts():
    """C10: also where it is no order and an earlier one is; other names do not matter."""
    one, two = ((n).to_bytes(8, "big") for n in (1, 2))
    assert header_order((("v", two), ("v", one), ("w", two)), "v") == 1
    assert header_order((("v", two), ("v", b"")), "v") == NO_ORDER
    assert header_order((("V", two), ("", one)), "v") == NO_ORDER
    assert header_order((("", one),), "") == 1
