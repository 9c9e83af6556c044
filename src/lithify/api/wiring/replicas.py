"""Where replicas are defined, and the warehouses that they are copied to.

    /srv/backup, ./backup, file:///srv/backup     a directory, stored as an absolute path
    prod                                          a catalog that PyIceberg's configuration describes

Definitions are in a database that others read, so no address with a password is stored: such a catalog has a name.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lithify.api.wiring import groups_of, open_warehouse
from lithify.api.wiring.scopes import database_of, scope_of, scope_of_place, source_of
from lithify.api.wiring.shared_place import shared_place
from lithify.daemons.replicas.context import Place, ReplicaContext
from lithify.errors import RefusedError
from lithify.model.names import nearest
from lithify.ports.groups import Groups, PositionCopies
from lithify.ports.store import Warehouse

if TYPE_CHECKING:
    from lithify.coordination.leases.replicas_sql import SqlReplicas


def replicas_of(warehouse: Warehouse, url: str | None, *, makes: bool = False) -> SqlReplicas:
    """Replicas of a warehouse, as `open_replicas` does, where `shared_place` says.

    Raises `WarehouseError` if there is no warehouse: of one that is not mounted, all topics would seem deleted.
    """
    from lithify.coordination.leases.replicas_sql import open_replicas

    return open_replicas(*shared_place(warehouse, url, makes=makes))


def replica_context(warehouse: Warehouse, url: str | None, *, makes: bool = False) -> ReplicaContext:
    """What replicas of a warehouse work with. Raises `RefusedError` if they can be defined nowhere.

    Who is to define or copy replicas `makes` the identities of their warehouses.
    """
    replicas = replicas_of(warehouse, url, makes=makes)

    def open_known(where: str) -> Place:
        place = open_place(where, makes=makes)
        replicas.know(place.scope)
        return place

    return ReplicaContext(
        warehouse,
        scope_of(warehouse),
        replicas,
        open_known,
        lambda other: replicas_of(other, url),
        partial(groups_of, warehouse, url),
    )


def place_of(text: str) -> str:
    """The place of a warehouse as definitions store it. Raises `RefusedError`."""
    from lithify.columnar.files.access import local_path
    from lithify.model.stored_file import local_folder

    path = local_path(text) if "://" in text or text.startswith("file:/") else text
    if path is None:
        raise RefusedError(
            f"{text}: the target of a replica must be a directory or the name of a catalog",
            hint="describe the catalog in .pyiceberg.yaml, with its password, and pass its name",
        )
    if "/" in path or path in (".", ".."):
        return str(local_folder(path))
    _check_configured(path)
    return path


def open_place(place: str, *, makes: bool = False) -> Place:
    """The warehouse at a place that a definition names. Raises `WarehouseError`."""
    warehouse = open_warehouse(place) if "/" in place else open_warehouse(catalog=place)
    exists = partial(_exists, warehouse)
    return Place(warehouse, scope_of_place(warehouse, makes=makes), exists, partial(_groups_at, warehouse))


def _exists(warehouse: Warehouse) -> bool:
    return source_of(warehouse).existing() is not None


def _groups_at(warehouse: Warehouse) -> Groups:
    """The groups in the database of a target's own catalog: members there may be told of no other.

    `$LITHIFY_COORDINATION_URL` is for the warehouse of the source, and perhaps lost with it. Raises `RefusedError`.
    """
    from lithify.coordination.leases.groups_sql import open_groups
    from lithify.coordination.leases.lease_transactions import shared_database

    catalogs = database_of(source_of(warehouse).existing())
    if shared_database(None, catalogs) is None:
        where = scope_of_place(warehouse, makes=False).where
        raise RefusedError(
            f"{where}: committed positions cannot be copied there: its catalog is not an SQL database that processes "
            "share",
            hint="replicate without --sync-groups, or to a directory or a catalog in SQL",
        )
    return open_groups(None, catalogs, scope_of(warehouse, makes=True))


def copies_into(warehouse: Warehouse) -> PositionCopies | None:
    """The copies of positions into a warehouse; None if none can be copied to it."""
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
            hint=nearest(name, names, f"write a directory as ./{name}"),
        )
