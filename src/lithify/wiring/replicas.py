"""Where replicas are defined, and the warehouses that they are copied to.

    /srv/backup, ./backup, file:///srv/backup     a directory, stored as an absolute path
    prod                                          a catalog that PyIceberg's configuration describes

Definitions are in a database that others read, so no address with a password is stored: such a catalog has a name.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from lithify.errors import RefusedError, WarehouseError
from lithify.model.names import nearest
from lithify.ports.groups import Groups, PositionCopies
from lithify.ports.replicas import Replicas
from lithify.ports.store import Warehouse
from lithify.replicas.world import Place, ReplicaWorld
from lithify.wiring import COORDINATION_VARIABLE, _database_of, _source, groups_of, open_warehouse, scope_of


def replicas_of(warehouse: Warehouse, url: str | None) -> Replicas:
    """Replicas of a warehouse, as `open_replicas` does; the default of `url` is `$LITHIFY_COORDINATION_URL`.

    Raises `WarehouseError` where there is no warehouse: of one that is not mounted, all topics would seem deleted.
    """
    from lithify.leases.replicas_sql import open_replicas

    catalog = _source(warehouse).existing()
    if catalog is None:
        raise WarehouseError(
            f"{scope_of(warehouse)}: there is no warehouse",
            hint="is its disk mounted, and is that where it is? --warehouse and $LITHIFY_WAREHOUSE say so",
        )
    return open_replicas(
        url or os.environ.get(COORDINATION_VARIABLE) or None, _database_of(catalog), scope_of(warehouse)
    )


def replica_world(warehouse: Warehouse, url: str | None) -> ReplicaWorld:
    """What replicas of a warehouse work with. Raises `RefusedError` where they can be defined nowhere."""
    groups = partial(groups_of, warehouse, url)
    return ReplicaWorld(
        warehouse, replicas_of(warehouse, url), open_place, lambda other: replicas_of(other, url), groups
    )


def place_of(text: str) -> str:
    """The place of a warehouse as definitions store it. Raises `RefusedError`."""
    from lithify.columnar.files.access import local_path

    path = local_path(text) if "://" in text else text
    if path is None:
        raise RefusedError(
            f"{text}: a replica goes to a directory or to a catalog, which has a name",
            hint="describe the catalog in .pyiceberg.yaml, with its password, and give its name",
        )
    if "/" in path or path in (".", ".."):
        return os.path.abspath(Path(path).expanduser())  # noqa: PTH100 - resolve() follows links
    _check_configured(path)
    return path


def open_place(place: str) -> Place:
    """The warehouse at a place that a definition names. Raises `WarehouseError`."""
    warehouse = open_warehouse(place) if "/" in place else open_warehouse(catalog=place)
    exists = partial(_exists, warehouse)
    return Place(warehouse, scope_of(warehouse), exists, partial(_groups_at, warehouse))


def _exists(warehouse: Warehouse) -> bool:
    return _source(warehouse).existing() is not None


def _groups_at(warehouse: Warehouse) -> Groups:
    """The groups in the database of a target's own catalog: members there may be told of no other.

    `$LITHIFY_COORDINATION_URL` is for the warehouse of the source, and perhaps lost with it. Raises `RefusedError`.
    """
    from lithify.leases.groups_sql import open_groups

    catalogs = _database_of(_source(warehouse).existing())
    try:
        return open_groups(None, catalogs, scope_of(warehouse))
    except RefusedError:
        raise RefusedError(
            f"{scope_of(warehouse)}: positions of groups cannot be copied there: its catalog is no SQL database that "
            "processes share",
            hint="replicate without --sync-groups, or to a directory or a catalog in SQL",
        ) from None


def copies_into(warehouse: Warehouse) -> PositionCopies | None:
    """The copies of positions into a warehouse; None where none can be copied to it."""
    try:
        return _groups_at(warehouse).copies
    except RefusedError:
        return None


def _check_configured(name: str) -> None:
    """Raises `RefusedError` if there is no catalog of that name."""
    from pyiceberg.utils.config import Config

    config = Config()
    if config.get_catalog_config(name) is None:
        known = config.config.get("catalog")
        names = [str(known_name) for known_name in known] if isinstance(known, dict) else []
        raise RefusedError(
            f"there is no catalog {name} in PyIceberg's configuration",
            hint=nearest(name, names, f"a directory is written ./{name}"),
        )
