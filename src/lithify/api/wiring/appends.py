"""The notes of appends with idempotency keys, in the database that the gateways of a warehouse share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lithify.api.wiring.shared_place import shared_place
from lithify.errors import RefusedError
from lithify.ports.store import Warehouse

if TYPE_CHECKING:
    from lithify.coordination.leases.gateways.appends_sql import SqlAppendNotes


def append_notes_of(warehouse: Warehouse, url: str | None) -> SqlAppendNotes | None:
    """The notes in the database at `url`, by default `$LITHIFY_COORDINATION_URL`, else in the catalog's own.

    None if there is none that gateways share: then appends take no keys. Raises `CoordinationError` for an invalid URL.
    """
    if warehouse.doubles is not None:
        return None
    from lithify.coordination.leases.gateways.appends_sql import open_append_notes

    try:
        return open_append_notes(*shared_place(warehouse, url, makes=True, creates=True))
    except RefusedError:
        return None
