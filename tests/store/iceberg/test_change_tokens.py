"""Change tokens from a catalog in SQL: one query for all topics, and no file is opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

from lithify.errors import WarehouseError
from lithify.model.names import TopicName
from lithify.store.iceberg.table_columns import SCHEMA
from lithify.testing.fake_clock import FakeClock
from support.store.builders import ORDERS, Place, an_iceberg_place
from support.store.catalogs import NotingFileIO, NotingSource

TOPICS = 50


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that databases in SQLite get from now on, from us and from SQLAlchemy."""
    seen: list[str] = []
    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(seen.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", traced)  # SQLAlchemy's
    return seen


def test_change_tokens_of_many_topics_are_one_query_and_open_no_file(tmp_path: Path, queries: list[str]) -> None:
    source = NotingSource(str(tmp_path / "warehouse"))
    place = an_iceberg_place(tmp_path, FakeClock(), source)
    names = [TopicName(f"s{n % 7}.of", f"t{n}") for n in range(TOPICS)]
    for name in names:
        place.create(name)
    NotingFileIO.read.clear()
    queries.clear()

    found = list(place.store.change_tokens())

    assert len(queries) == 1
    assert NotingFileIO.read == []
    assert sorted(name for name, _ in found) == sorted(names)
    for name, token in found:
        assert token is not None
        assert token.startswith(place.store.load(name).location)


def test_tables_of_another_catalog_in_the_same_database_are_not_seen(iceberg: Place, tmp_path: Path) -> None:
    iceberg.create()
    folder = tmp_path / "warehouse"
    other = SqlCatalog("another", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/other")
    other.create_namespace("default")
    other.create_table("default.theirs", SCHEMA)
    other.close()

    assert [name for name, _ in iceberg.store.change_tokens()] == [ORDERS]


def test_a_broken_catalog_is_identified_by_its_name(iceberg: Place, foreign: Catalog) -> None:
    iceberg.create()
    assert isinstance(foreign, SqlCatalog)
    foreign.destroy_tables()

    with pytest.raises(WarehouseError, match="warehouse"):
        list(iceberg.store.change_tokens())
