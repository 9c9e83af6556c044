"""Topics in Spark: `spark.read.format("lithify")`, `readStream`, `write` and `writeStream`.

    from lithify import spark_source

    spark_source.register(spark, warehouse="./lithify-warehouse")
    orders = spark.readStream.format("lithify").option("subscribe", "orders").load()

The composition root of the data source: the readers and writers of `lithify.spark.source` on the
services of a warehouse. Importing this module imports PySpark.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lithify.columnar.arrivals.stage import renumbered
from lithify.columnar.files.access import FileAccess
from lithify.errors import LithifyError
from lithify.model.log import TopicState, WrittenBatch
from lithify.model.names import TopicName
from lithify.model.scan import Bound, Offsets, ScanSettings, ScanTask, Subscription
from lithify.model.staged import StagedLog
from lithify.ports.store import Warehouse
from lithify.service.read import scan
from lithify.service.write.append_staged import StagedBatch, append_staged
from lithify.spark.source.source import LithifySource
from lithify.spark.source.topics import Connect
from lithify.wiring import DEFAULT_WAREHOUSE, WAREHOUSE_VARIABLE, open_warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession, warehouse: str | None = None, *, catalog: str | None = None) -> None:
    """Registers the format `lithify` with a session.

    Reads and writes use this warehouse or catalog unless they have an option `warehouse` or `catalog`;
    the default is `$LITHIFY_WAREHOUSE`, or else `./lithify-warehouse`.
    """
    if warehouse is None and catalog is None:
        warehouse = os.environ.get(WAREHOUSE_VARIABLE) or DEFAULT_WAREHOUSE
    if warehouse is not None and "://" not in warehouse:
        warehouse = str(Path(warehouse).expanduser().absolute())  # Spark's processes may have another directory
    source = type("RegisteredSource", (_Source,), {"default": (warehouse, catalog)})
    spark.dataSource.register(source)


class _Source(LithifySource):
    """Opens warehouses. `register` registers a subclass of it with the default one."""

    default: tuple[str | None, str | None] = (None, None)

    def connect(self, warehouse: str | None, catalog: str | None) -> Connect:
        named = (warehouse, catalog) if warehouse or catalog else self.default
        return partial(open_topics, *named)


def open_topics(warehouse: str | None, catalog: str | None) -> WarehouseTopics:
    """The topics of a warehouse or catalog, for the driver and, where a file is missing, for a task."""
    return WarehouseTopics(open_warehouse(warehouse, catalog))


@dataclass(frozen=True, slots=True)
class WarehouseTopics:
    """The topics of a warehouse for the data source; each method calls a service."""

    warehouse: Warehouse

    @property
    def access(self) -> FileAccess:
        access = self.warehouse.files.access
        assert isinstance(access, FileAccess)  # what `open_warehouse` makes
        return access

    def now_ms(self) -> int:
        return self.warehouse.clock.now_ms()

    def new_id(self) -> str:
        return self.warehouse.clock.new_id()

    def state(self, name: TopicName) -> TopicState:
        return self.warehouse.store.load(name)

    def subscribed(self, subscription: Subscription) -> tuple[TopicState, ...]:
        return scan.subscribed(self.warehouse, subscription)

    def offsets_at(
        self, states: Iterable[TopicState], bound: Bound, settings: ScanSettings
    ) -> dict[str, dict[int, int]]:
        return scan.offsets_at(self.warehouse, states, bound, settings)

    def plan_tasks(
        self, states: Iterable[TopicState], start: Offsets, end: Offsets, settings: ScanSettings
    ) -> tuple[ScanTask, ...]:
        return scan.plan_tasks(self.warehouse, states, start, end, settings)

    def why_missing(self, task: ScanTask, path: str) -> LithifyError | None:
        return scan.why_missing(self.warehouse, task, path)

    def append_staged(self, topic: TopicName, logs: Sequence[StagedLog], batch: WrittenBatch | None) -> TopicState:
        renumber = partial(renumbered, self.access)
        return append_staged(self.warehouse, renumber, StagedBatch(topic, tuple(logs), batch))
