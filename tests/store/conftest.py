"""Places that several test modules use.

The conformance suite asserts in plain modules, whose failures should tell as much as a test's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog

from support.fake_clock import FakeClock
from support.store.builders import Place, an_iceberg_place

pytest.register_assert_rewrite("store.conformance")


@pytest.fixture
def iceberg(tmp_path: Path) -> Place:
    """The Iceberg store on a warehouse that is not there yet."""
    return an_iceberg_place(tmp_path / "warehouse", FakeClock())


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Catalog]:
    """The same warehouse as anyone opens it who has PyIceberg and does not know Lithify."""
    folder = tmp_path / "warehouse"
    folder.mkdir(exist_ok=True)
    catalog = load_catalog("lithify", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    yield catalog
    catalog.close()
