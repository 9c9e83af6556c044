"""`lithify status` without a topic: the catalog at a glance, the worst first; and `--watch`."""

from __future__ import annotations

import json
import subprocess

import pytest

from lithify.model.failure import LogFailure
from lithify.reports.overview import CatalogOverview, Standing, TopicOverview
from support.processes.programs import PROGRAM
from support.processes.terminals import on_a_terminal

STUCK = LogFailure(8, 0, 1_000, 0, "s3://bucket/part-1: the file is missing", quarantined=True)


def a_line(timestamp=None, partition=0):
    return json.dumps({"partition": partition, "timestamp": timestamp, "key": "k", "value": "v"}) + "\n"


@pytest.fixture
def catalog(lithify, failing):
    """One topic of each kind, but for those that cannot be read."""
    for name, *config in (
        ("clean",),
        ("due",),
        ("kept", "min.cleanable.dirty.ratio=1"),
        ("late", "max.compaction.lag.ms=1h"),
        ("stuck",),
    ):
        lithify("topic", "create", name, "--partitions", 2, *(part for c in config for part in ("--config", c)))
        if name not in ("clean", "stuck"):
            lithify("produce", name, stdin=a_line(timestamp=1 if name == "late" else None))
    failing("stuck", {1: STUCK})
    return lithify


def test_a_warehouse_that_is_not_there_is_an_error(lithify):
    assert "there is no warehouse yet" in lithify.error("status", code=1)
    assert lithify("status", "--json", code=1).out == ""


def test_without_topics_it_says_how_to_make_one(lithify):
    lithify("topic", "create", "t")
    lithify("topic", "delete", "t", "--yes")
    shown = lithify("status")
    assert (shown.out, shown.err) == ("", f"no topics yet in {lithify.warehouse} (`lithify topic create` makes one)\n")
    assert lithify("status", "--json").out == ""


def test_every_topic_is_a_line_the_worst_first(catalog, masked):
    shown = catalog("status", "--now", "2026-02-01")
    lines = masked(shown.out).splitlines()
    assert lines[0].split() == ["TOPIC", "STATE", "PARTITIONS", "RECORDS", "SIZE", "DIRTY", "WHY"]
    assert [line.split()[:4] for line in lines[1:] if line[0] != " "] == [
        ["stuck", "QUARANTINED", "2", "0"],
        ["late", "OVERDUE", "2", "1"],
        ["due", "DUE", "2", "1"],
        ["kept", "waiting", "2", "1"],
        ["clean", "clean", "2", "0"],
    ]
    text = " ".join(shown.out.split())
    assert "0.00 partition 1: failed 8 times:" in text
    assert "partition 0: dirty ratio 1.00 > 0.5" in text
    assert " h overdue " in text
    assert max(map(len, shown.out.splitlines())) <= 80
    assert shown.err == (
        "5 topics: 1 quarantined, 1 overdue, 1 due, 1 waiting, 1 clean, as of 2026-02-01T00:00:00.000Z\n"
    )


def test_as_json_every_topic_is_an_object(catalog):
    topics = catalog("status", "--json").lines
    assert [topic["state"] for topic in topics] == ["quarantined", "overdue", "due", "waiting", "clean"]
    stuck, late, *_ = topics
    assert stuck == {
        "topic": "stuck",
        "state": "quarantined",
        "partition": 1,
        "why": "nothing dirty",
        "overdue_ms": 0,
        "due_at_ms": None,
        "dirty_ratio": 0.0,
        "failures": 8,
        "error": "s3://bucket/part-1: the file is missing",
        "error_code": None,
        "logs": 2,
        "logs_in_state": 1,
        "records": 0,
        "bytes": 0,
    }
    assert late["overdue_ms"] > 0


def test_a_topic_that_cannot_be_read_comes_first_and_the_others_are_shown(catalog):
    for metadata in catalog.warehouse.glob("default/clean*/metadata/*.json"):
        metadata.write_text("{")
    shown = catalog("status", code=1)
    assert shown.out.splitlines()[1].startswith("clean  UNREADABLE")
    assert "clean: the table's metadata cannot be read" in " ".join(shown.out.split())
    assert shown.err.startswith("5 topics: 1 unreadable, 1 quarantined, ")
    first, second, *_ = catalog("status", "--json", code=1).lines
    assert (first["topic"], first["state"], first["logs"]) == ("clean", "unreadable", None)
    assert second["topic"] == "stuck"


def many(number, monkeypatch):
    topics = [TopicOverview(f"due{n}", Standing.DUE, 0, "dirty", logs=1, records=1, bytes=1) for n in range(number - 7)]
    topics += [TopicOverview(f"t{n}", Standing.CLEAN, 0, "clean", logs=1, records=1, bytes=1) for n in range(7)]
    found = CatalogOverview(tuple(topics), 0)
    monkeypatch.setattr("lithify.service.look.overview.StatusWatch.overview", lambda _watch, **_more: found)


def test_the_worst_are_shown_and_the_others_counted(lithify, monkeypatch):
    lithify("topic", "create", "t")
    many(58, monkeypatch)
    shown = lithify("status")
    assert len(shown.out.splitlines()) == 51
    assert shown.err == "and 8 more: 1 due, 7 clean (`--all` shows them)\n58 topics: 51 due, 7 clean\n"
    shown = lithify("status", "--all")
    assert len(shown.out.splitlines()) == 59
    assert shown.err == "58 topics: 51 due, 7 clean\n"
    assert len(lithify("status", "--json").lines) == 58
    many(50, monkeypatch)
    assert lithify("status").err == "50 topics: 43 due, 7 clean\n"


