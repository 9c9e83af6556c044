"""`lithify retain`, `delete-records` and `truncate`: what they do, say, and refuse (C24, C26)."""

from __future__ import annotations

import json

import pytest

import lithify as package
from lithify.model.topic.edit import TopicEdit, Verb

DAY_MS = 86_400_000
CUT_KEYS = [
    "partition",
    "log_start_offset",
    "log_start_offset_after",
    "first_dirty_offset",
    "first_dirty_offset_after",
    "log_end_offset",
    "log_end_offset_after",
    "segments_removed",
    "records_removed",
    "bytes_removed",
    "segments_added",
    "records_added",
]
REPORT_KEYS = [
    *("topic", "verb", "version", "changed", "logs", "now_ms", "now_given"),
    *("undone_run_id", "undone_round_ms", "groups_error"),
]


def produce(lithify, topic, *records, partition=0):
    """Records as (offset, timestamp); one append."""
    lines = (
        json.dumps({"partition": partition, "offset": offset, "timestamp": at, "key": "k", "value": "v"})
        for offset, at in records
    )
    lithify("produce", topic, "--keep-offsets", stdin="\n".join(lines))


def offsets(lithify, topic, *more):
    return [record["offset"] for record in lithify("consume", topic, *more).lines]


@pytest.fixture
def events(lithify):
    """One log of three segments: two a day apart, one of the year 2020."""
    lithify("topic", "create", "events", "--config", "cleanup.policy=delete", "--config", "retention.ms=1d")
    produce(lithify, "events", (0, 0), (1, DAY_MS))
    produce(lithify, "events", (2, 2 * DAY_MS))
    produce(lithify, "events", (3, 50 * 365 * DAY_MS))
    return lithify


def test_retain_takes_whole_segments_as_of_a_time_and_says_which(events, masked):
    """C24: past retention is older than, not as old as."""
    idle = events("retain", "events", "--now", f"@{2 * DAY_MS}")
    assert (idle.out, masked(idle.err)) == (
        "",
        "events: no segment is completely past retention, still version 4 (judged as of TIME, not of the clock)\n",
    )
    done = events("retain", "events", "--now", f"@{2 * DAY_MS + 1}")
    assert masked(done.out) == "PARTITION  START  SEGMENTS  RECORDS  BYTES\n        0  0 → 2  -1  -2  -SIZE\n"
    assert (
        masked(done.err) == "events: removed 2 records in 1 segment, version 5 (judged as of TIME, not of the clock)\n"
    )
    assert offsets(events, "events") == [2, 3]
    by_the_clock = events("retain", "events", "--json").json
    assert list(by_the_clock) == REPORT_KEYS
    (log,) = by_the_clock["logs"]
    assert list(log) == CUT_KEYS
    assert (by_the_clock["verb"], log["log_start_offset_after"], log["records_removed"]) == ("retain", 4, 2)
    assert (by_the_clock["now_given"], events("retain", "events", "--json").json["changed"]) == (False, False)


def test_retain_as_of_the_future_needs_yes(events):
    said = events.error("retain", "events", "--now", "2100-01-01")
    assert said == (
        "--now 2100-01-01T00:00:00.000Z is later than the clock, and what retention removes cannot be restored "
        "(add --yes to run it, `lithify status events --now` shows what is past retention)"
    )
    assert offsets(events, "events") == [0, 1, 2, 3]
    assert events("retain", "events", "--now", "2100-01-01", "--yes", "--json").json["now_given"]


def test_each_policy_names_the_verb_that_the_other_has(events):
    """C23."""
    assert events.error("compact", "events") == (
        "events: cleanup.policy=delete does not compact (apply its retention with `lithify retain`)"
    )
    events("topic", "create", "orders")
    assert events.error("retain", "orders") == (
        "orders: cleanup.policy=compact has no retention "
        "(compact it with `lithify compact orders`; retention needs delete in cleanup.policy, or backlog.trim.groups)"
    )


def test_the_status_of_a_topic_that_is_only_retained_has_no_rounds_in_it(events, masked):
    assert masked(events("status", "events", "--now", f"@{3 * DAY_MS}").out) == (
        "events  version 4, as of TIME\n"
        "PARTITION  START  END  RECORDS  SIZE\n"
        "        0  0  4  4  SIZE\n"
        f"     DUE: whole segments are past retention: 1, of {size_of_first(events)} bytes\n"
    )
    told = " ".join(events("status", "events", "--now", f"@{DAY_MS}").out.split())
    assert "not due: nothing is past retention; due by the clock 1970-01-03T00:00:00.001Z (in 24 h)" in told


def size_of_first(lithify):
    (first, *_) = sorted(lithify.warehouse.rglob("partition=*/*.parquet"))
    return first.stat().st_size


@pytest.fixture
def orders(lithify):
    """Two logs; the first has segments [0, 3) and [3, 5)."""
    lithify("topic", "create", "orders", "--partitions", 2)
    produce(lithify, "orders", (0, 1), (1, 1), (2, 1))
    produce(lithify, "orders", (3, 1), (4, 1))
    return lithify


