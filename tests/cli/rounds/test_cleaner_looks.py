"""`lithify status` tells when each cleaner of the catalog last completed a check (C50)."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from lithify.coordination.leases.sql_coordination import open_coordination
from lithify.errors import CoordinationError
from lithify.model.cleaner_note import CleanerNote
from lithify.ports.engine import OVER, WAITS
from lithify.waits import sql
from support.processes.cleaner_process import CleanerProcess
from support.servers.tcp_proxy import wait_until


def looks(lithify, **environment: str):
    """The cleaners in `status --json`."""
    found = [json.loads(line) for line in lithify("status", "--json").out.splitlines()]
    return {line["cleaner"]: line for line in found if "cleaner" in line}


def test_it_shows_the_cleaners_of_this_catalog_and_makes_nothing_for_it(lithify, tmp_path: Path) -> None:
    lithify("topic", "create", "orders")
    assert looks(lithify) == {}
    folder = Path(os.environ["LITHIFY_WAREHOUSE"])
    with CleanerProcess("--warehouse", str(folder), "--id=alpha", "--interval=200ms") as alpha:
        alpha.wait_for_kind("started")
        wait_until(lambda: bool(looks(lithify).get("alpha", {}).get("looked_ms")), "no look is shown", 60)
        assert re.search(
            r"cleaner alpha completed its last check .* ago\) \(checks every 200 ms\)", lithify("status").err
        )
        alpha.signal(signal.SIGTERM)
        assert alpha.ended() == 0
    assert looks(lithify) == {}


def test_one_that_has_not_looked_yet_and_those_of_other_catalogs(lithify, tmp_path, monkeypatch) -> None:
    lithify("topic", "create", "orders")
    folder = Path(os.environ["LITHIFY_WAREHOUSE"]).resolve()
    url = f"sqlite:///{tmp_path}/leases.db"
    monkeypatch.setenv("LITHIFY_COORDINATION_URL", url)
    assert looks(lithify) == {}
    shared = open_coordination(url)
    shared.put_note(CleanerNote("mine", f"file://{folder}", 15_000, 1_000_000, None))
    shared.put_note(CleanerNote("theirs", "s3://elsewhere", 15_000, 1_000_000, 1_000_000))
    assert set(looks(lithify)) == {"mine"}
    assert "cleaner mine has not completed a check since it started 1970" in lithify("status").err


def test_a_database_that_cannot_be_asked_hides_no_topic(lithify, monkeypatch: pytest.MonkeyPatch) -> None:
    lithify("topic", "create", "orders")
    monkeypatch.setattr(sql, "PATIENCE_S", 0.01)
    monkeypatch.setenv("LITHIFY_COORDINATION_URL", "postgresql://lithify:s3cret@127.0.0.1:1/leases")
    shown = lithify("status")
    assert "orders" in shown.out
    assert "cleaners cannot be read: the lease database cannot be used" in shown.err
    assert "s3cret" not in shown.err
    assert CoordinationError.exit_code == 1 and shown.code == 0


@pytest.mark.parametrize("as_json", [False, True])
def test_what_jobs_wait_for_is_in_the_log_of_a_cleaner_once_at_each_end(lithify, monkeypatch, as_json):
    def run(_loop, *, once):
        WAITS.warning("waiting for executors: yarn has not provided any")
        WAITS.info("executors have registered, after 9.0 s", extra=OVER)
        return once

    lithify("topic", "create", "orders")
    monkeypatch.setattr("lithify.daemons.cleaner.loop.Loop.run", run)
    outcome = lithify("cleaner", "run", "--once", "--id", "c", *["--json"] * as_json)
    said = [("waiting", "waiting for executors: yarn has not provided any")]
    said += [("waited", "executors have registered, after 9.0 s")]
    if as_json:
        assert [(line["event"], line["text"], line["cleaner"]) for line in outcome.lines] == [
            (*one, "c") for one in said
        ]
        assert outcome.err == ""
    else:
        assert [line.split("  ", 1)[1].split(maxsplit=1) for line in outcome.err.splitlines()] == [
            list(one) for one in said
        ]
