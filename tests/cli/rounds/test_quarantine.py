"""`lithify quarantine`: what it reports of logs that fail, and how they are released (C31)."""

from __future__ import annotations

import pytest

from lithify.model.failure import LogFailure

STUCK = LogFailure(8, 0, 1_000, 0, "s3://bucket/part-1: the file is missing", quarantined=True)
FAILED = LogFailure(1, 0, 1_000, 2**42, "no room")


@pytest.fixture
def orders(lithify, failing):
    lithify("topic", "create", "orders", "--partitions", 4)
    lithify("topic", "create", "eu/payments")
    failing("orders", {0: FAILED, 3: STUCK})
    failing("eu/payments", {0: FAILED})
    return lithify


def test_there_are_none_at_first(lithify):
    lithify("topic", "create", "orders")
    listed = lithify("quarantine", "list")
    assert (listed.out, listed.err) == ("", "0 logs quarantined, 0 failing\n")
    assert lithify("quarantine", "list", "--json").out == ""


def test_logs_of_all_topics_are_listed_the_worst_first(orders):
    listed = orders("quarantine", "list")
    lines = listed.out.splitlines()
    assert [line.split()[:3] for line in lines[:1]] == [["TOPIC", "PARTITION", "STATE"]]
    assert [line.split()[:4] for line in lines[1::2]] == [
        ["orders", "3", "QUARANTINED", "8"],
        ["eu/payments", "0", "failing", "1"],
        ["orders", "0", "failing", "1"],
    ]
    assert [line.split()[-1] in ("d", "h") for line in lines[1::2]] == [False, True, True]  # whole days have no hours
    assert lines[1].endswith("never")
    assert lines[2::2] == ["     s3://bucket/part-1: the file is missing", "     no room", "     no room"]
    assert max(map(len, lines)) <= 80
    assert listed.err == "1 log quarantined, 2 failing\n"
    first, *_ = orders("quarantine", "list", "--json").lines
    assert first == {
        "topic": "orders",
        "partition": 3,
        "quarantined": True,
        "failures": 8,
        "since_ms": 0,
        "failed_ms": 1_000,
        "error_code": None,
        "retry_ms": None,
        "error": "s3://bucket/part-1: the file is missing",
    }


def test_a_released_log_is_as_if_it_had_never_failed(orders):
    told = orders("quarantine", "release", "orders", "--partition", 3)
    assert (told.out, told.err) == ("", "orders: released 3 (failed 8 times); cleaners try again at once\n")
    assert [log["partition"] for log in orders("quarantine", "list", "--json").lines] == [0, 0]
    assert not orders("status", "orders", "--json").json["logs"][3]["quarantined"]
    report = orders("quarantine", "release", "orders", "--json").json
    assert [log["partition"] for log in report["released"]] == [0]
    assert orders("quarantine", "list").err == "0 logs quarantined, 1 failing\n"


def test_one_log_is_released_by_its_name(lithify, failing):
    name = "persistent://public/default/orders"
    lithify("topic", "create", name, "--partitions", 2)
    failing(name, {0: STUCK, 1: STUCK})
    lithify("quarantine", "release", f"{name}-partition-1")
    assert [log["partition"] for log in lithify("quarantine", "list", "--json").lines] == [0]
    said = lithify.error("quarantine", "release", f"{name}-partition-1", "--partition", 0)
    assert "is partition 1, but --partition is 0" in said


def test_a_log_that_does_not_fail_is_refused(orders):
    assert orders.error("quarantine", "release", "orders", "--partition", 1) == (
        "orders-1 is not quarantined or failing; nothing was released (the failing logs of orders are 0, 3)"
    )
    assert "orders has no partition 9" in orders.error("quarantine", "release", "orders", "--partition", 9)
    assert "nope" in orders.error("quarantine", "release", "nope")
    orders("quarantine", "release", "orders")
    assert orders.error("quarantine", "release", "orders") == (
        "orders: it has no quarantined or failing logs (list the failing logs of all topics with `lithify "
        "quarantine list`)"
    )


def test_a_topic_that_cannot_be_read_is_named_and_hides_no_other(orders):
    for metadata in orders.warehouse.glob("eu*/*/metadata/*.json"):
        metadata.write_text("{")
    listed = orders("quarantine", "list", code=1)
    assert "QUARANTINED" in listed.out
    assert "eu/payments: the table's metadata cannot be read" in listed.err
