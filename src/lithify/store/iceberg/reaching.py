"""Work with files and catalog, whose errors are raised as errors of a warehouse.

`error_mapping` defines which error that is. It has the errors of every library, so it imports all of them: half a
second, which only work that fails takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lithify.errors import LithifyError


@contextmanager
def reaching(where: str) -> Iterator[None]:
    """Turns every failure of files and catalog into a `WarehouseError`."""
    try:
        yield
    except LithifyError:
        raise
    except Exception as error:
        from lithify.store.iceberg.error_mapping import warehouse_error

        raise warehouse_error(where, error) from error


@contextmanager
def writing(where: str) -> Iterator[None]:
    """Turns an `OSError` of writing a file into a `WarehouseError`."""
    try:
        yield
    except OSError as error:
        from lithify.store.iceberg.error_mapping import warehouse_error

        raise warehouse_error(where, error) from error
