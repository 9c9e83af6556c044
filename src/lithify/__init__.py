"""Lithify: log compaction for keyed topics in a data lake, on Spark.

    import lithify

    lake = lithify.open("./lithify-warehouse")
    topic = lake.create_topic("orders", partitions=4, config={"min.compaction.lag.ms": 60_000})
    topic.append([lithify.Record(key=b"k", value=b"v")])
    report = topic.compact()

Importing this package imports no PyIceberg, PyArrow or PySpark; `open` does what it needs to.
"""

from __future__ import annotations

import sys
from os import PathLike, fspath
from typing import TYPE_CHECKING

if sys.version_info < (3, 11):  # noqa: UP036 - before anything that an earlier Python cannot read
    raise ImportError(
        f"Lithify needs Python 3.11, 3.12 or 3.13, and {sys.executable} is Python {sys.version.split()[0]}"
    )

from lithify.errors import LithifyError, RefusedError
from lithify.model.cursor import AtTime, Cursor
from lithify.model.record import Record

if TYPE_CHECKING:
    from lithify.api.lake import Lake
    from lithify.api.topic import Topic

__all__ = ["AtTime", "Cursor", "Lake", "LithifyError", "Place", "Record", "RefusedError", "Topic", "open"]
__version__ = "0.2.0"

Place = Cursor
"""Its first name."""


def open(warehouse: str | PathLike[str] | None = None, *, catalog: str | None = None) -> Lake:
    """A lake at a directory or URI, or behind a catalog that PyIceberg's configuration describes.

    Without arguments: `$LITHIFY_WAREHOUSE` or `$LITHIFY_CATALOG`, or else `./lithify-warehouse`. Raises
    `lithify.errors.WarehouseError` if it cannot be used.
    """
    from lithify.api.lake import open_lake

    return open_lake(None if warehouse is None else fspath(warehouse), catalog=catalog)


def __getattr__(name: str) -> object:
    """`lithify.Lake` and `lithify.Topic`, imported when they are first used."""
    if name in ("Lake", "Topic"):
        from lithify.api import lake

        return getattr(lake, name)
    raise AttributeError(f"module 'lithify' has no attribute {name!r}")
