"""`lithify throttle` (C40)."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def orders(lithify):
    lithify("topic", "create", "orders")
    return lithify


def stored(lithify):
    """The document that rounds look at."""
    (path,) = lithify.warehouse.rglob("rates.json")
    return json.loads(path.read_text())


def test_rates_are_stored_for_the_rounds_under_way(orders):
    said = orders("throttle", "orders", "--read-rate", "20MB/s", "--write-rate", "4096")
    assert said.out == ""
    assert said.err == "orders: within 10 s running rounds read at most 19.1 MiB/s, write at most 4.00 KiB/s\n"
    document = stored(orders)
    assert document.pop("id") and document.pop("checksum")
    assert document == {"read_rate_bytes": 20_000_000, "write_rate_bytes": 4096}


def test_a_rate_that_is_not_given_is_no_limit(orders):
    said = orders("throttle", "orders", "--read-rate", "1MiB/s")
    assert said.err == "orders: within 10 s running rounds read at most 1.00 MiB/s, write without limit\n"


def test_every_document_is_another_one(orders):
    first = orders("throttle", "orders", "--unlimited", "--json").json
    second = orders("throttle", "orders", "--unlimited", "--json").json
    assert first.pop("id") != second.pop("id")
    assert first == second == {"topic": "orders", "read_rate_bytes": None, "write_rate_bytes": None}


def test_wrong_use_stores_nothing(orders):
    assert orders.error("throttle", "orders") == (
        "give --read-rate, --write-rate or --unlimited (see `lithify throttle --help`)"
    )
    assert orders.error("throttle", "orders", "--unlimited", "--read-rate", "1MB/s") == (
        "--unlimited goes without --read-rate and --write-rate (see `lithify throttle --help`)"
    )
    for rate in ("0", "-5", "fast", "10 parsecs"):
        assert orders.error("throttle", "orders", "--read-rate", rate).startswith("read_rate: ")
    assert "nowhere" in orders.error("throttle", "nowhere", "--unlimited")
    assert list(orders.warehouse.rglob("rates.json")) == []


def test_without_a_topic_it_is_for_the_cleaners(orders):
    said = orders("throttle", "--write-rate", "1MiB/s")
    assert said.err == "within 10 s rounds of running cleaners read without limit, write at most 1.00 MiB/s\n"
    assert (orders.warehouse / ".lithify" / "rates.json").is_file()
    assert orders("throttle", "--unlimited", "--json").json["topic"] is None
