"""The composition root: settings in, concrete warehouse, engine and clock out.

The only place that knows which store and which engine there are. PySpark is imported when a round
or a verification first needs it, so that everything else starts no JVM.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from lithify.cleaner.loop import Loop
from lithify.cleaner.options import CleanerOptions, EventListener
from lithify.cleaner.starting import make_loop
from lithify.ports.engine import RewriteEngine
from lithify.ports.inspector import Inspector
from lithify.ports.leases import Coordination
from lithify.ports.repair import Salvage
from lithify.ports.store import Warehouse
from lithify.reports.cleaner_note import CleanerNote
from lithify.reports.ingest import IngestReport, IngestRequest, TellBatch
from lithify.service.look.overview import StatusWatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lithify.store.iceberg.catalog.embedded import CatalogSource

DEFAULT_WAREHOUSE = "./lithify-warehouse"
WAREHOUSE_VARIABLE = "LITHIFY_WAREHOUSE"
COORDINATION_VARIABLE = "LITHIFY_COORDINATION_URL"


_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's clock, and ids from its random source."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        # Goes on while the machine is suspended, where there is such a clock: others' leases do not wait.
        return time.clock_gettime_ns(_STEADY) // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def new_id(self) -> str:
        return uuid.uuid4().hex[:12]


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """The session to work on: one that exists, or a local one made with these settings."""

    session: SparkSession | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


def open_warehouse(warehouse: str | None = None, catalog: str | None = None) -> Warehouse:
    """The warehouse at a directory or URI, or behind a catalog that PyIceberg's own files describe.

    Without either it is `$LITHIFY_WAREHOUSE`, or else `./lithify-warehouse`. Raises `WarehouseError`.
    """
    from lithify.store.configuration import check_configuration

    check_configuration()
    from lithify.store.iceberg import open_store

    if warehouse is None and catalog is None:
        warehouse = os.environ.get(WAREHOUSE_VARIABLE) or DEFAULT_WAREHOUSE
    clock = SystemClock()
    store, files = open_store(warehouse, catalog, clock.new_id)
    return Warehouse(store, files, clock)


def spark_engine(warehouse: Warehouse, choice: SparkChoice) -> RewriteEngine:
    """The engine that does rounds on Spark. Starts nothing until a round is opened."""
    from lithify.spark.engine import SparkEngine
    from lithify.spark.session.start import session_factory, slots
    from lithify.spark.tasks import Pace, Workers

    pace = Pace(time.monotonic, time.sleep)
    workers = Workers(warehouse.files.access, slots(choice.session, choice.conf), pace, warehouse.clock.new_id)
    return SparkEngine(session_factory(choice.session, choice.conf), workers)


def tasks_at_once() -> int:
    """How many tasks a round would do at once, on the session that is active or else on a local one.

    Imports no Spark: where nothing else has, no session is active.
    """
    if "pyspark" not in sys.modules:
        return os.cpu_count() or 1
    from lithify.spark.session.start import slots

    return slots(None, {})


def spark_inspector(warehouse: Warehouse, choice: SparkChoice) -> Inspector:
    """What `verify` compares versions with, on Spark."""
    from lithify.spark.proof.inspector import SparkInspector
    from lithify.spark.session.start import session_factory

    return SparkInspector(session_factory(choice.session, choice.conf), warehouse.files.access, warehouse.clock.new_id)


def kafka_ingest(
    warehouse: Warehouse,
    choice: SparkChoice,
    jars: str | None,
    request: IngestRequest,
    tell: TellBatch,
    stops: Callable[[], bool],
) -> tuple[IngestReport, ...]:
    """Copies topics of a Kafka cluster on a session that has Spark's Kafka connector.

    Raises `ConnectorError`, `BrokerError` or `UnknownSourceError` where nothing can begin.
    """
    from lithify.kafka.ingest.source import KafkaSource
    from lithify.service.ingest.ingest import ingest
    from lithify.spark.kafka.connector import connector_conf
    from lithify.spark.session.start import session_factory

    conf = connector_conf(jars, choice.conf) if choice.session is None else choice.conf
    with KafkaSource(session_factory(choice.session, conf)(), request, stops) as source:
        return ingest(warehouse, source, request, tell, stops)


def salvage_of(warehouse: Warehouse) -> Salvage:
    """What is left of topics in a warehouse, also where its catalog is lost."""
    from lithify.store.iceberg.salvage import IcebergSalvage

    return IcebergSalvage(_source(warehouse))


FAIR = {"spark.scheduler.mode": "FAIR"}
"""So that the rounds of a cleaner's threads go on side by side, and a small one need not wait for a large one."""


def cleaner_loop(
    warehouse: Warehouse, choice: SparkChoice, options: CleanerOptions, coordination: Coordination, tell: EventListener
) -> Loop:
    """A cleaner of all topics of a warehouse, not started yet."""
    engine = spark_engine(warehouse, SparkChoice(choice.session, {**FAIR, **choice.conf}))
    return make_loop(warehouse, engine, coordination, options, tell)


def coordination_of(warehouse: Warehouse, url: str | None) -> Coordination:
    """Where the leases of cleaners are: at `url`, else in the catalog's own database, else in memory alone.

    Raises `CoordinationError` or `RefusedError` for a URL that cannot be used.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    from lithify.leases.memory import MemoryCoordination
    from lithify.leases.sql import of_engine, open_coordination

    if url is not None:
        return open_coordination(url)
    catalog = _source(warehouse).created()
    return of_engine(catalog.engine) if isinstance(catalog, SqlCatalog) else MemoryCoordination()


def status_watch(warehouse: Warehouse) -> StatusWatch:
    """What looks at all topics of a warehouse, and asks when their cleaners last did."""
    return StatusWatch(warehouse, partial(cleaner_notes, warehouse, os.environ.get(COORDINATION_VARIABLE) or None))


def cleaner_notes(warehouse: Warehouse, url: str | None) -> tuple[CleanerNote, ...] | None:
    """What the cleaners of a warehouse say of themselves; None where they have no database that is shared.

    Makes nothing. Raises `CoordinationError`.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    from lithify.leases.sql import of_engine, open_coordination

    catalog = _source(warehouse).existing()
    if url is not None:
        coordination: Coordination = open_coordination(url, makes_table=False)
    elif isinstance(catalog, SqlCatalog):
        coordination = of_engine(catalog.engine, makes_table=False)
    else:
        return None
    scope = scope_of(warehouse)
    return tuple(note for note in coordination.notes() if note.scope == scope) if coordination.shared else None


def scope_of(warehouse: Warehouse) -> str:
    """A name of the warehouse that all its cleaners have for it."""
    source = _source(warehouse)
    return source.root or source.where


def _source(warehouse: Warehouse) -> CatalogSource:
    from lithify.store.iceberg import IcebergStore

    assert isinstance(warehouse.store, IcebergStore)  # what `open_warehouse` makes
    return warehouse.store.source


def machine() -> str:
    """This machine and process, for people."""
    return f"{socket.gethostname()}-{os.getpid()}"
