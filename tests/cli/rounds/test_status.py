"""`lithify status`: the figures of every log, and what they mean."""

from __future__ import annotations

import json

import pytest

from lithify.model.failure import LogFailure

HOUR_MS = 3_600_000


def produce(lithify, topic, *lines):
    lithify("produce", topic, "--keep-offsets", stdin="\n".join(json.dumps(line) for line in lines))


def a_line(offset, value="v", timestamp=0, partition=0):
    return {"partition": partition, "offset": offset, "timestamp": timestamp, "key": "k", "value": value}


def test_status_for_users(lithify, masked):
    lithify("topic", "create", "orders", "--partitions", 2, "--config", "min.compaction.lag.ms=1h")
    produce(lithify, "orders", a_line(0), a_line(1, None))
    produce(lithify, "orders", a_line(2, timestamp=9 * HOUR_MS))
    told = lithify("status", "orders", "--now", f"@{10 * HOUR_MS - 1}")
    assert told.err == ""
    text = masked(told.out).splitlines()
    assert text[:5] == [
        "orders  version 3, as of TIME",
        "PARTITION  START  CLEAN BELOW  HORIZON  END  RECORDS  SIZE  DIRTY",
        "        0  0  0  2  3  3  SIZE  1.00",
        "     S=D 0 ── dirty ── H 2 ── too young ── E 3",
        "     DUE: dirty ratio 1.00 > 0.5; horizon held by min.compaction.lag.ms in",
    ]
    assert text[5].startswith("     00000000000000000002-")
    assert text[5].endswith(".parquet; 1 tombstone; no round yet")
    assert text[6:] == [
        "        1  0  0  0  0  0  SIZE  0.00",
        "     not due: nothing dirty below the horizon; horizon at the log end; no round",
        "     yet",
    ]


def test_a_deadline_is_reported_before_it_has_come(lithify, masked):
    config = ("--config", "max.compaction.lag.ms=1h", "--config", "min.cleanable.dirty.ratio=1")
    lithify("topic", "create", "t", *config)
    produce(lithify, "t", a_line(0, timestamp=HOUR_MS))
    told = masked(lithify("status", "t", "--now", f"@{HOUR_MS + 60_000}").out)
    assert "not due: dirty ratio 1.00 <= 1; due by the clock TIME (in SPENT);" in " ".join(told.split())
    late = ("status", "t", "--now", f"@{2 * HOUR_MS + 1_001}")
    told = " ".join(masked(lithify(*late).out).split())
    assert "DUE: dirty for longer than max.compaction.lag.ms, since TIME, SPENT overdue;" in told
    (log,) = lithify(*late, "--json").json["logs"]
    assert (log["due_at_ms"], log["overdue_ms"]) == (2 * HOUR_MS + 1, 1_001)


def test_status_as_json(lithify):
    lithify("topic", "create", "a", "--partitions", 2)
    a = lithify("status", "a", "--json").json
    assert list(a) == [
        "topic",
        "version",
        "cleanup_policy",
        "compaction_mode",
        "logs",
        "now_ms",
        "now_given",
        "groups_error",
        "space",
    ]
    assert [log["partition"] for log in a["logs"]] == [0, 1]
    assert list(a["logs"][0]) == [
        "partition",
        "log_start_offset",
        "first_dirty_offset",
        "horizon",
        "horizon_limited_by",
        "horizon_held_by",
        "log_end_offset",
        "records",
        "bytes",
        "segments",
        "clean_bytes",
        "dirty_bytes",
        "dirty_ratio",
        "tombstones",
        "delete_retention_point",
        "next_tombstone_expiry_ms",
        "tombstones_held_below",
        "holds",
        "backlog_read_below",
        "passed_through",
        "chunks",
        "retention_waiting_bytes",
        "owed",
        "due",
        "due_reason",
        "due_at_ms",
        "overdue_ms",
        "last_round_ms",
        "last_round_id",
        "view",
        *("failures", "failed_ms", "retry_ms", "error", "error_code", "quarantined", "masked_records"),
    ]


def test_the_space_of_a_topic_is_told_wherever_it_is_looked_at(lithify, masked):
    lithify("topic", "create", "orders", "--config", "min.compaction.lag.ms=0")
    produce(lithify, "orders", a_line(0), a_line(1))
    assert "stored" not in lithify("status", "orders").out, "all is live"
    assert "stored" not in lithify("topic", "info", "orders").out
    after = lithify("compact", "orders", "--json").json["space"]
    assert list(after) == [
        "stored_bytes",
        "live_bytes",
        "view_bytes",
        "earlier_versions",
        "earlier_versions_bytes",
        "earlier_versions_until_ms",
    ]
    assert after["stored_bytes"] == after["live_bytes"] + after["earlier_versions_bytes"]
    files = [file.stat().st_size for file in lithify.warehouse.rglob("partition=0/*.parquet")]
    assert (after["stored_bytes"], after["earlier_versions"]) == (sum(files), 1)
    for verb in (["status", "orders"], ["topic", "info", "orders"]):
        assert lithify(*verb, "--json").json["space"] == after
        text = " ".join(masked(lithify(*verb).out).split())
        assert "SIZE of data files: SIZE live, SIZE of 1 earlier version until TIMEZ at least" in text
    assert lithify("history", "orders", "--json").json["space"] is None
    swept = lithify("sweep", "orders", "--json").json
    assert (swept["stored_bytes"], swept["bytes"]) == (after["stored_bytes"], 0)
    sizes = [
        lithify(*verb, "--json").json["bytes"] for verb in (["status"], ["topic", "list"], ["topic", "info", "orders"])
    ]
    assert sizes == [after["live_bytes"]] * 3
    assert sum(log["bytes"] for log in lithify("status", "orders", "--json").json["logs"]) == after["live_bytes"]


