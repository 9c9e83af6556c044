"""A record, its size and when it is a tombstone (C1, C12, C17)."""

from __future__ import annotations

import pytest

from lithify.model.record import Record, is_tombstone


@pytest.mark.parametrize(
    ("size", "empty_is_tombstone", "expected"),
    [(None, False, True), (None, True, True), (0, False, False), (0, True, True), (1, True, False)],
)
def test_what_deletes_a_key(size, empty_is_tombstone, expected):
    """C17: a null value always, an empty one where the topic says so."""
    assert is_tombstone(size, empty_is_tombstone=empty_is_tombstone) is expected


def test_an_empty_key_and_a_null_key_are_not_the_same():
    """C12."""
    assert Record(b"", b"v") != Record(None, b"v")


def test_a_record_counts_key_value_and_headers():
    assert Record(b"key", b"value", headers=(("é", b"12"), ("h", None))).size_bytes == 3 + 5 + 2 + 2 + 1
    assert Record(None, None).size_bytes == 0
