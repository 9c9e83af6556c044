"""The composition root: makes the warehouse, engine, clock and leases from settings.

No other module names the concrete store and engine. What only some verbs need is imported when they first need it:
PySpark, so that others start no JVM, and the parts of cleaners, ingests and rounds of Pulsar topics.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lithify.api.wiring.place import default_place
from lithify.api.wiring.scopes import database_of, lacks, scope_of, source_of
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.api.wiring.system_clock import SystemClock
from lithify.columnar.files.ambient_secrets import keep_ambient_secrets
from lithify.errors import BrokerError
from lithify.model.settings.secrets import keep
from lithify.ports.leases import NOTES_TABLE
from lithify.ports.store import Warehouse

if TYPE_CHECKING:
    from lithify.daemons.cleaner.cleaner_options import CleanerOptions, EventListener
    from lithify.daemons.cleaner.loop import Loop
    from lithify.model.cleaner_note import CleanerNote
    from lithify.ports.engine import RewriteEngine, RunLimits
    from lithify.ports.groups import Groups
    from lithify.ports.inspector import Inspector
    from lithify.ports.leases import Coordination
    from lithify.ports.profile import Profile
    from lithify.ports.repair import Salvage
    from lithify.pulsar.bookkeeper import LedgerWriter
    from lithify.pulsar.client import ClientConfig
    from lithify.service.look.overview import StatusWatch
    from lithify.service.pulsar.leftovers import OpenViewLedgers
    from lithify.service.pulsar.partition_round import RoundPorts

COORDINATION_VARIABLE = "LITHIFY_COORDINATION_URL"


@dataclass(frozen=True, slots=True)
class BookKeeperChoice:
    """Where a Pulsar cluster's ledgers are, if its admin interface is not to be used.

    `metadata_url` as Pulsar writes it, such as `zk:host:2181`; `replication` is ensemble, write and ack quorum.
    """

    metadata_url: str | None = None
    replication: tuple[int, int, int] | None = None


def open_warehouse(warehouse: str | None = None, catalog: str | None = None) -> Warehouse:
    """The warehouse at a directory or URI, or behind a catalog that PyIceberg's own files describe.

    Without either it is `default_place()`. Raises `WarehouseError`.
    """
    from lithify.store.configuration import check_configuration

    keep_ambient_secrets()
    check_configuration()
    from lithify.store.iceberg import open_store

    if warehouse is None and catalog is None:
        warehouse, catalog = default_place()
    clock = SystemClock()
    store, files = open_store(warehouse, catalog, clock.new_id)
    return with_groups(Warehouse(store, files, clock), None)


def spark_engine(warehouse: Warehouse, choice: SparkChoice, profile: Profile | None = None) -> RewriteEngine:
    """The engine that does rounds on Spark, and tells `profile` of their tasks. Starts nothing until one is opened."""
    if warehouse.doubles is not None:
        return warehouse.doubles.engine
    from lithify.api.wiring.late_engine import LateEngine

    keep(choice.conf)
    return LateEngine(warehouse, choice, profile)


def tasks_at_once() -> int:
    """The number of parallel tasks of a round, on the active session or else on a local one.

    Does not import PySpark: until another module has, no session is active.
    """
    if "pyspark" not in sys.modules:
        return os.cpu_count() or 1
    from lithify.spark.session.start import slots

    return slots(None, {})


def spark_inspector(warehouse: Warehouse, choice: SparkChoice, limits: RunLimits) -> Inspector:
    """The inspector that compares versions for `verify`, on Spark, at the read rate of `limits`."""
    if warehouse.doubles is not None:
        return warehouse.doubles.inspector
    from lithify.api.wiring.late_engine import workers
    from lithify.spark.proof.inspector import SparkInspector

    return SparkInspector(choice.factory(), workers(warehouse, choice), limits)


def pulsar_ports(
    config: ClientConfig, choice: SparkChoice, jars: str | None, bookkeeper: BookKeeperChoice
) -> RoundPorts:
    """What rounds of live Pulsar topics work on. Raises `ConnectorError` or `BrokerError`; starts no Spark."""
    from lithify.api.wiring.late_views import LateViews
    from lithify.pulsar.bookkeeper import Replication
    from lithify.pulsar.client import Admin
    from lithify.pulsar.live.live_cluster import LiveCluster
    from lithify.pulsar.live.view_ledgers import metadata_store, opened_by
    from lithify.pulsar.rounds.small_views import SmallViews
    from lithify.service.pulsar.partition_round import RoundPorts
    from lithify.spark.pulsar.ledger_opener import LedgerOpener, LiveReaders, find_parts

    parts, clock = find_parts(jars), SystemClock()
    store = metadata_store(config, bookkeeper.metadata_url)
    broker, given = None, bookkeeper.replication
    try:
        broker = Admin(config).runtime_configuration()
    except BrokerError:  # only superusers are told
        if given is None:
            raise
    replication = Replication.of(broker or {}) if given is None else Replication(*given)
    opener = LedgerOpener(parts.pulsar_jars, store, replication)
    readers = LiveReaders.of(config, opener, broker)
    larger = LateViews(choice, readers, opener)
    engine = SmallViews(larger, readers, opener, time.monotonic, time.sleep, clock.new_id)
    return RoundPorts(LiveCluster(config), engine, opened_by(opener), clock)


def pulsar_view_ledgers(config: ClientConfig, jars: str | None, metadata_url: str | None) -> OpenViewLedgers:
    """The ledgers of views of a Pulsar cluster; how to connect to them is found out when they are opened first."""
    from lithify.pulsar.bookkeeper import Replication
    from lithify.pulsar.live.view_ledgers import metadata_store, opened_by
    from lithify.spark.pulsar.ledger_opener import LedgerOpener, find_parts

    def open_ledgers() -> LedgerWriter:
        unused = Replication(1, 1, 1)
        return LedgerOpener(find_parts(jars).pulsar_jars, metadata_store(config, metadata_url), unused)()

    return opened_by(open_ledgers)


def salvage_of(warehouse: Warehouse) -> Salvage:
    """The store's access to remains of topics in a warehouse, even if its catalog is lost."""
    from lithify.store.iceberg.salvage import IcebergSalvage

    return IcebergSalvage(source_of(warehouse))


