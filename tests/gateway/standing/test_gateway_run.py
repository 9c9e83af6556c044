"""A standing job of two gateways as they are: `lithify gateway run`, of which one is killed."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

import lithify
from gateway.standing.gateways import is_running, waited
from lithify import Record
from support.processes.cleaner_process import CleanerProcess

pytestmark = [pytest.mark.kills, pytest.mark.timeout(300)]


class Running(CleanerProcess):
    """`lithify gateway run`."""

    noun = "gateway"


def test_a_table_is_kept_up_to_date_by_another_gateway_once_the_first_is_killed(tmp_path: Path) -> None:
    lake = lithify.open(str(tmp_path / "lake"))
    orders, table = lake.create_topic("orders"), tmp_path / "orders.db"
    orders.append([Record(b"k1", b"1")])
    lake.standing_jobs().add("table", ["hydrate", "orders", "--to", str(table), "--continuous"])
    given = ("--warehouse", str(tmp_path / "lake"), "--listen", "127.0.0.1:0", "--lease", "3s")
    with Running(*given, "--name", "a") as first, Running(*given, "--name", "b") as second:
        waited(lambda: first.told("job-started") or second.told("job-started"))
        waited(lambda: rows(table) == 1)
        holder, other = (first, second) if first.told("job-started") else (second, first)
        assert not other.told("job-started")
        holder.signal(signal.SIGKILL)
        other.wait_for(lambda event: event["event"] == "job-started")
        orders.append([Record(b"k2", b"2")])  # not before: what the first has left behind would copy it
        waited(lambda: rows(table) == 2)
        waited(lambda: lake.standing_jobs().list()[0].gateway == ("b" if other is second else "a"))
        begun, jobs = time.monotonic(), guards_of(other)
        other.signal(signal.SIGTERM)
        assert other.ended() == 0
        assert time.monotonic() - begun < 10 + 5
        assert jobs and not any(map(is_running, jobs))
        (stopped,) = other.told("job-stopped")
        assert (stopped["reason"], stopped["exit_code"]) == ("the gateway stops", 0)
    (info,) = lake.standing_jobs().list()
    assert (info.state, info.exit_code, info.failures) == ("waiting", 0, 0)


def guards_of(gateway: CleanerProcess) -> list[int]:
    children = Path(f"/proc/{gateway.process.pid}/task").glob("*/children")
    pids = [int(pid) for file in children for pid in file.read_text().split()]
    return [pid for pid in pids if b"guard.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def rows(table: Path) -> int:
    if not table.exists():
        return 0
    with closing(sqlite3.connect(table)) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM orders").fetchone()[0])
        except sqlite3.OperationalError:
            return 0
