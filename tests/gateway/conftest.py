"""A gateway of a lake in memory, served on a free port."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

import lithify as package
from lithify.api.lake import Lake
from lithify.testing import memory_lake
from support.processes.in_process import Outcome, Program
from support.servers.gateways import serving_gateway

ENOUGH_S = 30


@dataclass
class Served:
    """Requests to a gateway."""

    lake: Lake
    url: str
    session: requests.Session = field(default_factory=requests.Session)

    def ask(self, method: str, path: str, **more: Any) -> requests.Response:
        return self.session.request(method, self.url + path, timeout=ENOUGH_S, **more)

    def ended(self, job: str) -> dict[str, Any]:
        """The job once it has ended."""
        deadline = time.monotonic() + ENOUGH_S
        while time.monotonic() < deadline:
            told: dict[str, Any] = self.ask("GET", f"/api/v1/jobs/{job}").json()
            if told["ended_ms"] is not None:
                return told
            time.sleep(0.01)
        raise TimeoutError(job)


@pytest.fixture
def served() -> Iterator[Served]:
    lake = memory_lake()
    with serving_gateway(lake) as url:
        asked = Served(lake, url)
        yield asked
        asked.session.close()


def orders(lake: Lake) -> None:
    """A topic in which one of three records is superseded."""
    topic = lake.create_topic("shop/orders")
    topic.append([package.Record(key=key, value=value) for key, value in ((b"a", b"1"), (b"a", b"2"), (b"b", b"3"))])


DIRECT = frozenset({"hydrate", "kafka", "cleaner", "repair", "demo", "doctor", "token"})
"""Verbs that use the warehouse itself."""
OF_RECORDS = ("consume", "points", "produce", "parquet_files", "produce_from_pipes")
"""Subjects whose tests append through the gateway: its first append makes a version that others do not count with."""


@dataclass(frozen=True, slots=True)
class ThroughGateway(Program):
    """Runs the program with `--gateway`, where there is such a verb for it."""

    url: str = ""
    direct: frozenset[str] = frozenset()

    def __call__(self, *arguments: object, **more: Any) -> Outcome:
        words = set(map(str, arguments))
        is_direct = not words.isdisjoint(self.direct) or words >= {"consume", "--group"}
        place = ("--warehouse", self.warehouse) if is_direct else ("--gateway", self.url)
        return Program.__call__(self, *place, *arguments, **more)


@pytest.fixture
def lithify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Program]:
    """The program as `tests/cli` has it, but it asks a gateway of its warehouse."""
    monkeypatch.setenv("COLUMNS", "80")
    warehouse = tmp_path / "warehouse"
    with serving_gateway(package.open(str(warehouse))) as url:
        monkeypatch.setenv("LITHIFY_GATEWAY", url)  # for programs of their own
        subject = request.module.__name__.rpartition(".")[2].removeprefix("test_").removesuffix("_through")
        yield ThroughGateway(warehouse, url, DIRECT if subject in OF_RECORDS else DIRECT | {"produce"})
