"""Entries of a few kilobytes that become the most that is read, or would become more: memory stays bounded."""

from __future__ import annotations

from lithify.pulsar.format.entry import BATCH_LIMIT
from support.processes.bounded_child import in_bounded_child
from support.pulsar.bombs import LARGE, compact_all, read_all

REFUSED = {"zeros": "damaged", "starts": "damaged", "too many messages": "damaged"}
FINE = {"many placeholders": "1", "one large value": "1", "long metadata": "1"}


def test_columns_of_a_bomb_take_memory_in_proportion_to_the_limit_of_a_payload():
    found = in_bounded_child(read_all, more_bytes=16 * LARGE)
    assert found == {**REFUSED, **FINE, "many messages": str(BATCH_LIMIT)}


def test_the_reference_takes_memory_in_proportion_to_the_limit_of_a_payload():
    assert in_bounded_child(compact_all, more_bytes=16 * LARGE) == {**REFUSED, **FINE}
