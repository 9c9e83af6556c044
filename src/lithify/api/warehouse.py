"""The Python API of a lake: what its warehouse can hold, what fails or is lost in it, the rates of its cleaners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.api.limits import Size, rates
from lithify.api.shown import lake_html, lake_text
from lithify.api.wiring import salvage_of
from lithify.model.names import in_order, parse_topic
from lithify.ports.store import Warehouse
from lithify.reports.report import Reports
from lithify.service.documents import throttle

if TYPE_CHECKING:
    from lithify.reports.looks.cleaners import RunningCleaner
    from lithify.reports.quarantine import QuarantineReport
    from lithify.reports.rounds.rate_limits import RatesReport
    from lithify.reports.warehouse import RepairReport, UpgradeReport, WarehouseInfo


@dataclass(frozen=True, slots=True, repr=False)
class WholeWarehouse:
    """The part of `Lake` that is about its warehouse: format, features, rates, logs that fail, topics that are lost."""

    warehouse: Warehouse

    def __repr__(self) -> str:
        return lake_text(self.warehouse)

    def _repr_html_(self) -> str:
        return lake_html(self.warehouse)

    @property
    def where(self) -> str:
        """The place of the warehouse: its folder, its URI or its catalog."""
        return self.warehouse.store.where

    def check_is_there(self) -> None:
        """Raises `WarehouseError` if nothing has created the warehouse yet."""
        self.warehouse.store.check_is_there()

    def info(self) -> WarehouseInfo:
        """The format and features of the warehouse, and how many topics are of which format (C66).

        Raises `UnsupportedFormatError` for a warehouse of a newer Lithify, or `WarehouseError`.
        """
        from lithify.service.look.warehouse import warehouse_info

        return warehouse_info(self.warehouse)

    def upgrade(self) -> UpgradeReport:
        """Upgrades the warehouse to the newest format, if it has an older one: it may get topics with features (C66).

        Earlier versions of Lithify refuse these. Raises `UnsupportedFormatError` for a warehouse of a newer Lithify,
        or `WarehouseError`, even if there is no warehouse yet.
        """
        from lithify.service.change.upgrade import upgrade

        return upgrade(self.warehouse)

    def quarantine(self) -> QuarantineReport:
        """The logs of all topics whose rounds fail, the worst first (C31). `Topic.release` has them tried again."""
        from lithify.service.look.quarantine import failing_logs

        return failing_logs(self.warehouse)

    def running_cleaners(self, *, coordination_url: str | None = None) -> Reports[RunningCleaner]:
        """The cleaners and gateways that share the catalog, and the logs on which each works now.

        They are in the database that `groups` uses; none where they share none. Raises `CoordinationError`.
        """
        from lithify.api.wiring.cleaners import running_cleaners

        return Reports(running_cleaners(self.warehouse, coordination_url))

    def throttle(
        self, *, read_rate: Size | None = None, write_rate: Size | None = None, shared: bool = False
    ) -> RatesReport:
        """Bounds the rounds of each cleaner, or with `shared` of all together, within 10 seconds (C40).

        A limit lasts, also for cleaners that start later; without one these have their own.
        """
        return throttle(self.warehouse, None, rates(read_rate, write_rate), shared=shared)

    def repair(
        self, name: str, repair: bool = False, folder: str | None = None, metadata: str | None = None
    ) -> RepairReport:
        """Plans the recreation of a topic whose catalog entry or metadata is lost; with `repair` does it.

        `folder` and `metadata` choose one of several; `metadata` also has the catalog name commits that it lacks.
        Raises `UnknownTopicError` or `RefusedError`.
        """
        from lithify.service.change import repair as repairing

        request = repairing.RepairRequest(parse_topic(name).whole("repaired"), repair, folder, metadata)
        return repairing.repair(self.warehouse, salvage_of(self.warehouse), request)

    def repairable(self) -> tuple[str, ...]:
        """Names of all topics that the catalog lists, and of those found only as folders in the warehouse."""
        return tuple(map(str, sorted(salvage_of(self.warehouse).topics(), key=in_order)))
