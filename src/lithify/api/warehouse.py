"""The Python API of a lake: what its warehouse can hold, and what fails in it."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.api.shown import lake_html, lake_text
from lithify.ports.store import Warehouse
from lithify.reports.quarantine import QuarantineReport
from lithify.reports.warehouse import UpgradeReport, WarehouseInfo
from lithify.service.change.upgrade import upgrade
from lithify.service.look.quarantine import failing_logs
from lithify.service.look.warehouse import warehouse_info


@dataclass(frozen=True, slots=True, repr=False)
class WholeWarehouse:
    """The part of `Lake` that is about its warehouse: format, features, logs that fail."""

    warehouse: Warehouse

    def __repr__(self) -> str:
        return lake_text(self.warehouse)

    def _repr_html_(self) -> str:
        return lake_html(self.warehouse)

    def info(self) -> WarehouseInfo:
        """The format and features of the warehouse, and how many topics are of which format (C66).

        Raises `UnsupportedFormatError` for a warehouse of a newer Lithify, or `WarehouseError`.
        """
        return warehouse_info(self.warehouse)

    def upgrade(self) -> UpgradeReport:
        """Makes the warehouse one of the newest format, if it is not yet: it may get topics with features (C66).

        Earlier versions of Lithify refuse these. Raises `UnsupportedFormatError` for a warehouse of a newer Lithify,
        or `WarehouseError`, also where there is none yet.
        """
        return upgrade(self.warehouse)

    def quarantine(self) -> QuarantineReport:
        """The logs of all topics whose rounds fail, the worst first (C31). `Topic.release` has them tried again."""
        return failing_logs(self.warehouse)
