"""`consume --group` and `group …`: whole outputs, the JSON contract, exit codes (C58, C59)."""

from __future__ import annotations

import json
import re

import pytest

import lithify as package
from lithify.api.wiring.scopes import scope_of, source_of


@pytest.fixture
def orders(lithify):
    """A topic of two partitions with three records each, and a group that has read four."""
    lithify("topic", "create", "orders", "--partitions", 2)
    lines = [json.dumps({"partition": n % 2, "key": f"k{n}", "value": f"{n}", "timestamp": 1_000}) for n in range(6)]
    lithify("produce", "orders", stdin="\n".join(lines))
    return lithify


@pytest.fixture
def lost(orders):
    """The same after a user has dropped the namespace that has the warehouse's identity, and that identity."""
    orders("consume", "orders", "--group", "g", "--max", 4)
    warehouse = package.open(str(orders.warehouse)).warehouse
    identity, catalog = scope_of(warehouse).name, source_of(warehouse).existing()
    catalog.drop_namespace("lithify_warehouse")
    return orders, catalog, identity


def values(outcome):
    return [record["value"] for record in outcome.lines]


def test_it_continues_after_what_was_printed(orders):
    assert values(orders("consume", "orders", "--group", "g", "--max", 4)) == ["0", "2", "4", "1"]
    assert values(orders("consume", "orders", "--group", "g", "--max", 0)) == []
    assert values(orders("consume", "orders", "--group", "g")) == ["3", "5"]
    assert values(orders("consume", "orders", "--group", "g")) == []
    assert values(orders("consume", "orders", "--group", "late", "--from", "latest")) == []
    assert values(orders("consume", "orders", "--group", "whole", "--from", "@1000")) == ["0", "2", "4", "1", "3", "5"]


def test_what_cannot_be_printed_is_not_committed(orders):
    orders("produce", "orders", "--encoding", "base64", stdin='{"partition":0,"key":"aw==","value":"/w=="}\n')
    failed = orders("consume", "orders", "--group", "g", code=1)
    assert "--encoding base64" in failed.err
    assert [lag["position"] for lag in orders("group", "describe", "g", "--json").lines] == [3, 0]
    assert len(orders("consume", "orders", "--group", "g", "--encoding", "base64").lines) == 4


@pytest.mark.parametrize("flags", [("--partition", 0), ("--version", 1)], ids=str)
def test_a_group_decides_what_it_reads(orders, flags):
    assert "share its partitions" in orders("consume", "orders", "--group", "g", *flags, code=2).err


def test_describe(orders):
    orders("consume", "orders", "--group", "g", "--max", 4)
    shown = orders("group", "describe", "g").out.splitlines()
    assert re.split(r"  +", shown[0]) == [
        "TOPIC",
        "PARTITION",
        "POSITION",
        "LOG END",
        "LAG",
        "LAG TIME",
        "COMMITTED AT",
    ]
    assert [line.split()[:5] for line in shown[1:]] == [["orders", "0", "3", "3", "0"], ["orders", "1", "1", "3", "2"]]
    first, second = orders("group", "describe", "g", "orders", "--json").lines
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT.*Z", first.pop("committed_at"))
    assert first == {
        "group": "g",
        "topic": "orders",
        "partition": 0,
        "position": 3,
        "log_end_offset": 3,
        "lag": 0,
        "lag_ms": 0,
        "records_left": 0,
        "holds_tombstones": False,
        "error": None,
        "error_code": None,
    }
    assert (second["lag"], second["records_left"], second["lag_ms"] > 10**12) == (2, 2, True)
    (group,) = orders("group", "list", "--json").lines
    assert (group["group"], group["topics"], group["partitions"]) == ("g", ["orders"], 2)


def test_describe_says_where_a_group_cannot_continue(orders):
    orders("consume", "orders", "--group", "g")
    orders("truncate", "orders", "--partition", 0, "--to", 1, "--yes")
    found = orders("group", "describe", "g", "--json", code=1)
    assert [lag["lag"] for lag in found.lines] == [None, 0]
    assert "orders-0: the log was truncated below offset 3" in found.err
    assert found.err.count("continue there with `lithify group reset g orders --to earliest`") == 1
    failed = orders("consume", "orders", "--group", "g", code=1)
    assert "lithify group reset g orders --to earliest" in failed.err


