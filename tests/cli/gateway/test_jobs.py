"""`gateway job …`: whole outputs, the JSON contract, what is refused, and a job that a gateway runs for real."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import replace
from threading import Event

import pytest

from lithify.api.wiring import open_warehouse
from lithify.api.wiring.shared_place import shared_place
from lithify.api.wiring.system_clock import SystemClock
from lithify.coordination.leases.gateways.jobs_sql import open_standing_jobs
from lithify.daemons.stop import Stop
from lithify.gateway.standing.options import StandingOptions
from lithify.gateway.standing.standing_jobs import StandingJobs
from lithify.model.jobs.definition import JobState

WAIT_S = 120.0
HYDRATE = ("hydrate", "orders", "--to", "/srv/a b.db")


@pytest.fixture
def orders(lithify):
    lithify("topic", "create", "orders")
    return lithify


def jobs_of(lithify):
    return open_standing_jobs(*shared_place(open_warehouse(str(lithify.warehouse)), None, makes=True))


@pytest.mark.usefixtures("wide")
def test_add_list_pause_resume_and_remove(orders):
    nothing = orders("gateway", "job", "list")
    assert (nothing.out, nothing.err) == (
        "",
        "no standing jobs yet (`lithify gateway job add NAME -- VERB` adds one)\n",
    )
    added = orders("gateway", "job", "add", "table", "--", *HYDRATE, "--continuous")
    assert added.err == "standing job table: hydrate orders --to '/srv/a b.db' --continuous\n"
    info = orders("gateway", "job", "add", "nightly", "--every", "24h", "--paused", "--json", "--", *HYDRATE).json
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT.*Z", info.pop("created_at"))
    assert info == {
        "name": "nightly",
        "state": "paused",
        "arguments": list(HYDRATE),
        "command": "hydrate orders --to '/srv/a b.db'",
        "every_ms": 86_400_000,
        "paused": True,
        "gateway": None,
        "since": None,
        "next_at": None,
        "failures": 0,
        "exit_code": None,
        "error": None,
        "error_code": None,
        "report": None,
    }
    listed = orders("gateway", "job", "list")
    assert listed.err == ""
    assert [re.split(r"  +", line) for line in listed.out.splitlines()] == [
        ["NAME", "STATE", "GATEWAY", "SINCE", "LAST", "COMMAND"],
        ["nightly", "paused", "-", "-", "-", "hydrate orders --to '/srv/a b.db', every 24 h"],
        ["table", "waiting", "-", "-", "-", "hydrate orders --to '/srv/a b.db' --continuous"],
    ]
    assert orders("gateway", "job", "pause", "table").err.endswith("--continuous, paused\n")
    assert [job["state"] for job in orders("gateway", "job", "list", "--json").lines] == ["paused", "paused"]
    assert orders("gateway", "job", "resume", "table").err.endswith("--continuous\n")
    removed = orders("gateway", "job", "remove", "table").err
    assert removed == "standing job table: hydrate orders --to '/srv/a b.db' --continuous: removed\n"
    assert [job["name"] for job in orders("gateway", "job", "list", "--json").lines] == ["nightly"]


@pytest.mark.usefixtures("wide")
def test_what_a_gateway_has_noted_is_listed(orders):
    orders("gateway", "job", "add", "table", "--", *HYDRATE, "--continuous")
    jobs = jobs_of(orders)
    (stored,) = jobs.jobs()
    state = JobState(
        "g1",
        running=False,
        since_ms=1_000,
        seen_ms=1_000,
        next_ms=3_000,
        failures=2,
        exit_code=1,
        error="no \x1b[31mbroker",
        error_code="Broker",
        report='{"records": 3}',
    )
    jobs.note([(stored.job, state)])
    _header, row, *notes = orders("gateway", "job", "list").out.splitlines()
    assert re.split(r"  +", row)[:5] == ["table", "FAILING", "g1", "1970-01-01T00:00:01.000Z", "exit 1"]
    assert "\x1b" not in "".join(notes)
    assert [note.strip() for note in notes] == ["[Broker] no \\x1b[31mbroker", "next run at 1970-01-01T00:00:03.000Z"]
    now_ms = SystemClock().now_ms()
    jobs.note([(stored.job, replace(state, running=True, seen_ms=now_ms, next_ms=None))])
    _header, row, *notes = orders("gateway", "job", "list").out.splitlines()
    assert re.split(r"  +", row)[1] == "running"
    assert [note.strip() for note in notes] == ["last error: [Broker] no \\x1b[31mbroker"]
    jobs.note([(stored.job, state)])
    info = orders("gateway", "job", "list", "--json").lines[0]
    assert (info["failures"], info["exit_code"], info["error_code"], info["report"]) == (2, 1, "Broker", {"records": 3})
    assert (info["since"], info["next_at"]) == ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:03.000Z")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("x", "--", "topic", "delete", "orders"), "error[InvalidInput]: a standing job cannot run `topic delete`"),
        (("x", "--", *HYDRATE), "error[InvalidInput]: `hydrate` ends by itself"),
        (("x", "--every", "5m", "--", *HYDRATE, "--continuous"), "error[InvalidInput]: `hydrate` runs until"),
        (("x", "--", *HYDRATE, "--continuous", "--catalog=c"), "error[InvalidInput]: --catalog in the command line"),
        (("x", "--", *HYDRATE, "--contiguous"), "error[Usage]: No such option '--contiguous'"),
        (("x", "--", *HYDRATE, "--continuous", "--frm", "1"), "error[Usage]: No such option '--frm'"),
        (("x", "--", "hydrate", "--to", "a.db", "--continuous"), "error[Usage]: Missing argument 'TOPIC'"),
        (("x", "--", "replica", "run", "--lease", "1ms"), "error[Usage]: Invalid value for '--lease'"),
        (("x", "--", "replica", "run", "--coordination-url", "postgresql://a:s3cret@b/c"), "has a secret"),
        (("-x", "--", "replica", "run"), "error[Usage]: No such option '-x'"),
        (("a/b", "--", "replica", "run"), "error[InvalidName]"),
        (("x", "--every", "10ms", "--", *HYDRATE), "error[Usage]: Invalid value for '--every'"),
        (("x",), "error[Usage]: Missing argument"),
    ],
)
def test_what_cannot_be_a_job_is_refused_at_once(orders, words, said):
    refused = orders("gateway", "job", "add", *words, code=2)
    assert said in refused.err
    assert "s3cret" not in refused.err
    assert orders("gateway", "job", "list").out == ""


def test_files_that_a_job_names_are_on_machines_of_gateways(orders, tmp_path):
    tmp_path.joinpath("folder").mkdir()
    kafka = ("kafka", "ingest", "--topic", "orders", "--continuous", "--kafka-conf-file")
    for number, there in enumerate(("/run/credentials/g.service/kafka.properties", tmp_path / "folder")):
        added = orders("gateway", "job", "add", f"x{number}", "--", *kafka, there)
        assert f"--kafka-conf-file {there}" in added.err
    pulsar = ("pulsar", "compact", "persistent://a/b/c", "--client-conf", "/none/such")
    orders("gateway", "job", "add", "states", "--every", "5m", "--", *pulsar)
    assert "No such option" in orders("gateway", "job", "add", "y", "--", *kafka, "/none/such", "--wrong", code=2).err
    # The verb itself looks for them.
    assert "does not exist" in orders(*kafka, "/none/such", code=2).err


def test_flags_of_the_job_are_not_those_of_the_command(orders):
    added = orders("gateway", "job", "add", "x", "--", *HYDRATE, "--continuous", "--debug", code=2)
    assert "--debug in the command line" in added.err


def test_unknown_and_taken_names(orders):
    orders("gateway", "job", "add", "table", "--", *HYDRATE, "--continuous")
    taken = orders("gateway", "job", "add", "table", "--", "replica", "run", code=2).err
    assert taken.startswith("error[Refused]: there is a standing job table already")
    for verb in ("pause", "resume", "remove"):
        unknown = orders("gateway", "job", verb, "tabel", code=2).err
        assert unknown.startswith("error[Refused]: there is no standing job tabel") and "table" in unknown


def test_a_gateway_keeps_a_table_up_to_date(orders, tmp_path):
    table = tmp_path / "orders.db"
    lines = [json.dumps({"key": f"k{n}", "value": f"{n}"}) for n in range(3)]
    orders("produce", "orders", stdin="\n".join(lines))
    orders("gateway", "job", "add", "table", "--", "hydrate", "orders", "--to", table, "--continuous")
    stop, ready = Stop(), Event()
    options = StandingOptions("g1", ("--warehouse", str(orders.warehouse)))
    gateway = StandingJobs(jobs_of(orders), SystemClock(), options, stop, lambda _event: ready.set())
    gateway.start()
    try:
        waited(lambda: rows(table) == 3)
        orders("produce", "orders", stdin=json.dumps({"key": "k9", "value": "9"}))
        waited(lambda: rows(table) == 4)
        assert gateway.running() == ("table",)
        (info,) = orders("gateway", "job", "list", "--json").lines
        assert (info["state"], info["gateway"], info["failures"]) == ("running", "g1", 0)
    finally:
        stop.ask("the test ends")
        assert gateway.close()
    (info,) = orders("gateway", "job", "list", "--json").lines
    assert (info["state"], info["exit_code"], info["error"]) == ("waiting", 0, None)
    assert info["report"]["records"] == 4
    # The lines of stdout and stderr come through two pipes, in any order to each other.
    assert [one for one in gateway.events("table") if "event" not in one] == [info["report"]]


def rows(table):
    if not table.exists():
        return 0
    with closing(sqlite3.connect(table)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM orders").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


def waited(for_what):
    ends = time.monotonic() + WAIT_S
    while not for_what():
        assert time.monotonic() < ends, sys.exc_info()
        time.sleep(0.05)
