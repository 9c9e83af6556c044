"""What is read of an embedded catalog without PyIceberg is what PyIceberg's catalog says, also where it fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from lithify.errors import WarehouseError
from lithify.model.names import TopicName
from lithify.store.iceberg.catalog import embedded
from lithify.store.iceberg.catalog.embedded import EmbeddedCatalog
from lithify.store.iceberg.catalog.listing import table_locations
from support.store.builders import ORDERS, Place


def test_rows_are_those_of_the_catalog(iceberg: Place, tmp_path: Path) -> None:
    iceberg.store.create_stream("sales.eu", {"retention.ms": "1000"})
    for name in (ORDERS, TopicName("sales.eu", "orders"), TopicName("default", "it's \" % _")):
        iceberg.create(name)
    source = EmbeddedCatalog(str(tmp_path / "warehouse"))
    rows, catalog = source.rows(), source.existing()
    assert rows is not None and catalog is not None

    assert sorted(rows.locations()) == sorted(table_locations(catalog))
    assert {rows.location(*table) for table, _ in rows.locations()} == {at for _, at in table_locations(catalog)}
    assert rows.location("default", "order_") is None
    stored = catalog.load_namespace_properties(("sales", "eu")).items()
    assert {(key, value) for space, key, value in rows.properties("lithify.stream") if space == "sales.eu"} == {
        (key, value) for key, value in stored if key.startswith("lithify.stream")
    }


def test_a_file_without_the_tables_of_a_catalog_is_opened_as_one(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        connection.execute("CREATE TABLE lithify_leases (name TEXT)")
    connection.close()
    source = EmbeddedCatalog(str(tmp_path))

    assert source.rows() is None
    assert source.existing() is not None
    rows = source.rows()
    assert rows is not None and rows.locations() == []
    assert (rows.has("lithify_leases"), rows.has("lithify_cleaners")) == (True, False)


def test_a_place_without_a_catalog_has_no_rows_and_stays_as_it_is(tmp_path: Path) -> None:
    assert EmbeddedCatalog(str(tmp_path / "nowhere")).rows() is None
    assert list(tmp_path.iterdir()) == []


def broken(file: Path) -> None:
    file.write_bytes(b"SQLite format 3\0" + bytes(4000))


def no_database(file: Path) -> None:
    file.write_bytes(b"no database" * 500)


@pytest.mark.parametrize("harm", [broken, no_database, Path.unlink])
def test_what_is_wrong_with_the_file_is_said_as_ever(
    iceberg: Place, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    iceberg.create()
    by_pyiceberg, by_itself = (EmbeddedCatalog(str(tmp_path / "warehouse")) for _ in range(2))
    harm(tmp_path / "warehouse" / "catalog.db")

    with pytest.raises(WarehouseError) as theirs:
        by_pyiceberg.existing()
    with pytest.raises(WarehouseError) as ours:
        by_itself.rows()

    assert (ours.value.message, ours.value.hint) == (theirs.value.message, theirs.value.hint)


def test_a_file_that_stays_locked_is_said_to_be(
    iceberg: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    iceberg.create()
    monkeypatch.setattr(embedded, "BUSY_TIMEOUT_S", 0)
    holder = sqlite3.connect(tmp_path / "warehouse" / "catalog.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")

    with pytest.raises(WarehouseError, match=r"its catalog.db stayed locked"):
        EmbeddedCatalog(str(tmp_path / "warehouse")).rows()

    holder.close()