def test_flags_that_mean_nothing_are_refused(lithify):
    assert lithify.error("status", "--interval", "5s").startswith("--interval requires --watch")
    assert lithify.error("status", "t", "--all").startswith("--all cannot be combined with a topic")
    assert "the duration must be above zero" in lithify.error("status", "--watch", "--interval", "0s")


@pytest.fixture
def looks(monkeypatch):
    """Ends a watch after some looks, as Ctrl-C does, and does something before each of the others."""

    def between(*steps):
        waiting = list(steps)

        def pause(interval_ms):
            waited.append(interval_ms)
            if not waiting:
                raise KeyboardInterrupt
            waiting.pop(0)()

        waited = []
        monkeypatch.setattr("lithify.cli.terminal.watch.pause", pause)
        return waited

    return between


def test_in_a_pipe_every_look_is_printed_anew_with_its_time(catalog, looks, masked):
    waited = looks(lambda: catalog("produce", "clean", stdin=a_line()))
    shown = catalog("status", "--watch", code=130)
    assert waited == [2_000, 2_000]
    blocks = masked(shown.out).split("\n\n")
    assert [block.splitlines()[0] for block in blocks[:2]] == ["TIME", "TIME"]
    assert ["clean  clean" in block for block in blocks] == [True, False, False]
    assert shown.err.splitlines()[0] == "5 topics: 1 quarantined, 1 overdue, 1 due, 1 waiting, 1 clean"
    assert shown.err.splitlines()[-1] == "5 topics: 1 quarantined, 1 overdue, 2 due, 1 waiting"


def test_as_json_every_look_is_an_object(catalog, looks):
    looks(lambda: None)
    one, two = catalog("status", "--watch", "--interval", "1ms", "--json", code=130).lines
    assert list(one) == ["now_ms", "now_given", "counts", "topics", "cleaners", "cleaners_error", "cleaner_rates"]
    assert one["counts"] == {"quarantined": 1, "overdue": 1, "due": 1, "waiting": 1, "clean": 1}
    assert [topic["topic"] for topic in two["topics"]] == ["stuck", "late", "due", "kept", "clean"]
    looks(lambda: None)
    for found in catalog("status", "due", "--watch", "--json", code=130).lines:
        assert (found["topic"], len(found["logs"])) == ("due", 2)


def test_a_look_that_fails_is_reported_and_the_next_one_is_tried(catalog, looks):
    steps = (
        lambda: catalog("topic", "delete", "due", "--yes"),
        lambda: catalog("topic", "create", "due"),
    )
    looks(*steps)
    shown = catalog("status", "due", "--watch", code=130)
    assert shown.out.count("due  version") == 2
    assert "Traceback" not in shown.err
    (said,) = (line for line in shown.err.splitlines() if line.startswith("error["))
    assert "due" in said
    looks(*steps)
    first, failed, last = catalog("status", "due", "--watch", "--json", code=130).lines
    assert (first["topic"], list(failed), last["topic"]) == ("due", ["error", "error_code"], "due")


def test_a_topic_that_is_not_there_is_refused_before_the_first_look(lithify):
    assert "nope" in lithify.error("status", "nope", "--watch")


def test_a_reader_that_has_seen_enough_ends_it(catalog):
    command = [*PROGRAM, "status", "--watch", "--interval", "10ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None and watching.stderr is not None
        try:
            assert watching.stdout.readline()
            watching.stdout.close()
            assert watching.wait(30) == 0
            assert "Traceback" not in watching.stderr.read()
        finally:
            watching.kill()


def test_on_a_terminal_it_draws_in_place_and_ends_on_ctrl_c(catalog):
    """On a screen of its own, from its top for every look, and what was seen last stays when it ends."""
    with on_a_terminal("status", "--watch", "--interval", "50ms") as terminal:
        terminal.wait_for(b"5 topics: ", times=3)
        assert terminal.interrupt() == 130
    drawn = terminal.drawn
    opened, closed = drawn.index(b"\x1b[?1049h"), drawn.index(b"\x1b[?1049l")
    inside, after = drawn[opened:closed], drawn[closed:]
    assert inside.count(b"\x1b[H") >= 3
    assert b"\x1b[?25h" in drawn  # the cursor is shown again
    assert (b"stuck" in inside, b"stuck" in after) == (True, True)
    assert b"Ctrl-C to end" in inside
    assert b"Traceback" not in drawn


def test_on_a_terminal_a_look_that_fails_is_reported_above_what_was_seen_before(catalog):
    with on_a_terminal("status", "due", "--watch", "--interval", "50ms") as terminal:
        terminal.wait_for(b"version 2", times=2)
        catalog("topic", "delete", "due", "--yes")
        terminal.wait_for(b"error[")
        terminal.wait_for(b"Ctrl-C", times=terminal.drawn.count(b"Ctrl-C") + 2)
        assert terminal.interrupt() == 130
    last = terminal.drawn[terminal.drawn.rindex(b"\x1b[H") :]
    assert last.index(b"error[") < last.index(b"version 2")
    assert b"Traceback" not in terminal.drawn
