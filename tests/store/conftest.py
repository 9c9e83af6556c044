"""Places and engines that several test modules use.

The conformance suite asserts in plain modules, whose failures should tell as much as a test's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog

from lithify.testing.fake_clock import FakeClock
from support.store.builders import NOW_MS, Place, an_iceberg_place
from support.store.catalogs import Faults, FaultySource

pytest.register_assert_rewrite("store.conformance")


SCANS = """
import duckdb, json, sys
from importlib.util import find_spec
from pathlib import Path

connection = duckdb.connect()
for extension in ("avro", "iceberg"):
    package = find_spec(f"duckdb_extension_{extension}").submodule_search_locations[0]
    connection.load_extension(str(next(Path(package).rglob("*.duckdb_extension"))))
print(json.dumps([sorted(connection.sql(query).fetchall()) for query in json.loads(sys.argv[1])]))
"""


@pytest.fixture(scope="session")
def in_duckdb() -> Callable[[Sequence[str]], list[list[tuple[object, ...]]]]:
    """The rows that DuckDB, in its own environment, gives for each query, sorted."""

    def rows(queries: Sequence[str]) -> list[list[tuple[object, ...]]]:
        python = Path(sys.prefix) / "engines" / "bin" / "python"
        assert python.exists(), "run `scripts/setup dev`"
        command = [str(python), "-c", SCANS, json.dumps(list(queries))]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return [[tuple(row) for row in found] for found in json.loads(result.stdout)]

    return rows


@pytest.fixture
def iceberg(tmp_path: Path) -> Place:
    """The Iceberg store on a warehouse that is not there yet."""
    return an_iceberg_place(tmp_path / "warehouse", FakeClock())


@pytest.fixture
def faults() -> Faults:
    """What becomes of the commits on `place`."""
    return Faults()


@pytest.fixture
def place(tmp_path: Path, faults: Faults) -> Place:
    """The Iceberg store over a catalog whose commits can be struck."""
    return an_iceberg_place(tmp_path, FakeClock(NOW_MS), FaultySource(str(tmp_path / "warehouse"), faults))


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Catalog]:
    """The same warehouse as anyone opens it who has PyIceberg and does not know Lithify."""
    folder = tmp_path / "warehouse"
    folder.mkdir(exist_ok=True)
    catalog = load_catalog("lithify", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    yield catalog
    catalog.close()
