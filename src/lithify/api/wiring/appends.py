"""The notes of appends with idempotency keys, in the database that the gateways of a warehouse share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lithify.api.wiring import COORDINATION_VARIABLE
from lithify.api.wiring.scopes import database_of, scope_of, source_of
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

    url = url or os.environ.get(COORDINATION_VARIABLE) or None
    catalog = database_of(source_of(warehouse).created() if url is None else None)
    try:
        return open_append_notes(url, catalog, scope_of(warehouse, makes=True))
    except RefusedError:
        return None
