"""The warehouse that is used where none is named."""

from __future__ import annotations

import os

from lithify.errors import WarehouseError

DEFAULT_WAREHOUSE = "./lithify-warehouse"
WAREHOUSE_VARIABLE = "LITHIFY_WAREHOUSE"
CATALOG_VARIABLE = "LITHIFY_CATALOG"


def default_place() -> tuple[str | None, str | None]:
    """The default warehouse or catalog, one of the two.

    It is `$LITHIFY_WAREHOUSE` or `$LITHIFY_CATALOG`, else `./lithify-warehouse`. Raises `WarehouseError` if both
    variables are set. Blanks around a name are removed, as a file of variables may have one after the sign.
    """
    warehouse, catalog = (os.environ.get(name, "").strip() for name in (WAREHOUSE_VARIABLE, CATALOG_VARIABLE))
    if warehouse and catalog:
        raise WarehouseError(
            f"{WAREHOUSE_VARIABLE} and {CATALOG_VARIABLE} are both set",
            hint="unset one of them, or pass a warehouse or a catalog",
        )
    return (None, catalog) if catalog else (warehouse or DEFAULT_WAREHOUSE, None)
