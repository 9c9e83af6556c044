"""Rendezvous hashing: all gateways choose the same, and few keys move."""

from __future__ import annotations

from collections import Counter

from lithify.kafka_server.groups.ranking import Gateway, heaviest

GATEWAYS = [Gateway(f"host-{number}", 9092) for number in range(5)]
KEYS = [f"group g{number}" for number in range(2_000)]


def test_the_order_of_gateways_does_not_matter() -> None:
    assert all(heaviest(key, GATEWAYS) == heaviest(key, reversed(GATEWAYS)) for key in KEYS[:100])


def test_keys_are_spread() -> None:
    counts = Counter(heaviest(key, GATEWAYS) for key in KEYS)
    assert all(300 < counts[gateway] < 500 for gateway in GATEWAYS)


def test_only_the_keys_of_a_gateway_that_goes_move() -> None:
    for key in KEYS:
        before = heaviest(key, GATEWAYS)
        if before != GATEWAYS[0]:
            assert heaviest(key, GATEWAYS[1:]) == before


def test_node_ids_leave_room_for_those_of_coordinators() -> None:
    ids = {gateway.node_id for gateway in GATEWAYS}
    assert len(ids) == len(GATEWAYS)
    assert all(0 <= number < 2**30 for number in ids)