FAIR = {"spark.scheduler.mode": "FAIR"}
"""The rounds of a cleaner's threads share Spark's slots, so that a small round need not wait for a large one."""


def cleaner_loop(
    warehouse: Warehouse, choice: SparkChoice, options: CleanerOptions, coordination: Coordination, tell: EventListener
) -> Loop:
    """A cleaner of all topics of a warehouse, not started yet."""
    from lithify.daemons.cleaner.loop import make_loop

    engine = spark_engine(warehouse, SparkChoice(choice.session, {**FAIR, **choice.conf}))
    return make_loop(warehouse, engine, coordination, options, tell)


def coordination_of(warehouse: Warehouse, url: str | None) -> Coordination:
    """The leases of cleaners: in the database at `url`, else in the catalog's own, else in memory.

    Raises `CoordinationError` or `RefusedError` for a URL that cannot be used.
    """
    from lithify.coordination.leases.sql_coordination import open_coordination

    return open_coordination(url, database_of(source_of(warehouse).created() if url is None else None))


def groups_of(warehouse: Warehouse, url: str | None, *, makes: bool = False) -> Groups:
    """Consumer groups, as `open_groups` does; the default of `url` is `$LITHIFY_COORDINATION_URL`.

    Who is to change positions `makes` the identity of the warehouse.
    """
    if warehouse.doubles is not None:
        return warehouse.doubles.groups
    from lithify.coordination.leases.groups_sql import open_groups

    url = url or os.environ.get(COORDINATION_VARIABLE) or None
    return open_groups(url, database_of(source_of(warehouse).existing()), scope_of(warehouse, makes=makes))


def with_groups(warehouse: Warehouse, url: str | None) -> Warehouse:
    """The warehouse with the positions of these groups; it connects to the database when they are first used."""
    from lithify.coordination.leases.group_positions import GroupPositionsOf

    return replace(warehouse, groups=GroupPositionsOf(partial(groups_of, warehouse, url, makes=True)))


def status_watch(warehouse: Warehouse) -> StatusWatch:
    """The watch behind `status` without a topic, with the notes of the warehouse's cleaners."""
    from lithify.service.look.overview import StatusWatch

    return StatusWatch(warehouse, partial(cleaner_notes, warehouse, os.environ.get(COORDINATION_VARIABLE) or None))


def cleaner_notes(warehouse: Warehouse, url: str | None) -> tuple[CleanerNote, ...] | None:
    """The notes of cleaners of a warehouse, None if they share no database. Raises `CoordinationError`."""
    if warehouse.doubles is not None:
        return None
    source = source_of(warehouse)
    if url is None and lacks(source, NOTES_TABLE):
        return ()
    from lithify.coordination.leases.sql_coordination import open_coordination

    coordination = open_coordination(url, database_of(source.existing()), makes_table=False)
    if not coordination.shared:
        return None
    scope = scope_of(warehouse)
    return tuple(note for note in coordination.notes() if note.scope in (scope.name, scope.where))


def machine() -> str:
    """The name of this machine and process, as the default id of a cleaner."""
    return f"{socket.gethostname()}-{os.getpid()}"
