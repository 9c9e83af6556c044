"""Lets a warehouse hold what the newest format can: `warehouse upgrade` (C66).

It changes one document and no topic. Earlier versions of Lithify continue with the topics that they support, and refuse
topics that get a feature from then on.
"""

from __future__ import annotations

from lithify.model.formats.warehouse import NEWEST_FORMAT
from lithify.ports.store import Warehouse
from lithify.reports.warehouse import UpgradeReport
from lithify.service.documents import put_warehouse_format, warehouse_format


def upgrade(warehouse: Warehouse) -> UpgradeReport:
    """Upgrades the warehouse to the newest format; a repetition changes nothing.

    Raises `UnsupportedFormatError` for one that is newer, or `WarehouseError`, even if there is none yet.
    """
    before = warehouse_format(warehouse.store)
    if before != NEWEST_FORMAT:
        put_warehouse_format(warehouse.store, NEWEST_FORMAT)
    return UpgradeReport(
        warehouse=warehouse.store.where,
        changed=before != NEWEST_FORMAT,
        format_before=before.version,
        format=NEWEST_FORMAT.version,
        features=tuple(sorted(NEWEST_FORMAT.features)),
    )
