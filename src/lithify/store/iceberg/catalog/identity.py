"""The identity of a warehouse: random, made once, and stored in its catalog (C73).

    property lithify.warehouse-id of the namespace lithify_warehouse

Catalogs create a namespace at most once. So of two programs that make it at the same time, one succeeds, and the other
one reads what that one has stored.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchNamespaceError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

NAMESPACE = ("lithify_warehouse",)
PROPERTY = "lithify.warehouse-id"
TRIES = 3


def made_identity(catalog: Catalog, new_id: Callable[[], str]) -> str | None:
    """The identity, made if there is none yet; None where the catalog stores none, or not for this user.

    Raises what the catalog raises where it cannot be read.
    """
    found = stored_identity(catalog)
    for _ in range(TRIES):
        if found is not None:
            break
        with suppress(Exception):  # another program was faster, or it stores none: what is read then tells
            _store(catalog, f"{new_id()}{new_id()}")
        found = stored_identity(catalog)
    return found


def stored_identity(catalog: Catalog) -> str | None:
    try:
        return catalog.load_namespace_properties(NAMESPACE).get(PROPERTY)
    except (NoSuchNamespaceError, NotImplementedError):
        return None


def has_identity(catalog: Catalog, namespace: tuple[str, ...]) -> bool:
    """Whether the identity of the warehouse is a property of that namespace, which may also be one of a stream."""
    return namespace == NAMESPACE and stored_identity(catalog) is not None


def _store(catalog: Catalog, identity: str) -> None:
    properties = {PROPERTY: identity}
    try:
        catalog.create_namespace(NAMESPACE, properties)
    except NamespaceAlreadyExistsError:
        if stored_identity(catalog) is None:  # it is a stream of that name, which has none
            catalog.update_namespace_properties(NAMESPACE, updates=properties)
