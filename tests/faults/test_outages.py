"""What runs until it is stopped waits for a catalog that is away, whenever that is, says so once, and misses nothing.

Before, an ingest and a table that is kept up to date waited for a cluster only (C50).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lithify.api.lake import Lake
from lithify.errors import WarehouseError
from lithify.hydration import hydrate
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.sources.origin import KAFKA
from lithify.model.sources.source import IngestRequest
from lithify.ports.store import Warehouse
from lithify.service.ingest.ingest import ingest
from lithify.service.ingest.known_sources import check_one_can_begin
from lithify.service.read.fetch import open_log
from support.faults.ports import Outage, faulty
from support.kafka.tables import expected_table, stored_table
from support.topics.listed_source import ListedSource
from support.topics.memory_topic import a_warehouse

TRIES_AT_MOST = 200
RECORDS = [Record(b"k%d" % (n % 3), b"v%d" % n, 1_000, partition=0, offset=n) for n in range(6)]
Run = Callable[[Warehouse, list[str]], None]


def ingested(warehouse: Warehouse, events: list[str], *, continuous: bool = True) -> None:
    """As a program does it: the source is not the lake, and stays there."""
    ports = [getattr(port, "_real", port) for port in (warehouse.store, warehouse.files)]
    source = ListedSource(Warehouse(*ports, warehouse.clock), {"orders": {0: RECORDS}}, system="Kafka")
    request = IngestRequest({}, ("orders",), continuous=continuous)
    check_one_can_begin(warehouse.store, KAFKA, request)
    (report,) = ingest(
        warehouse, source, request, lambda _: None, lambda: False, lambda note: events.append(note.event)
    )
    if report.error is not None:
        raise WarehouseError(report.error)


def outages(run: Callable[[Warehouse, list[str]], None], make: Callable[[], Warehouse]) -> None:
    """Each call in turn finds the catalog away."""
    told = 0
    for at in itertools.count(1):
        assert at < TRIES_AT_MOST
        outage, events = Outage(at), list[str]()
        warehouse = make()
        run(faulty(warehouse, outage), events)
        assert events.count("outage") == events.count("recovered") <= 1, (at, outage.calls)
        told += events.count("outage")
        if not outage.reached:
            break
    assert told > 5, "hardly a call was struck"


def test_a_continuous_ingest_waits_for_the_catalog_at_every_call_c50() -> None:
    def run(warehouse: Warehouse, events: list[str]) -> None:
        ingested(warehouse, events)
        real = Warehouse(warehouse.store._real, warehouse.files._real, warehouse.clock)  # type: ignore[attr-defined]
        state = real.store.load(TopicName("default", "orders"))
        assert [r.value for r in open_log(real, state, 0)] == [r.value for r in RECORDS]

    outages(run, a_warehouse)


class FullDisk(Outage):
    """Of the catalog's database, which can be read, but takes no commit but the first for a while."""

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        if name != "commit":
            return action()
        return super().call(name, action)


def test_a_catalog_that_can_be_read_but_takes_no_commits_is_one_outage_c50() -> None:
    """It was one for each try, and over in between."""
    events, full = list[str](), FullDisk(at=2)
    ingested(faulty(a_warehouse(), full), events)
    assert (events.count("outage"), events.count("recovered")) == (1, 1)
    assert len(full.calls) > full.at + 1


def test_a_table_is_kept_up_to_date_through_outages_at_every_call_c50(tmp_path: Path) -> None:
    tables = itertools.count()

    def a_copy() -> Warehouse:
        warehouse = a_warehouse()
        ingested(warehouse, [])
        return warehouse

    def run(warehouse: Warehouse, events: list[str]) -> None:
        real = Warehouse(warehouse.store._real, warehouse.files._real, warehouse.clock)  # type: ignore[attr-defined]
        topic, to = Lake(real).topic("orders"), tmp_path / f"t{next(tables)}.db"
        hydrate(
            replace(topic, warehouse=warehouse),
            str(to),
            continuous=True,
            stops=lambda: events[-1:] == ["waiting"],
            notes=lambda note: events.append(note.event),
        )
        assert stored_table(to, "orders") == expected_table(topic.reader())

    outages(run, a_copy)


def test_an_ingest_that_is_stopped_while_it_waits_has_not_failed_c50() -> None:
    warehouse = a_warehouse()
    source = ListedSource(warehouse, {"orders": {0: RECORDS}}, system="Kafka")
    request, events = IngestRequest({}, ("orders",), continuous=True), list[str]()
    away, stops = faulty(warehouse, Outage(1)), lambda: "outage" in events
    (report,) = ingest(away, source, request, lambda _: None, stops, lambda note: events.append(note.event))
    assert (events, report.error) == (["outage"], None)


def test_one_that_is_to_end_by_itself_waits_for_none() -> None:
    with pytest.raises(WarehouseError, match="Connection refused"):
        ingested(faulty(a_warehouse(), Outage(1)), [], continuous=False)
