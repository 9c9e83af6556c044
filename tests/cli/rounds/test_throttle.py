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
    nothing = {"topic": "orders", "read_rate_bytes": None, "write_rate_bytes": None, "shared": False}
    assert first == second == nothing


def test_wrong_use_stores_nothing(orders):
    assert orders.error("throttle", "orders") == (
        "pass --read-rate, --write-rate or --unlimited (see `lithify throttle --help`)"
    )
    assert orders.error("throttle", "orders", "--unlimited", "--read-rate", "1MB/s") == (
        "--unlimited cannot be combined with --read-rate or --write-rate (see `lithify throttle --help`)"
    )
    assert "'50%' is not a rate such as 20MB/s, 500KiB/s or 1000000" in orders.error(
        "throttle", "orders", "--read-rate", "50%"
    )
    for rate in ("0", "-5", "fast", "10 parsecs"):
        assert orders.error("throttle", "orders", "--read-rate", rate).startswith("Invalid value for '--read-rate': ")
    assert "nowhere" in orders.error("throttle", "nowhere", "--unlimited")
    for given in (("orders", "--read-rate", "1MB/s"), ("--unlimited",)):
        assert orders.error("throttle", *given, "--shared") == (
            "--shared is for rates of cleaners: it cannot be combined with a topic or --unlimited (see `lithify "
            "throttle --help`)"
        )
    assert list(orders.warehouse.rglob("rates.json")) == []


def test_without_a_topic_it_is_for_the_cleaners(orders):
    said = orders("throttle", "--write-rate", "1MiB/s")
    said_of_each = "each cleaner reads without limit, writes at most 1.00 MiB/s"
    assert said.err == f"within 10 s {said_of_each}, even after a restart\n"
    assert (orders.warehouse / ".lithify" / "rates.json").is_file()
    assert f"{said_of_each} (`lithify throttle` changes it)\n" in orders("status").err
    assert orders("throttle", "--unlimited", "--json").json["topic"] is None
    assert "each cleaner" not in orders("status").err


def test_one_bound_for_all_cleaners_is_shown_until_it_is_taken_back(orders):
    assert orders("throttle", "--read-rate", "2MiB/s", "--shared").err == (
        "within 10 s all cleaners together read at most 2.00 MiB/s, write without limit, even after a restart\n"
    )
    assert "all cleaners together read at most 2.00 MiB/s, write without limit" in orders("status").err
    *_, rates = orders("status", "--json").lines
    rates.pop("id")
    assert rates == {"topic": None, "read_rate_bytes": 2 * 2**20, "write_rate_bytes": None, "shared": True}
    assert orders("throttle", "--unlimited").err == (
        "within 10 s running cleaners read and write without limit; cleaners that start later have their own rates\n"
    )
    assert "together" not in orders("status").err
