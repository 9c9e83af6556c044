"""A compacted view beside its backlog, as the command line shows it (C20, C33 to C36)."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.usefixtures("plain_rounds")


def produce(lithify, topic, *records):
    """Records as (offset, timestamp, key, value); one append."""
    names = ("offset", "timestamp", "key", "value")
    lines = (json.dumps({"partition": 0, **dict(zip(names, record, strict=True))}) for record in records)
    lithify("produce", topic, "--keep-offsets", stdin="\n".join(lines))


@pytest.fixture
def states(lithify):
    """The view has c=1 a=2; b was deleted, and d came after the round."""
    lithify("topic", "create", "states", "--like", "pulsar")
    produce(lithify, "states", (0, 1, "a", "1"), (1, 1, "b", "1"), (2, 1, "c", "1"))
    produce(lithify, "states", (3, 1, "a", "2"), (4, 1, "b", ""))
    lithify("compact", "states")
    produce(lithify, "states", (5, 1, "d", "1"))
    return lithify


def read(lithify, *more):
    return [(r["offset"], r["key"], r["value"]) for r in lithify("consume", "states", *more).lines]


VIEW = [(2, "c", "1"), (3, "a", "2")]
TAIL = [(5, "d", "1")]


def test_compacted_reads_go_from_the_view_to_the_backlog(states):
    """C33."""
    assert [offset for offset, _, _ in read(states)] == [0, 1, 2, 3, 4, 5]
    assert read(states, "--compacted") == VIEW + TAIL
    assert read(states, "--compacted", "--from", 3) == VIEW[1:] + TAIL
    assert read(states, "--compacted", "--from", 0) == VIEW + TAIL
    assert states.error("consume", "states", "--compacted", "--from", 7) == (
        "states-0: offset 7 is outside of [0, 6] (start at earliest, at latest, or in between)"
    )
    assert [(r["offset"]) for r in states("table", "states").lines] == [2, 3, 5]


def test_status_and_info_show_the_view(states, masked):
    text = masked(states("status", "states").out)
    assert text.splitlines()[:4] == [
        "states  version 5",
        "stored SIZE of data files: SIZE live, SIZE compacted view",
        "PARTITION  START  CLEAN BELOW  HORIZON  END  RECORDS  SIZE  DIRTY",
        "        0  0  5  6  6  6  SIZE  " + text.splitlines()[3][-4:],
    ]
    run_id = states("history", "states", "--json").json["run_id"]
    noted = f"compacted view: 2 records, SIZE, read from 0; last round TIME (SPENT ago), run {run_id}"
    assert noted in " ".join(text.split())
    found = states("status", "states", "--json").json
    (log,) = found["logs"]
    assert (found["cleanup_policy"], found["compaction_mode"]) == ("compact", "side-by-side")
    assert log["view"] == {"records": 2, "bytes": log["clean_bytes"], "first_offset": 2, "start_offset": 0}
    info = masked(states("topic", "info", "states").out)
    _, after = info.split("\n  compacted view  2 records, SIZE\n")
    stored = "  stored  SIZE of data files: SIZE live, SIZE compacted view\n"
    assert after.startswith(f"{stored}  policy  compact, side-by-side\n")
    as_json = states("topic", "info", "states", "--json").json
    assert (as_json["view_records"], as_json["view_bytes"]) == (2, log["clean_bytes"])


def test_kept_versions_have_their_views(states, masked):
    states("compact", "states")
    assert masked(states("versions", "states").out) == (
        "VERSION  RECORDS  SIZE  VIEW  CLOSED AT  BY  FILES REMAIN UNTIL\n"
        "      5  6  SIZE  2  TIMEZ  compact  TIMEZ\n"
        "      3  5  SIZE  -  TIMEZ  compact  TIMEZ\n"
    )
    assert read(states, "--compacted", "--version", 5) == VIEW + TAIL
    assert states("undo", "states", "--yes").err.startswith("states: the round ")
    assert read(states, "--compacted") == VIEW + TAIL


def test_a_view_without_records_reads_as_nothing(lithify):
    """C36: nothing hangs when every key was deleted."""
    lithify("topic", "create", "states", "--like", "pulsar")
    produce(lithify, "states", (0, 1, "a", "1"))
    produce(lithify, "states", (1, 1, "a", ""))
    lithify("compact", "states")
    assert read(lithify, "--compacted") == []
    assert lithify("status", "states", "--json").json["logs"][0]["view"] == {
        "records": 0,
        "bytes": 0,
        "first_offset": None,
        "start_offset": 0,
    }


def test_retention_that_waits_for_a_round_is_reported(lithify, masked):
    """C33: the backlog is not trimmed before the view has it."""
    settings = ("compaction.mode=side-by-side", "cleanup.policy=compact,delete", "retention.ms=1d")
    lithify("topic", "create", "states", *(part for setting in settings for part in ("--config", setting)))
    produce(lithify, "states", (0, 1, "a", "1"))
    told = " ".join(masked(lithify("status", "states").out).split())
    assert "SIZE past retention remain until a round has copied them to the compacted view" in told
    assert lithify("status", "states", "--json").json["logs"][0]["retention_waiting_bytes"] > 0
    assert masked(lithify("retain", "states").err) == (
        "states: SIZE past retention remain until a round has copied them to the compacted view, still version 2\n"
    )
    lithify("compact", "states")
    lithify("retain", "states")
    (log,) = lithify("status", "states", "--json").json["logs"]
    assert (log["log_start_offset"], log["retention_waiting_bytes"]) == (1, 0)
    assert (read(lithify), read(lithify, "--compacted")) == ([], [(0, "a", "1")])


def test_tombstones_that_cannot_go_yet_are_reported(lithify):
    """C20: a record that the tombstone beats waits above the horizon."""
    settings = ("compaction.strategy=timestamp", "delete.retention.ms=0", "min.compaction.lag.bytes=2KiB")
    lithify("topic", "create", "states", *(part for setting in settings for part in ("--config", setting)))
    produce(lithify, "states", (0, 9, "a", None))
    produce(lithify, "states", (1, 5, "a", "late"))
    done = lithify("compact", "states")
    assert "1 expired tombstone held by records above the horizon or by chunks" in " ".join(done.out.split())
    (log,) = lithify("history", "states", "--json").json["logs"]
    assert (log["tombstones_held"], log["tombstones_out"]) == (1, 1)
    (log,) = lithify("status", "states", "--json").json["logs"]
    assert (log["tombstones"], log["tombstones_held_below"], log["next_tombstone_expiry_ms"]) == (1, 1, None)
    told = " ".join(lithify("status", "states").out.split())
    assert "1 tombstone, expired ones below 1 remain while records that they beat are above the horizon" in told
    assert not log["due"]


@pytest.mark.usefixtures("wide")
def test_a_round_says_what_went_whole_and_what_had_no_version(lithify, masked):
    """C11, C24."""
    settings = ("cleanup.policy=compact,delete", "retention.ms=1d")
    lithify("topic", "create", "mixed", *(part for setting in settings for part in ("--config", setting)))
    produce(lithify, "mixed", (0, 1, "a", "1"))
    produce(lithify, "mixed", (1, 1, "b", "1"), (2, 4_000_000_000_000 // 1000, "a", "1"))
    planned = lithify("compact", "mixed", "--plan", "--now", "@86400002")
    assert masked(planned.out).splitlines()[0] == (
        "PARTITION  CLEAN BELOW  RECORDS  DROPPED  SEGMENTS  READS  WRITES  HORIZON"
    )
    done = lithify("compact", "mixed", "--now", "@86400002", "--json").json["logs"][0]
    assert (done["log_start_offset"], done["log_start_offset_after"], done["values_expire_before_ms"]) == (0, 1, 2)
    assert done["losers"]["past_retention"] == 2
    header = ("--config", "compaction.strategy=header", "--config", "compaction.strategy.header=v")
    lithify("topic", "create", "versioned", *header)
    line = json.dumps({"key": "a", "value": "1", "headers": [["v", "AAAAAAAAAAE="]]})
    encoded = line.replace('"a"', '"YQ=="').replace('"1"', '"MQ=="')
    lithify("produce", "versioned", "--encoding", "base64", stdin=encoded)
    lithify("produce", "versioned", stdin='{"key":"a","value":null}')
    printed = " ".join(lithify("compact", "versioned").out.split())
    assert "1 superseded; 1 tombstone without an order superseded" in printed
