"""Subscriptions and assignments, as kafka-python writes them, and bytes that are not one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithify.kafka_server.groups.consumer_protocol import assigned, subscribed

SUBSCRIPTION = (
    b"\x00\x01" + b"\x00\x00\x00\x02" + b"\x00\x01a" + b"\x00\x02bc" + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x00"
)
ASSIGNMENT = (
    b"\x00\x00"
    + b"\x00\x00\x00\x01"
    + b"\x00\x01a"
    + b"\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x05"
    + b"\xff\xff\xff\xff"
)


def test_topics_and_partitions() -> None:
    assert subscribed(SUBSCRIPTION) == {"a", "bc"}
    assert assigned(ASSIGNMENT) == {"a": (0, 5)}


@given(st.binary(max_size=40), st.integers(0, len(ASSIGNMENT)))
def test_other_bytes_name_nothing_and_do_no_harm(data: bytes, cut: int) -> None:
    assert isinstance(subscribed(data), frozenset)
    assert isinstance(assigned(ASSIGNMENT[:cut] + data), dict)
