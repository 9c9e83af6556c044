"""A cleaner while S3 or PostgreSQL is away: it quarantines nothing, and when they are back everything is done (C31)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lithify.daemons.cleaner.failures import Failures
from lithify.ports.store import Warehouse
from lithify.reports.events import EventKind
from lithify.service.documents import failures_of
from lithify.store.iceberg.io import file_cache, remote_io
from lithify.waits import sql
from support.engines.kernel import KernelEngine
from support.engines.phased import PhasedEngine
from support.servers.tcp_proxy import TcpProxy
from support.topics.cleaner_lake import CleanerLake, OneCleaner

from .conftest import Backend

TRIES = 9
"""One more than a log may fail."""
WAIT_MS = 31 * 60_000


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_cache, "FILE_BYTES", -1)
    monkeypatch.setattr(remote_io, "ATTEMPTS", 1)
    monkeypatch.setattr(sql, "PATIENCE_S", 0.1)
    remote_io._file_system.cache_clear()


@pytest.fixture
def lake(backend: Backend) -> CleanerLake:
    place, lake = backend.place(), CleanerLake()
    lake.clock = place.clock
    lake.warehouse = Warehouse(place.store, place.files, place.clock)
    lake.engine: Any = KernelEngine(access=place.files.access)  # type: ignore[misc]
    return lake


def goes_on(lake: CleanerLake, cleaner: OneCleaner) -> None:
    cleaner.work()
    lake.wait(WAIT_MS)


@pytest.mark.parametrize("away", ["s3", "database"])
def test_what_is_away_all_the_time(backend: Backend, lake: CleanerLake, away: str) -> None:
    topic, alpha = lake.topic("orders"), lake.cleaner()
    lake.append(topic, "a=1 a=2")
    wire = backend.s3_wire if away == "s3" else backend.database_wire
    wire.cut()
    for _ in range(TRIES):
        goes_on(lake, alpha)
    assert EventKind.TROUBLE in {event.kind for event in alpha.events} <= {EventKind.TROUBLE, EventKind.LOOKED}
    wire.mend()
    goes_on(lake, alpha)
    goes_on(lake, alpha)
    assert lake.text(topic) == "a=2"


@pytest.mark.parametrize("phase", ["key pass", "rewrite"])
def test_an_s3_that_goes_away_in_every_round(backend: Backend, lake: CleanerLake, phase: str) -> None:
    """It is there again for every look, and to note the failure."""
    wire = backend.s3_wire
    lake.engine = PhasedEngine(lake.engine, {phase: wire.cut})  # type: ignore[assignment]
    topic, alpha = lake.topic("orders"), lake.cleaner()
    lake.append(topic, "a=1 a=2")
    failed: Callable[..., Any] = Failures.failed

    def back(self: Failures, *given: Any) -> Any:
        wire.mend()
        return failed(self, *given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Failures, "failed", back)
        for _ in range(TRIES):
            goes_on(lake, alpha)
    assert len(alpha.told(EventKind.FAILED)) == TRIES, alpha.events
    assert alpha.told(EventKind.QUARANTINED) == []
    (known,) = failures_of(lake.warehouse.store, lake.state(topic)).values()
    assert known.failures == 1
    is_back(lake, alpha, wire)


def is_back(lake: CleanerLake, alpha: OneCleaner, wire: TcpProxy) -> None:
    wire.mend()
    lake.engine = KernelEngine(access=lake.warehouse.files.access)  # type: ignore[assignment]
    beta = lake.cleaner("beta")
    goes_on(lake, beta)
    (topic,) = lake.warehouse.store.topics()
    assert lake.text(topic) == "a=2"