def test_a_group_that_holds_tombstones_is_shown(lithify):
    """C61: in `group describe`, `status` and the report of a round, until it has read them."""
    held = ("tombstone.hold.groups=g", "tombstone.hold.max.ms=-1", "delete.retention.ms=0")
    lithify("topic", "create", "orders", *(word for setting in held for word in ("--config", setting)))
    lithify("produce", "orders", stdin='{"key":"a","value":"1"}\n{"key":"b","value":null}\n')
    lithify("consume", "orders", "--group", "g", "--max", 1)
    (log,) = lithify("compact", "orders", "--json").json["logs"]
    assert (log["tombstones_out"], log["tombstones_read_below"], log["missed_by"]) == (1, 1, [])
    assert [lag["holds_tombstones"] for lag in lithify("group", "describe", "g", "--json").lines] == [True]
    shown = lithify("group", "describe", "g").out.splitlines()
    assert [line.split()[-1] for line in shown] == ["HOLDS", "tombstones"]
    (hold,) = lithify("status", "orders", "--json").json["logs"][0]["holds"]
    assert (hold["group"], hold["position"], hold["tombstones"], hold["until_ms"]) == ("g", 1, 1, None)
    shown = " ".join(lithify("status", "orders").out.split())
    assert "1 tombstone at most is held by group g, which is at 1, since" in shown
    lithify("consume", "orders", "--group", "g")
    assert [lag["holds_tombstones"] for lag in lithify("group", "describe", "g", "--json").lines] == [False]
    (log,) = lithify("compact", "orders", "--plan", "--json").json["logs"]
    assert (log["tombstones_expire_below"], log["held_by"]) == (2, [])


def test_a_round_without_a_database_of_groups_holds_and_says_so(lithify, monkeypatch):
    """C61."""
    lithify("topic", "create", "orders", "--config", "tombstone.hold.groups=g", "--config", "delete.retention.ms=0")
    lithify("produce", "orders", stdin='{"key":"b","value":null}\n')
    monkeypatch.setattr("lithify.api.wiring.database_of", lambda _: None)
    report = lithify("compact", "orders", "--json").json
    assert "groups need an SQL database" in report["groups_error"] and report["logs"][0]["tombstones_out"] == 1
    assert "count as having read nothing" in " ".join(lithify("status", "orders").out.split())


def test_reset_shows_first_and_moves_with_yes(orders):
    orders("consume", "orders", "--group", "g")
    shown = orders("group", "reset", "g", "orders", "--to", "earliest", code=2)
    assert [line.split() for line in shown.out.splitlines()[1:]] == [["0", "3", "0"], ["1", "3", "0"]]
    assert "no position was moved (--yes moves 2 committed positions)" in shown.err
    assert values(orders("consume", "orders", "--group", "g")) == []
    report = orders("group", "reset", "g", "orders", "--partition", 1, "--to", 1, "--yes", "--json").json
    assert report == {"group": "g", "topic": "orders", "positions": [{"partition": 1, "before": 3, "after": 1}]}
    assert values(orders("consume", "orders", "--group", "g")) == ["3", "5"]
    assert "outside of [0, 3]" in orders("group", "reset", "g", "orders", "--partition", 0, "--to", 4, code=2).err


@pytest.mark.parametrize("verb", [("describe", "bil"), ("reset", "bil", "orders", "--to", "latest"), ("delete", "bil")])
def test_an_unknown_group_gets_the_nearest_name(orders, verb):
    assert "there is no group bil (no group has committed a position so far)" in orders("group", *verb, code=2).err
    orders("consume", "orders", "--group", "bill")
    assert "there is no group bil (did you mean bill?)" in orders("group", *verb, code=2).err


def test_delete_shows_first_and_deletes_with_yes(orders):
    orders("consume", "orders", "--group", "g")
    assert "deletes 2 committed positions, irreversibly" in orders("group", "delete", "g", code=2).err
    assert orders("group", "delete", "g", "--yes").err == "group g: deleted 2 committed positions\n"
    assert orders("group", "list", "--json").out == ""
    assert orders("group", "list").err == "no groups yet (`lithify consume TOPIC --group G` makes one)\n"


def test_a_topic_of_many_can_be_damaged_or_deleted(orders):
    for name in ("gone", "good"):
        orders("topic", "create", name)
        orders("produce", name, stdin='{"key":"k","value":"1"}\n')
        orders("consume", name, "--group", "g")
    orders("consume", "orders", "--group", "g", "--max", 4)
    orders("topic", "delete", "gone", "--yes")
    (path,) = orders.warehouse.glob("default/orders-*/data/partition=1/*.parquet")
    path.write_bytes(b"damage")
    found = orders("group", "describe", "g", "--json", code=1)
    rows = [(lag["topic"], lag["position"], lag["log_end_offset"], lag["error"] is None) for lag in found.lines]
    assert rows == [("gone", 1, None, False), ("good", 1, 1, True), ("orders", 3, 3, True), ("orders", 1, 3, False)]
    assert path.name in found.err
    for path in orders.warehouse.glob("default/orders-*/metadata/*.avro"):
        path.write_bytes(b"damage")
    found = orders("group", "describe", "g", "--json", code=1)
    rows = [(lag["topic"], lag["position"], lag["log_end_offset"], lag["error"] is None) for lag in found.lines]
    assert rows[2:] == [("orders", 3, None, False), ("orders", 1, None, False)]
    assert "delete the position with `lithify group delete g gone`" in found.err
    assert ".avro" in found.err and "reset" not in found.err
    assert "deletes 1 committed position" in orders("group", "delete", "g", "gone", code=2).err
    orders("group", "delete", "g", "gone", "--yes")
    assert [group["topics"] for group in orders("group", "list", "--json").lines] == [["good", "orders"]]
    assert "has no committed position in gone" in orders("group", "delete", "g", "gone", "--yes", code=2).err


