"""Metrics of real processes, over HTTP, while they work on a warehouse in a folder."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lithify
from lithify.api.topic import Topic
from lithify.model.record import Record
from support.processes.cleaner_process import CleanerProcess, ReplicaProcess
from support.scrapes import Values, scraped
from support.servers.tcp_proxy import free_port

P = "lithify_"
WAIT_S = 120.0


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def orders(warehouse: Path) -> Topic:
    topic = lithify.open(str(warehouse)).create_topic("orders", partitions=2)
    topic.append([Record(b"k%d" % (number % 10), b"v%d" % number) for number in range(100)])
    return topic


def waited(port: int, wanted: Callable[[Values], bool]) -> Values:
    """The first scrape of which that is true."""
    ends = time.monotonic() + WAIT_S
    shown: Values = {}
    while time.monotonic() < ends:
        try:
            shown = scraped(port)
        except OSError:
            shown = {}
        if wanted(shown):
            return shown
        time.sleep(0.05)
    raise AssertionError(f"not in {WAIT_S} s: {shown}")


@contextmanager
def process(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The program, ended with the block if it is still there."""
    command = [sys.executable, "-m", "lithify", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def test_a_cleaner_is_scraped_and_agrees_with_its_events_and_with_status(warehouse, orders, port):
    options = (f"--warehouse={warehouse}", "--interval=200ms", f"--metrics-port={port}", "--metrics-per-topic=10")
    with CleanerProcess(*options) as cleaner:
        event = cleaner.wait_for_kind("round", "orders")
        rounds = f"{P}compaction_rounds_total{{topic=orders}}"
        shown = waited(port, lambda v: bool(v.get(rounds)) and v[f"{P}due_topics"] == 0 == v[f"{P}running_topics"])
        for what, fact in (("input_records", "records_in"), ("output_records", "records_out")):
            assert shown[f"{P}compaction_{what}_total{{topic=orders}}"] == event[fact]
        superseded = f"{P}compaction_removed_records_total{{cause=superseded,topic=orders}}"
        assert shown[superseded] == event["removed"] == event["removed_by_cause"]["superseded"] == 90
        assert shown[f"{P}compaction_read_bytes_total{{topic=orders}}"] == event["bytes_read"] > 0
        assert shown[f"{P}compaction_logs_total{{topic=orders}}"] == 2
        status = orders.status()
        assert shown[f"{P}topics"] == shown[f"{P}cleaners"] == 1
        assert shown[f"{P}held_leases"] >= 1  # of its id
        assert shown[f"{P}max_dirty_ratio"] == max(log.dirty_ratio for log in status.logs) == 0
        assert shown[f"{P}build_info{{version={lithify.__version__}}}"] == 1
        assert shown["process_cpu_seconds_total"] > 0
        cleaner.signal(signal.SIGTERM)
        assert cleaner.ended() == 0
    with pytest.raises(OSError):
        scraped(port)


def test_a_cleaner_whose_port_is_in_use_does_nothing(warehouse, orders, port):
    version = orders.state().version
    with process("hydrate", "orders", "--warehouse", warehouse, "--to", warehouse.parent / "orders.db",
                 "--continuous", "--metrics-port", port):  # fmt: skip
        waited(port, bool)
        with process("--json", "cleaner", "run", "--once", "--warehouse", warehouse, "--metrics-port", port) as refused:
            out, err = refused.communicate(timeout=WAIT_S)
    assert (refused.returncode, out) == (1, "")
    error = json.loads(err.splitlines()[-1])
    assert error["code"] == "UnusableEnvironment"
    assert error["message"] == f"metrics cannot be served at 127.0.0.1:{port}: Address already in use"
    assert "--metrics-port" in error["hint"]
    assert orders.state().version == version


def test_a_table_that_is_kept_up_to_date_is_scraped(warehouse, orders, port):
    table = warehouse.parent / "orders.db"
    arguments = ("hydrate", "orders", "--warehouse", warehouse, "--to", table, "--continuous", "--metrics-port", port)
    with process(*arguments) as running:
        records = f"{P}hydrate_records_total"
        assert waited(port, lambda v: v.get(records) == 100 and v.get(f"{P}hydrate_lag") == 0)
        orders.append([Record(b"new", b"v")])
        assert waited(port, lambda v: v[records] == 101)
        running.send_signal(signal.SIGTERM)
        assert running.wait(WAIT_S) == 0


def test_a_replica_daemon_is_scraped(warehouse, orders, port, tmp_path):
    lake = lithify.open(str(warehouse))
    lake.replicas().add("orders", to=str(tmp_path / "copy"), name="backup")
    with ReplicaProcess(f"--warehouse={warehouse}", "--interval=200ms", f"--metrics-port={port}") as daemon:
        daemon.wait_for_kind("copied", "orders")
        shown = waited(
            port, lambda v: v.get(f"{P}replica_copies_total") == 1 and v.get(f"{P}replica_behind_topics") == 0
        )
        assert (shown[f"{P}replica_topics"], shown[f"{P}replica_failed_topics"]) == (1, 0)
        assert shown[f"{P}replica_copied_bytes_total"] > 0
        assert shown[f"{P}replica_max_lag_seconds"] == 0
        daemon.signal(signal.SIGTERM)
        assert daemon.ended() == 0
