"""`lithify warehouse info|upgrade` (C66)."""

from __future__ import annotations

import json

import pytest


def plain(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def earlier(lithify):
    """A warehouse with a topic, as an earlier Lithify made it."""
    lithify("topic", "create", "orders")
    (lithify.warehouse / ".lithify" / "format.json").unlink()
    return lithify


def test_a_new_warehouse_is_of_the_newest_format(lithify):
    lithify("stream", "create", "eu")
    lithify("topic", "create", "eu/orders")
    assert plain(lithify("warehouse", "info").out) == [
        str(lithify.warehouse),
        "format 4",
        "features compacted-logs, masks",
        "topics 1",
        "of format 3 1",
    ]
    said = lithify("warehouse", "upgrade").err
    assert said == f"{lithify.warehouse}: it already has all features of this version\n"


def test_an_earlier_one_stays_as_it_is_until_it_is_upgraded(earlier):
    earlier("topic", "create", "clicks")
    before = earlier("warehouse", "info", "--json").json
    assert before == {
        "warehouse": str(earlier.warehouse),
        "format": 3,
        "features": [],
        "newest_format": 4,
        "lacks": ["compacted-logs", "masks"],
        "topics": 2,
        "topics_by_format": {"3": 2},
        "unreadable": {},
    }
    assert plain(earlier("warehouse", "info").out)[1:3] == [
        "format 3; an upgrade makes it 4",
        "features (none); `lithify warehouse upgrade` adds compacted-logs, masks",
    ]
    assert earlier.error("warehouse", "upgrade") == (
        f"{earlier.warehouse}: nothing was changed (--yes lets its topics have compacted-logs, masks; earlier versions "
        "of Lithify then refuse the warehouse, or the topics that get a feature)"
    )
    assert earlier("warehouse", "info", "--json").json == before
    assert earlier("warehouse", "upgrade", "--yes").err.splitlines() == [
        f"{earlier.warehouse}: upgraded from format 3 to 4",
        "  its topics may have: compacted-logs, masks",
    ]
    after = {**before, "format": 4, "features": ["compacted-logs", "masks"], "lacks": []}
    assert earlier("warehouse", "info", "--json").json == after


def test_one_with_some_features_gets_the_others_only_when_asked(lithify):
    lithify("topic", "create", "orders")
    file = lithify.warehouse / ".lithify" / "format.json"
    file.write_text(json.dumps({"version": 4, "features": ["compacted-logs"]}))
    assert "adds masks" in lithify("warehouse", "info").out
    assert "nothing was changed (--yes lets its topics have masks; " in lithify.error("warehouse", "upgrade")
    assert lithify("warehouse", "upgrade", "--yes").err.splitlines() == [
        f"{lithify.warehouse}: upgraded",
        "  its topics may have: compacted-logs, masks",
    ]


def test_an_upgrade_as_json_and_again(earlier):
    done = {
        "warehouse": str(earlier.warehouse),
        "changed": True,
        "format_before": 3,
        "format": 4,
        "features": ["compacted-logs", "masks"],
    }
    assert earlier("warehouse", "upgrade", "--yes", "--json").json == done
    assert earlier("warehouse", "upgrade", "--json").json == {**done, "changed": False, "format_before": 4}


@pytest.mark.parametrize("option", ["--warehouse", "--catalog"])
def test_an_empty_place_is_not_the_default(lithify, option):
    lithify("topic", "create", "orders")
    assert f"'{option}': it is empty" in lithify("group", "list", option, "", code=2).err


def test_where_there_is_no_warehouse_none_is_made(lithify):
    for verb in (("info",), ("upgrade", "--yes")):
        said = lithify.error("warehouse", *verb, code=1)
        assert said.startswith(f"{lithify.warehouse}: there is no warehouse yet (check the path")
    assert not lithify.warehouse.exists()


def test_a_topic_that_cannot_be_read_is_shown(earlier):
    next((earlier.warehouse / "default").glob("orders-*/metadata/*.metadata.json")).write_text("{")
    found = earlier("warehouse", "info", "--json").json
    assert (found["topics"], found["topics_by_format"], list(found["unreadable"])) == (1, {}, ["orders"])
    text = " ".join(earlier("warehouse", "info").out.split())
    assert "topics 1 unreadable orders: the table's metadata cannot be read" in text


@pytest.mark.parametrize("verb", [("topic", "list"), ("consume", "orders"), ("topic", "create", "clicks")])
def test_one_of_a_newer_lithify_is_neither_read_nor_written(earlier, verb):
    """C66"""
    file = earlier.warehouse / ".lithify" / "format.json"
    file.write_text(json.dumps({"version": 5, "features": ["compacted-logs"]}))
    files = {path: path.stat().st_mtime_ns for path in earlier.warehouse.rglob("*")}
    assert earlier.error(*verb, code=1) == (
        f"{earlier.warehouse}: the warehouse has format 5, but this version supports formats up to 4 "
        "(use a newer Lithify; nothing was changed)"
    )
    assert {path: path.stat().st_mtime_ns for path in earlier.warehouse.rglob("*")} == files
    file.write_text(json.dumps({"version": 4, "features": ["compacted-logs", "fast-logs"]}))
    assert "has the feature fast-logs, which this version does not support" in earlier.error(*verb, code=1)


@pytest.mark.parametrize("verb", [("topic", "list"), ("warehouse", "info"), ("warehouse", "upgrade", "--yes")])
@pytest.mark.parametrize("said", [{"version": 5}, {"version": 6, "features": {"masks": "read"}}])
def test_one_of_a_newer_lithify_may_say_the_rest_in_another_way(earlier, verb, said):
    """C66: nobody is told to delete what a newer Lithify has written."""
    (earlier.warehouse / ".lithify" / "format.json").write_text(json.dumps(said))
    assert earlier.error(*verb, code=1) == (
        f"{earlier.warehouse}: the warehouse has format {said['version']}, but this version supports formats up to 4 "
        "(use a newer Lithify; nothing was changed)"
    )


@pytest.mark.parametrize("verb", [("topic", "list"), ("warehouse", "info"), ("warehouse", "upgrade", "--yes")])
@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": "4", "features": []}', '{"version": 4}', '{"version": -1, "features": []}']
)
def test_a_damaged_format_is_named_with_what_helps(earlier, text, verb):
    """C48"""
    file = earlier.warehouse / ".lithify" / "format.json"
    file.write_text(text)
    said = earlier.error(*verb, code=1)
    assert str(file) in said and "or delete it" in said
    file.unlink()
    assert earlier("warehouse", "upgrade", "--yes", "--json").json["changed"]
