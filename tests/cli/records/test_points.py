"""`lithify table --at` and `consume --to` (C69)."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def orders(lithify, plain_rounds):
    """Offsets 0 and 1 in a kept version, compacted up to 2; then 2 and 3."""
    lithify("topic", "create", "orders")
    for number, value in enumerate("abcd"):
        line = {"key": "k" if number < 3 else "l", "value": value, "timestamp": 1_000 * number}
        lithify("produce", "orders", stdin=json.dumps(line) + "\n")
        if number == 1:
            lithify("compact", "orders")
    return lithify


def values(outcome):
    return [record["value"] for record in outcome.lines]


def test_the_table_as_it_was_at_an_offset_or_a_time(orders):
    assert [values(orders("table", "orders", "--at", at)) for at in range(5)] == [[], ["a"], ["b"], ["c"], ["c", "d"]]
    assert values(orders("table", "orders", "--at", "@1000")) == ["a"]
    assert values(orders("table", "orders", "--at", "@3000")) == ["c"]
    assert values(orders("table", "orders", "--at", "3", "--partition", "0")) == ["c"]


def test_records_up_to_a_point_are_those_that_counted_there(orders):
    assert values(orders("consume", "orders")) == ["b", "c", "d"]
    assert values(orders("consume", "orders", "--to", "1")) == ["a"]
    assert values(orders("consume", "orders", "--to", "@2500", "--from", "1")) == ["b", "c"]
    assert values(orders("consume", "orders", "--to", "4", "--max", "1")) == ["b"]


def test_what_no_version_covers_is_refused_with_the_nearest_that_is(orders):
    orders("sweep", "orders", "--yes")
    assert orders.error("table", "orders", "--at", "5") == (
        "orders-0: offset 5 cannot be read as it was: the log has offsets [0, 4] (use offset 4, the nearest one that "
        "can be read)"
    )


def test_options_that_do_not_go_together(orders):
    assert "cannot be combined with --version" in orders.error("table", "orders", "--at", "1", "--version", "2")
    assert "--to cannot be combined with" in orders.error("consume", "orders", "--to", "1", "--follow")
    lithify = orders
    lithify("topic", "create", "wide", "--partitions", "2")
    assert "offset 1 belongs to one log" in lithify.error("table", "wide", "--at", "1")
    assert "is not" in lithify.error("table", "orders", "--at", "soon")
