"""The identity of a warehouse: random, made once, and stored in its catalog (C73).

    property lithify.warehouse-id of the namespace lithify_warehouse        there is no stream of that name
                                           or lithify_warehouse_id          there is one, which has none

Catalogs create a namespace at most once. So of two programs that make it at the same time, one succeeds, and the other
one reads what that one has stored. Only where a program may create none, and an administrator has, is it added to one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from pyiceberg.exceptions import NoSuchNamespaceError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

NAMESPACES = (("lithify_warehouse",), ("lithify_warehouse_id",))
PROPERTY = "lithify.warehouse-id"
TRIES = 3


def made_identity(catalog: Catalog, new_id: Callable[[], str]) -> str | None:
    """The identity, made if there is none yet; None if the catalog stores none, or not for this user.

    Raises what the catalog raises if it cannot be read.
    """
    identity = stored_identity(catalog)
    for _ in range(TRIES):
        if identity is not None:
            break
        with suppress(Exception):  # another program was faster, or it stores none: what is read then tells
            _store(catalog, f"{new_id()}{new_id()}")
        identity = stored_identity(catalog)
    return identity


def stored_identity(catalog: Catalog) -> str | None:
    return next((identity for space in NAMESPACES if (identity := _stored(catalog, space)) is not None), None)


def has_identity(catalog: Catalog, namespace: tuple[str, ...]) -> bool:
    """Whether the identity of the warehouse is a property of that namespace, which may also be one of a stream."""
    return namespace in NAMESPACES and _stored(catalog, namespace) is not None


def _stored(catalog: Catalog, namespace: tuple[str, ...]) -> str | None:
    try:
        return catalog.load_namespace_properties(namespace).get(PROPERTY)
    except (NoSuchNamespaceError, NotImplementedError):
        return None


def _store(catalog: Catalog, identity: str) -> None:
    own, beside_a_stream = NAMESPACES
    properties = {PROPERTY: identity}
    try:
        catalog.create_namespace(own, properties)
    except Exception:
        catalog.load_namespace_properties(own)  # raises unless it is there, and so is the reason
        if stored_identity(catalog) is not None:
            return
        try:
            catalog.create_namespace(beside_a_stream, properties)
        except Exception:
            if stored_identity(catalog) is None:
                catalog.update_namespace_properties(own, updates=properties)
