"""`lithify compact`, and what can be seen only after a round: history, verify, demo."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import time

import pytest

from lithify.api.wiring.spark_choice import SparkChoice
from lithify.errors import EngineUnavailableError
from support.processes.programs import PROGRAM, end, running
from support.servers.tcp_proxy import wait_until

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000


def a_line(key, value, **more):
    return json.dumps({"key": key, "value": value, **more}) + "\n"


@pytest.fixture(scope="module", autouse=True)
def started():
    """Spark, so that no test is the one whose command says that it starts."""
    SparkChoice().factory()()


@pytest.fixture
def orders(lithify):
    """Two logs. The first: a a b, then a ∅(b); the second: c."""
    lithify("topic", "create", "orders", "--partitions", 2)
    first = [("a", "1", 0), ("a", "2", 0), ("b", "1", 0), ("c", "1", 1)]
    for batch in (first, [("a", "3", 0), ("b", None, 0)]):
        lithify("produce", "orders", stdin="".join(a_line(k, v, partition=p) for k, v, p in batch))
    return lithify


def live(lithify):
    return [(r["partition"], r["offset"], r["key"], r["value"]) for r in lithify("consume", "orders").lines]


AFTER = [(0, 3, "a", "3"), (0, 4, "b", None), (1, 0, "c", "1")]


@pytest.mark.usefixtures("wide")
def test_a_round_its_plan_and_its_history(orders, masked):
    planned = orders("compact", "orders", "--plan")
    assert masked(planned.out) == (
        "PARTITION  CLEAN BELOW  RECORDS  SEGMENTS  READS  WRITES  HORIZON\n"
        "        0  0 → 5  5  2 of 2  ≤ SIZE  ≤ SIZE  at the log end\n"
        "        1  0 → 1  1  1 of 1  ≤ SIZE  ≤ SIZE  at the log end\n"
    )
    assert masked(planned.err) == (
        "orders: a round would read at most SIZE and write at most SIZE, which must be free beside the old version; "
        "nothing was changed\n"
    )
    assert len(live(orders)) == 6
    done = orders("compact", "orders")
    assert masked(done.out) == (
        "PARTITION  CLEAN BELOW  RECORDS  BYTES  REMOVED\n"
        "        0  0 → 5  5 → 2  SIZE → SIZE  3 superseded\n"
        "        1  0 → 1  1  SIZE  nothing\n"
    )
    assert masked(done.err) == (
        "orders: needs up to SIZE free until the replaced files are deleted, at TIMEZ at the earliest\n"
        "orders: 6 → 3 records, SIZE → SIZE, version 4, "
        "SPENT (plan SPENT, key pass SPENT, rewrite SPENT, commit SPENT)\n"
        "orders: stored SIZE of data files: SIZE live, SIZE of 1 earlier version until TIMEZ at least\n"
    )
    assert live(orders) == AFTER
    again = orders("compact", "orders")
    assert again.err.startswith("orders: nothing to do, still version 4\norders: stored ")
    assert again.out.count("nothing to do") == 2
    assert orders("compact", "orders", "--plan").err == "orders: a round would change nothing\n"
    assert masked(orders("history", "orders").out) == (
        "ROUND AT  VERSION  PARTITIONS  RECORDS  BYTES  TIME  REMOVED\n"
        "TIMEZ  4  2  6 → 3  SIZE → SIZE  SPENT  3 superseded\n"
    )


LOG_KEYS = [
    "partition",
    "first_dirty_offset",
    "first_dirty_offset_after",
    "horizon",
    "horizon_limited_by",
    "log_start_offset",
    "log_start_offset_after",
    "records_in",
    "records_out",
    "keys",
    "tombstones_in",
    "tombstones_out",
    "tombstones_held",
    "tombstones_unversioned",
    "losers",
    "segments_in",
    "segments_kept",
    "segments_rewritten",
    "segments_merged",
    "segments_written",
    "bytes_in",
    "bytes_out",
    "bytes_read",
    "bytes_written",
    "phases_ms",
    "error",
]


def test_the_json_of_a_round_key_by_key(orders):
    report = orders("compact", "orders", "--json").json
    assert set(report) >= {"topic", "version", "changed", "logs", "duration_ms"}
    assert (report["topic"], report["version"], report["changed"]) == ("orders", 4, True)
    first, second = report["logs"]
    assert set(first) >= set(LOG_KEYS)
    assert {name: first[name] for name in LOG_KEYS if "bytes" not in name and name != "phases_ms"} == {
        "partition": 0,
        "first_dirty_offset": 0,
        "first_dirty_offset_after": 5,
        "horizon": 5,
        "horizon_limited_by": "log end",
        "log_start_offset": 0,
        "log_start_offset_after": 0,
        "records_in": 5,
        "records_out": 2,
        "keys": 2,
        "tombstones_in": 1,
        "tombstones_out": 1,
        "tombstones_held": 0,
        "tombstones_unversioned": 0,
        "losers": {"superseded": 3, "expired_tombstone": 0, "no_key": 0, "past_retention": 0, "below_start": 0},
        "segments_in": 2,
        "segments_kept": 1,
        "segments_rewritten": 0,
        "segments_merged": 0,
        "segments_written": 0,
        "error": None,
    }
    assert all(isinstance(first[name], int) for name in LOG_KEYS if name.startswith("bytes"))
    assert set(second["losers"].values()) == {0}
    assert all(isinstance(ms, int) for ms in first["phases_ms"].values())
    stored = orders("history", "orders", "--json").json
    for log in (*stored["logs"], *report["logs"]):
        log["phases_ms"].pop("commit", None)  # the report is stored before it
    assert stored["logs"] == report["logs"]
    again = orders("compact", "orders", "--json").json
    assert (again["changed"], again["version"]) == (False, 4)
    assert len(orders("history", "orders", "--json").lines) == 1


def test_the_json_of_a_plan(orders):
    plan = orders("compact", "orders", "--plan", "--json").json
    assert set(plan) == {
        "topic",
        "version",
        "logs",
        "now_ms",
        "now_given",
        "groups_error",
        "old_version_until_ms",
        "worker_bytes_at_most",
        "extra_bytes_needed",
    }
    retention_ms = int(orders("topic", "info", "orders", "--json").json["config"]["versions.retention.ms"])
    assert 0 <= plan["old_version_until_ms"] - retention_ms - plan["now_ms"] < 60_000
    report = orders("compact", "orders", "--json").json
    for planned, done in zip(plan["logs"], report["logs"], strict=True):
        assert planned["horizon"] == done["horizon"]
        assert planned["bytes_read_at_most"] >= done["bytes_read"]
        assert planned["bytes_written_at_most"] >= done["bytes_written"]
        assert planned["segments_rewritten_at_most"] >= done["segments_rewritten"] + done["segments_merged"]


def test_only_the_partitions_asked_for(orders):
    report = orders("compact", "orders", "--partition", 1, "--partition", 1, "--json").json
    assert [log["partition"] for log in report["logs"]] == [1]
    assert orders.error("compact", "orders", "--partition", 2).startswith("orders has no partition 2")
    planned = orders("compact", "orders", "--plan", "--partition", 0, "--json").json
    assert [log["partition"] for log in planned["logs"]] == [0]


def test_limits_are_taken_with_their_units(orders):
    limits = ("--task-memory", "64MiB", "--read-rate", "100MB/s", "--write-rate", "100MB/s")
    assert orders("compact", "orders", *limits, "--json").json["changed"] is True
    bare = orders("compact", "orders", "--read-rate", "100000000", "--write-rate", "200MB/s")
    assert bare.err.startswith("--read-rate 100000000 is 95.4 MiB/s\n")
    assert "is not a rate such as" in orders.error("compact", "orders", "--read-rate", "fast")
    assert "a task needs at least" in orders.error("compact", "orders", "--task-memory", "1KiB")


def test_a_log_is_rewritten_part_by_part(lithify):
    """Each part is a round of its own in the history; the report is of all."""
    lithify("topic", "create", "big", "--config", "segment.bytes=64KiB", "--config", "versions.retention.ms=0")
    for first in range(0, 200, 50):
        values = (hashlib.shake_256(b"%d %d" % (first, n)).hexdigest(700) for n in range(100))
        lithify("produce", "big", stdin="".join(a_line(f"k{first + n}", v) for n, v in enumerate(values)))
    limit = ("--partial-progress", "40KiB")
    planned = lithify("compact", "big", "--plan", *limit, "--json").json
    assert planned["extra_bytes_needed"] <= lithify("compact", "big", "--plan", "--json").json["extra_bytes_needed"]
    report = lithify("compact", "big", *limit, "--json").json
    (log,) = report["logs"]
    assert (log["records_in"], log["records_out"], log["segments_waiting"]) == (400, 250, 0)
    rounds = lithify("history", "big", "--json").lines
    assert len(rounds) > 1
    assert [r["logs"][0]["segments_waiting"] > 0 for r in rounds] == [False, *(True for _ in rounds[1:])]
    assert sum(r["logs"][0]["bytes_written"] for r in rounds) == log["bytes_written"]
    assert lithify("compact", "big", *limit, "--json").json["changed"] is False
    assert lithify("verify", "big").code == 0
    assert "a commit rewrites at least 1 byte" in lithify.error("compact", "big", "--partial-progress", "0")
    lithify("topic", "alter", "big", "--config", "segment.max.dead.ratio=0")
    assert "allows no masks" in lithify.error("compact", "big", *limit)


def test_a_later_now_needs_yes_and_is_reported(orders):
    orders("compact", "orders")
    later = f"@{time.time_ns() // 1_000_000 + 2 * DAY_MS}"
    said = orders.error("compact", "orders", "--now", later)
    assert said.endswith(
        "is later than the clock, and what a round removes cannot be restored "
        "(add --yes to run it, --plan shows what it would do)"
    )
    assert "not of the clock" in orders("compact", "orders", "--now", later, "--plan").err
    assert live(orders) == AFTER
    done = orders("compact", "orders", "--now", later, "--yes")
    assert "1 expired tombstone\n" in done.out
    assert "not of the clock" in done.err
    assert live(orders) == [AFTER[0], AFTER[2]]
    told = orders("history", "orders")
    assert told.err == "* judged as of that time, which was set with --now\n"
    assert orders("history", "orders", "--json").lines[0]["now_given"] is True
    earlier = orders("compact", "orders", "--now", "2001-01-01T00:00:00Z", "--json").json
    assert (earlier["changed"], earlier["now_given"]) == (False, True)


def test_a_log_that_fails_is_reported_and_the_others_go_on(orders):
    (damaged,) = (orders.warehouse / "default").rglob("partition=1/*.parquet")
    damaged.unlink()
    failed = orders("compact", "orders", "--json", code=1)
    first, second = failed.json["logs"]
    assert (first["error"], first["records_out"]) == (None, 2)
    assert f"{damaged}: the file is missing" in second["error"]
    said = json.loads(failed.err)
    assert (first["error_code"], second["error_code"], said["code"]) == (None, "Damaged", "Damaged")
    assert (said["topic"], said["partition"], said["exit_code"]) == ("orders", 1, 1)
    assert str(damaged) in said["message"]
    shown = orders("compact", "orders", code=1)
    assert shown.err.splitlines()[-1].startswith("error[Damaged]: ")
    assert "FAILED, the log is unchanged" in shown.out
    assert "1 log FAILED" in shown.err


def test_a_spark_that_does_not_start_is_said_once_and_the_counts_are_those_of_the_logs(orders, monkeypatch):
    """Whatever the number of logs; in JSON each has its error."""

    def fails():
        raise EngineUnavailableError("Spark did not start: no master")

    monkeypatch.setattr(SparkChoice, "factory", lambda _choice: fails)
    shown = orders("compact", "orders", code=1)
    assert shown.err.count("Spark did not start") == 1
    assert "orders: 6 records, " in shown.err
    assert "2 logs FAILED" in shown.err
    told = [json.loads(line) for line in orders("compact", "orders", "--json", code=1).err.splitlines()]
    assert [(one["code"], one["partition"]) for one in told] == [("EngineUnavailable", 0), ("EngineUnavailable", 1)]


def test_verify_proves_or_names_every_finding(orders, masked):
    fresh = orders("verify", "orders")
    assert masked(fresh.err) == (
        "orders: clean, nothing lost: 6 records in 3 segments, version 3 and no earlier one to compare with, "
        "SIZE read in SPENT\n"
    )
    orders("compact", "orders")
    proof = orders("verify", "orders", "--json").json
    assert (proof["clean"], proof["findings"], proof["against"]) == (True, [], 3)
    assert orders("verify", "orders", "--against", 3).out == ""
    assert orders.error("verify", "orders", "--against", 99).startswith(
        "orders: version 99 is not retained (retained: 3"
    )
    (segment,) = (orders.warehouse / "default").rglob("partition=1/*.parquet")
    segment.write_bytes(b"PAR1 no more PAR1")
    found = orders("verify", "orders", code=3)
    assert found.out.startswith("orders-1: file_damaged: ")
    assert str(segment) in found.out
    assert "NOT CLEAN, 1 finding" in found.err
    findings = orders("verify", "orders", "--json", code=3).json
    assert findings["clean"] is False
    assert findings["findings"][0]["kind"] == "file_damaged"


def test_the_demo_shows_a_log_before_and_after(lithify):
    told = lithify("demo")
    assert "   cities-0\n   offset │ 0      1    │ 2      3    │ 4     5\n" in told.out
    assert "   cities-0\n   offset   ·      ·      ·      ·    │ 4     5\n" in told.out
    assert "   cities-0\n   offset   ·      ·      ·      ·      ·   │ 5\n" in told.out
    assert "clean, nothing lost" in " ".join(told.out.split())
    assert "FAILED" not in told.out
    assert max(map(len, told.out.splitlines())) <= 90
    assert not lithify.warehouse.exists()
    found = lithify("demo", "--json").json
    assert (found["records_before"], found["records_after"]) == (15, 5)
    assert [sum(log["losers"]["superseded"] for log in round_["logs"]) for round_ in found["rounds"]] == [8, 0]
    assert [sum(log["losers"]["expired_tombstone"] for log in round_["logs"]) for round_ in found["rounds"]] == [0, 2]
    assert found["verify"]["clean"] is True


def test_a_demo_whose_spark_does_not_start_shows_no_round(own_process, tmp_path):
    told = own_process("demo", SPARK_HOME=str(tmp_path))
    assert told.returncode == 1
    assert "Compacted" not in told.stdout
    first, *_, last = told.stderr.splitlines()
    assert first.startswith("starting Spark: ")
    assert last.startswith("error[RoundsFailed]: Spark did not start: ")


@pytest.mark.parametrize("busy_with", ["java", "pyspark.daemon"], ids=["starting", "working"])
def test_an_interrupt_is_quiet_and_leaves_nothing_behind(orders, busy_with):
    """Whether Spark is starting or at work: no round, no traceback, and no JVM that goes on alone."""
    before = live(orders)
    with subprocess.Popen(
        [*PROGRAM, "compact", "orders", "--read-rate", "1B/s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as compacting:
        try:
            wait_until(
                lambda: any(busy_with in command for command in running(compacting.pid).values()), busy_with, 180
            )
        except AssertionError:
            end(compacting)  # at its rate it would go on for ever
            raise
        os.killpg(compacting.pid, signal.SIGINT)
        out, err = compacting.communicate()
    needed, *more, last = err.decode().splitlines()
    started = [line for line in more if line != "interrupted: ending, within 10 s"]  # where that takes a second
    assert (compacting.returncode, out) == (130, b"") and len(more) - len(started) <= 1
    assert needed.startswith("orders: needs up to ")
    assert started or busy_with == "java"  # the JVM is there before its starting is told of
    assert not any(line.startswith("starting Spark: ") == bool(number) for number, line in enumerate(started))
    assert [line for line in started[1:] if not re.match(r"Spark started in [\d.]+ s; ", line)] == []
    assert last == "interrupted: the logs of orders are unchanged"
    wait_until(lambda: not running(compacting.pid), "something of it goes on", 180)
    assert live(orders) == before