NEVER_FAILED = {"failures": 0, "failed_ms": None, "retry_ms": None, "error": None, "quarantined": False}


def test_a_log_that_fails_says_so_before_everything_else(lithify, failing, masked):
    """C31."""
    lithify("topic", "create", "orders", "--partitions", 3)
    failing("orders", {1: LogFailure(3, 0, 60_000, 120_000, "s3://b/f: the file is missing")})
    failing("orders", {2: LogFailure(8, 0, HOUR_MS, 0, "no\nroom", quarantined=True)})
    told = lithify("status", "orders", "--now", f"@{90_000}")
    text = " ".join(masked(told.out).split())
    assert "FAILED 3 times, next try TIME (in SPENT): s3://b/f: the file is missing; not due:" in text
    text = " ".join(lithify("status", "orders", "--now", f"@{3 * HOUR_MS}").out.split())
    assert "FAILED 3 times, next try now: s3://b/f: the file is missing; not due:" in text
    clock_went_back = " ".join(lithify("status", "orders", "--now", "@50000").out.split())
    assert "FAILED 3 times, next try now: s3://b/f" in clock_went_back
    assert (
        "QUARANTINED since 1970-01-01T01:00:00.000Z (2 h ago) after 8 failures: no room; "
        "`lithify quarantine release orders --partition 2` releases it; not due:"
    ) in text
    logs = lithify("status", "orders", "--json").json["logs"]
    said = [{name: log[name] for name in NEVER_FAILED} for log in logs]
    assert said == [
        NEVER_FAILED,
        {**NEVER_FAILED, "failures": 3, "failed_ms": 60_000, "retry_ms": 120_000, "error": logs[1]["error"]},
        {"failures": 8, "failed_ms": HOUR_MS, "retry_ms": None, "error": "no\nroom", "quarantined": True},
    ]


def test_a_log_with_delete_alone_may_fail_as_well(lithify, failing):
    lithify("topic", "create", "events", "--config", "cleanup.policy=delete")
    failing("events", {0: LogFailure(1, 0, 0, 15_000, "no room")})
    assert "     FAILED once, next try now: no room; not due: nothing" in lithify("status", "events").out


@pytest.mark.usefixtures("plain_rounds")
def test_a_clock_that_goes_back_makes_no_tombstone_older(lithify):
    """C18: a step is never earlier than the one before it, so that nothing expires too soon."""
    lithify("topic", "create", "t")
    produce(lithify, "t", a_line(0, None))
    lithify("compact", "t", "--now", f"@{100 * HOUR_MS}")
    produce(lithify, "t", {**a_line(1, None), "key": "other"})
    done = lithify("compact", "t", "--now", f"@{10 * HOUR_MS}", "--json").json
    assert (done["now_given"], done["changed"]) == (True, True)
    log = lithify("status", "t", "--now", f"@{10 * HOUR_MS}", "--json").json["logs"][0]
    assert (log["tombstones"], log["next_tombstone_expiry_ms"]) == (2, 124 * HOUR_MS)
    assert (log["due"], log["due_at_ms"], log["overdue_ms"]) == (False, 124 * HOUR_MS, 0)


@pytest.mark.usefixtures("plain_rounds")
def test_the_offset_below_which_deletes_may_be_gone_is_told(lithify):
    lithify("topic", "create", "t", "--config", "delete.retention.ms=1h")
    produce(lithify, "t", a_line(0, None), {**a_line(1), "key": "other"})
    lithify("compact", "t", "--now", f"@{10 * HOUR_MS}")
    assert lithify("status", "t", "--json").json["logs"][0]["delete_retention_point"] == 0
    lithify("compact", "t", "--now", f"@{12 * HOUR_MS}")
    assert lithify("status", "t", "--json").json["logs"][0]["delete_retention_point"] == 2  # the end of its segment
    assert "deletes below 2 may have been removed" in " ".join(lithify("status", "t").out.split())


def test_one_partition_by_its_name(lithify):
    name = "persistent://public/default/orders"
    lithify("topic", "create", name, "--partitions", 3)
    assert [log["partition"] for log in lithify("status", f"{name}-partition-1", "--json").json["logs"]] == [1]
