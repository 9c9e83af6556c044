"""What runs until it is stopped, started while PostgreSQL is away: it waits, says so, and ends in order (C50)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.servers.tcp_proxy import wait_until
from support.store.builders import Place

from .conftest import Backend

BOUND_S = 120.0

CLEANER = ("cleaner", "run", "--id", "waits")
REPLICAS = ("replica", "run", "--id", "waits")
INGEST = ("kafka", "ingest", "--continuous", "--bootstrap-servers", "127.0.0.1:1", "--topic", "orders")


class Started:
    """One of them as a process of its own, with the events that it prints."""

    def __init__(self, verb: tuple[str, ...], log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            program = [sys.executable, "-m", "lithify", "--catalog", "prod", *verb, "--json"]
            self.process = subprocess.Popen(program, stdout=out, stderr=out, start_new_session=True)

    def events(self) -> list[dict[str, Any]]:
        whole = self._log.read_text().rpartition("\n")[0]
        told = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
        return [line for line in told if "event" in line]

    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events()]

    def wait_for(self, kind: str) -> None:
        wait_until(lambda: kind in self.kinds(), f"{self._log}: no {kind}", BOUND_S)

    def stopped(self) -> int:
        """Its exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(BOUND_S)


@pytest.fixture
def away(backend: Backend, place: Place) -> Iterator[Backend]:
    """PostgreSQL is stopped, after the warehouse was made."""
    place.create()
    backend.postgres.stop_at_once()
    yield backend
    backend.postgres.stop_at_once()
    backend.postgres.start()


def test_an_outage_is_waited_for(away: Backend, tmp_path: Path) -> None:
    daemons = [Started(CLEANER, tmp_path / "cleaner"), Started(REPLICAS, tmp_path / "replicas")]
    ended_early = Started(CLEANER, tmp_path / "ended-early")
    ingests = [Started(INGEST, tmp_path / "ingest"), Started(INGEST, tmp_path / "ended-early-too")]
    everything = [*daemons, ended_early, *ingests]
    try:
        for started in (*daemons, ended_early):
            started.wait_for("trouble")
        for started in ingests:
            started.wait_for("outage")
        assert (ended_early.stopped(), ingests[1].stopped()) == (0, 0)
        away.postgres.start()
        for daemon in daemons:
            daemon.wait_for("started")
            assert daemon.stopped() == 0
        assert ingests[0].process.wait(BOUND_S) == 1  # there is no broker
    finally:
        for started in everything:
            started.process.kill()
            started.process.wait()

    for daemon in daemons:
        kinds = daemon.kinds()
        assert (kinds[:3], kinds[-1]) == (["trouble", "recovered", "started"], "stopped")
        assert "waiting until it answers" in daemon.events()[0]["error"]
    assert ended_early.kinds() == ["trouble", "stopped"]
    assert ingests[0].kinds()[:2] == ["outage", "recovered"]
    assert ingests[1].kinds() == ["outage", "stopped"]
    assert ingests[1].events()[-1]["text"] == "SIGTERM: ended before it began"


def test_a_database_that_does_not_exist_is_no_outage(backend: Backend, tmp_path: Path) -> None:
    backend.describe(uri=backend.postgres.uri("nowhere"))
    cleaner = Started(CLEANER, tmp_path / "cleaner")

    assert cleaner.process.wait(BOUND_S) == 1
    assert cleaner.kinds() == []
