"""The recipes of docs that change topics: every command that they show does what it says."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing

import duckdb
import pytest

from support.pages.text import programs

pytestmark = pytest.mark.usefixtures("plain_rounds")


def blocks(page, language):
    """The code of a page of `docs`, or of the section of it that `PAGE#ANCHOR` names."""
    name, _, anchor = page.partition("#")
    return programs(f"docs/{name}", anchor, language)


def commands(page):
    """Command lines as (arguments, stdin); what is piped in are the lines that `printf` prints."""
    for line in "".join(blocks(page, "sh")).splitlines():
        before, _, command = line.rpartition(" | ")
        stdin = "\n".join(shlex.split(before)[2:])
        yield shlex.split(command)[1:], stdin


def code_of(arguments):
    """What destroys is refused without `--yes`."""
    return 2 if arguments[0] in ("delete-records", "truncate", "undo") and "--yes" not in arguments else 0


def outputs(lithify, page):
    """Runs the page; yields arguments and outcome."""
    for arguments, stdin in commands(page):
        yield arguments, lithify(*arguments, stdin=stdin, code=code_of(arguments))


def alike(text):
    """Sizes differ, and widths with them."""
    return re.sub(r"[\d.]+ (B|KiB)|\d\.\d\d", "SIZE", " ".join(text.split()))


def test_a_compacted_view(lithify):
    page = "understand/side-by-side.md"
    states = []
    for arguments, outcome in outputs(lithify, page):
        if arguments[0] == "consume":
            states.append([record["offset"] for record in outcome.lines])
            shown = lithify("status", "states").out.splitlines()[:4]
    assert states == [[0, 1, 2, 3], [1, 2, 3]]
    (drawn,) = blocks(page, "")
    assert alike("\n".join(shown)) == alike(drawn)
    assert lithify("status", "states", "--json").json["logs"][0]["view"] is None


def test_a_changed_topic(lithify):
    lithify("topic", "create", "orders", "--partitions", 4, "--config", "versions.kept=30")
    for version in range(2, 12):  # as many as it takes to be at the version that the page shows
        line = json.dumps({"partition": version % 4, "key": "k", "value": "v"})
        lithify("produce", "orders", stdin=line)
    page = "operate/settings-and-streams.md#change-a-topic-that-has-data"
    told = [outcome.err for _, outcome in outputs(lithify, page)]
    assert told[0] == blocks(page, "")[0]
    assert "  partitions  4 → 8\n" in told[1]


def test_a_cut_log(lithify):
    lithify("topic", "create", "orders")
    for key, value in (
        ("o-1", "placed"),
        ("o-2", "placed"),
        ("o-1", "paid"),
        ("o-3", "placed"),
        ("o-2", None),
        ("o-1", "sent"),
    ):
        lithify("produce", "orders", stdin=json.dumps({"key": key, "value": value}))
    pages = ("retention-and-cuts.md", "plan-and-undo.md#undo-a-round", "versions-and-space.md#the-space-sweep")
    for arguments, stdin in (command for page in pages for command in commands(f"operate/{page}")):
        if arguments[0] == "versions":  # what comes before has cut where a round will have been
            lithify("compact", "orders")
            kept = lithify("versions", "orders", "--json").lines[0]["version"]
        if arguments[0] == "verify":  # on Spark, elsewhere
            continue
        real = [str(kept) if argument == "3" else argument for argument in arguments]
        lithify(*real, stdin=stdin, code=code_of(arguments))
    assert [record["offset"] for record in lithify("consume", "orders").lines] == [2, 3, 4]
    assert lithify("topic", "info", "orders", "--json").json["config"]["versions.kept"] == "3"


def test_a_deleted_value_is_in_no_file(lithify):
    """The page says how to find it in the files, and what leaves them when."""
    page = "understand/deletes.md"
    (program,) = blocks(page, "python")
    program = program.replace("lithify-warehouse", str(lithify.warehouse))
    found, names = {}, {}
    for arguments, stdin in commands(page):
        if arguments[0] == "verify":  # on Spark, elsewhere
            continue
        outcome = lithify(*arguments, stdin=stdin)
        if arguments[0] in ("table", "consume", "versions"):
            assert outcome.out == "", arguments
        if arguments[0] != "topic":
            exec(program, names)
            found.setdefault(arguments[0], len(names["found"]))
    assert found == {"produce": 1, "compact": 2, "sweep": 0, "versions": 0, "table": 0, "consume": 0}
    assert lithify("consume", "customers").lines[0]["value"] == "Ada, Berlin"


def test_feeding_a_cache_an_index_and_a_warehouse(lithify, monkeypatch, tmp_path):
    page = "data-out/feed-a-cache-an-index-a-warehouse.md"
    monkeypatch.chdir(tmp_path)
    for arguments, outcome in outputs(lithify, page):
        if arguments[0] == "hydrate":
            assert "filled from 5 records" in outcome.err
    cached, attached = blocks(page, "sql")
    with closing(sqlite3.connect("cache.db")) as cache:
        assert cache.execute(cached).fetchall() == [("Paris",)]
    attach, counted = attached.strip().split("\n")
    with duckdb.connect() as warehouse:
        warehouse.execute(attach)
        assert warehouse.execute(counted).fetchall() == [("Austin", 1), ("Paris", 1)]

    class Index(dict):
        put, delete = dict.__setitem__, dict.pop

    (program,) = blocks(page, "python")
    names = {}
    exec(program.replace('"./lithify-warehouse"', repr(str(lithify.warehouse))), names)
    index = Index()
    for _ in range(2):
        names["feed"](index)
    assert index == {"1": '{"name":"Ada","city":"Paris"}', "3": '{"name":"Edsger","city":"Austin"}'}