def test_delete_records_hides_them_at_once(orders):
    """C26: the log is due for a round, which takes them out of storage."""
    command = ("delete-records", "orders", "--partition", 0, "--before", 2)
    assert (
        orders.error(*command)
        == "orders-0: nothing was deleted (--yes deletes all records below 2, at most 2 records, irreversibly)"
    )
    assert offsets(orders, "orders") == [0, 1, 2, 3, 4]
    done = orders(*command, "--yes")
    assert done.out == "PARTITION  START  CLEAN BELOW\n        0  0 → 2        0 → 2\n"
    assert done.err == (
        "orders: partition 0 starts at 2; the next round removes the records below it from storage, version 4\n"
    )
    assert offsets(orders, "orders") == [2, 3, 4]
    log = orders("status", "orders", "--json").json["logs"][0]
    assert (log["owed"], log["due"]) == ("records below 2 were deleted", True)
    assert orders(*command).err == "orders: partition 0 already starts at or above 2, still version 4\n"
    assert orders.error("consume", "orders", "--partition", 0, "--from", 1).startswith("orders-0: offset 1 is outside")


def test_truncate_makes_offsets_free_for_new_records(orders):
    """C26: the segment that straddles the cut is written again."""
    command = ("truncate", "orders", "--partition", 0, "--to", 4)
    assert orders.error(*command) == (
        "orders-0: nothing was truncated (--yes removes records at 4 and above, at most 1 record, irreversibly)"
    )
    done = orders(*command, "--yes")
    assert done.out.splitlines() == [
        "PARTITION    END  CLEAN BELOW  SEGMENTS  RECORDS",
        "        0  5 → 4            0     -1 +1       -1",
    ]
    assert done.err == "orders: partition 0 ends at 4, version 4\n"
    assert orders(*command).err == "orders: partition 0 already ends at 4, still version 4\n"
    produce(orders, "orders", (4, 77))
    assert [(r["offset"], r["timestamp"]) for r in orders("consume", "orders").lines][-2:] == [(3, 1), (4, 77)]


@pytest.mark.usefixtures("plain_rounds")
def test_a_cut_where_a_round_has_been_needs_its_flag(orders):
    """C26: what superseded records had removed does not come back."""
    orders("compact", "orders")
    command = ("truncate", "orders", "--partition", 0, "--to", 3, "--yes")
    assert orders.error(*command) == (
        "orders-0: 3 is below the first dirty offset 5, so values that the records from 3 on superseded "
        "are lost (add --below-compacted to truncate anyway)"
    )
    cut = orders(*command, "--below-compacted", "--json").json
    assert (cut["verb"], cut["logs"][0]["first_dirty_offset_after"]) == ("truncate", 3)
    assert offsets(orders, "orders") == []
    assert orders.error("undo", "orders", "--yes") == (
        "orders-0: cannot undo the round: the log was truncated since (read the earlier records with `lithify consume "
        "orders --version 3`, and append the missing ones)"
    )


def test_what_lies_outside_of_the_log_is_refused_with_its_bounds(orders):
    for yes in ((), ("--yes",)):
        assert orders.error("delete-records", "orders", "--partition", 0, "--before", 6, *yes) == (
            "orders-0: cannot delete before 6: the log ends at 5 (use an offset from 0 to 5)"
        )
        assert orders.error("truncate", "orders", "--partition", 0, "--to", -1, *yes) == (
            "orders-0: cannot truncate to -1: the log has offsets from 0 to 5 "
            "(set --to to the new log end: records at and above it are removed)"
        )
        assert orders.error("truncate", "orders", "--partition", 2, "--to", 0, *yes) == (
            "orders has no partition 2 (it has 2, numbered from 0)"
        )
    assert orders.error("truncate", "orders", "--to", 0, "--yes") == (
        "orders has 2 partitions (choose one with --partition)"
    )
    assert "'x' is not a valid integer" in orders.error("truncate", "orders", "--to", "x")
    assert orders.error("delete-records", "orders", "--yes").startswith("Missing option '--before'")
    assert offsets(orders, "orders") == [0, 1, 2, 3, 4]


def test_a_name_with_a_partition_says_which_log(lithify):
    name = "persistent://public/default/orders"
    lithify("topic", "create", name, "--partitions", 2)
    produce(lithify, name, (0, 1), (1, 1), partition=1)
    assert (
        lithify("delete-records", f"{name}-partition-1", "--before", 1, "--yes", "--json").json["logs"][0]["partition"]
        == 1
    )
    assert lithify.error("truncate", f"{name}-partition-1", "--partition", 0, "--to", 1) == (
        f"{name}-partition-1 is partition 1, but --partition is 0"
    )
    assert lithify.error("undo", f"{name}-partition-1").endswith(f"(this verb needs the whole topic: {name})")


def test_a_clock_that_is_years_from_the_commits_needs_a_persons_word(lithify):
    """C46: no warehouse of today has such commits, so one is made to say so."""
    lithify("topic", "create", "events", "--config", "cleanup.policy=delete", "--config", "retention.ms=1d")
    produce(lithify, "events", (0, 0))
    produce(lithify, "events", (1, DAY_MS))
    topic = package.open(str(lithify.warehouse)).topic("events")
    topic.warehouse.store.commit(topic.state(), TopicEdit("r", 0, {}, verb=Verb.ALTER, clock_ms=0))
    refused = lithify.error("retain", "events")
    assert "events: the clock is at" in refused and "--allow-clock-jump" in refused
    told = json.loads(lithify("retain", "events", "--json", code=2).err)
    assert told["code"] == "Clock" and "--allow-clock-jump" in told["hint"]
    assert offsets(lithify, "events") == [0, 1]
    lithify("retain", "events", "--allow-clock-jump")
    assert offsets(lithify, "events") == []
    lithify("retain", "events")