def test_a_topic_without_positions(orders):
    orders("topic", "create", "other")
    orders("consume", "orders", "--group", "g")
    (lag,) = orders("group", "describe", "g", "other", "--json").lines
    assert (lag["position"], lag["records_left"]) == (None, 0)
    assert "ordres" in orders("group", "describe", "g", "ordres", code=2).err


@pytest.mark.parametrize("name", ["", "a/b", "x" * 300, "'; drop table lithify_positions; --", "ä"])
@pytest.mark.parametrize("verb", [("describe",), ("delete", "--yes")], ids=str)
def test_what_cannot_be_a_group_is_said(orders, verb, name):
    assert "is not a group: it must be 1 to 249" in orders("group", verb[0], name, *verb[1:], code=2).err


def test_a_catalog_without_a_database_needs_a_url(orders, tmp_path, monkeypatch):
    monkeypatch.setattr("lithify.api.wiring.database_of", lambda _: None)
    refused = orders("consume", "orders", "--group", "g", code=2)
    assert "groups need an SQL database" in refused.err and "--coordination-url" in refused.err
    url = ("--coordination-url", f"sqlite:///{tmp_path}/groups.db")
    assert len(orders("consume", "orders", "--group", "g", *url).lines) == 6
    assert [group["group"] for group in orders("group", "list", "--json", *url).lines] == ["g"]


def test_a_group_that_a_topic_waits_for_is_described_before_it_reads(lithify):
    lithify("topic", "create", "orders", "--config", "tombstone.hold.groups=billing")
    lithify("produce", "orders", stdin='{"key":"a","value":"1"}\n')
    (lag,) = lithify("group", "describe", "billing", "--json").lines
    assert (lag["position"], lag["records_left"], lag["holds_tombstones"]) == (None, 1, False)
    assert lithify.error("group", "describe", "..").startswith("there is no group .. (")
    assert "there is no group biling" in lithify.error("group", "describe", "biling")


@pytest.mark.parametrize("lost", ["*.metadata.json", "*.avro"])
@pytest.mark.parametrize("has_read", [True, False])
def test_one_topic_that_cannot_be_read_hides_no_other_c50(orders, lost, has_read):
    orders("topic", "create", "bad", "--config", "tombstone.hold.groups=g")
    orders("produce", "bad", stdin='{"key":"k","value":"1"}\n')
    if has_read:
        orders("consume", "bad", "--group", "g")
    orders("consume", "orders", "--group", "g")
    for path in orders.warehouse.glob(f"default/bad-*/metadata/{lost}"):
        path.unlink()
    found = orders("group", "describe", "g", "--json", code=int(has_read))
    rows = {(lag["topic"], lag["partition"]): lag["error"] is None for lag in found.lines}
    assert rows["orders", 0] and rows["orders", 1]
    if has_read:
        assert rows["bad", 0] is False
    named = orders("group", "describe", "g", "bad", "--json", code=1)
    assert [(lag["topic"], lag["partition"], lag["error"] is None) for lag in named.lines] == [("bad", 0, False)]


OF_A_GROUP = [
    ("describe", "g"),
    ("describe", "g", "orders"),
    ("reset", "g", "orders", "--to", "earliest"),
    ("reset", "g", "orders", "--to", "earliest", "--yes"),
    ("delete", "g"),
    ("delete", "g", "--yes"),
    ("delete", "g", "orders", "--yes"),
]


@pytest.mark.parametrize("since", ["nothing", "a new identity", "the group is named", "the group reads another topic"])
def test_every_verb_says_that_the_identity_is_lost_and_how_to_give_it_back_c73(lost, since):
    lithify, catalog, identity = lost
    refused = OF_A_GROUP
    if since == "a new identity":
        lithify("consume", "orders", "--group", "other")
    if since == "the group is named":
        lithify("topic", "alter", "orders", "--config", "tombstone.hold.groups=g")
    if since == "the group reads another topic":
        lithify("topic", "create", "clicks")
        lithify("produce", "clicks", stdin='{"key":"a","value":"1"}\n')
        lithify("consume", "clicks", "--group", "g")
        refused = [arguments for arguments in OF_A_GROUP if "orders" in arguments]
    now = scope_of(package.open(str(lithify.warehouse)).warehouse).name
    for arguments in refused:
        said = lithify.error("group", *arguments)
        assert f"group g has no position in orders of warehouse {now}" in said, arguments
        assert identity in said and "lithify.warehouse-id" in said and "`A lost identity`" in said, arguments
    catalog.create_namespace_if_not_exists("lithify_warehouse")
    catalog.update_namespace_properties("lithify_warehouse", updates={"lithify.warehouse-id": identity})
    assert [lag["position"] for lag in lithify("group", "describe", "g", "--json").lines] == [3, 1], "nothing was done"


def test_a_group_that_never_was_is_unknown_also_where_the_identity_is_lost_c73(lost):
    lithify, *_ = lost
    assert "there is no group h" in lithify.error("group", "describe", "h")
