"""The program of the page "Migrate away" leaves a plain table, from which Iceberg can expire every old snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import lithify
from support.pages.text import programs


def test_the_table_has_nothing_of_lithifys_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lake = lithify.open("lithify-warehouse")
    topic = lake.create_topic("orders")
    topic.append([lithify.Record(b"k", b"1")])
    topic.append([lithify.Record(b"k", b"2")])
    topic.truncate(0, 1)  # keeps the version before it
    table = SqlCatalog("lithify", uri="sqlite:///lithify-warehouse/catalog.db").load_table("default.orders")
    assert len(table.refs()) > 1
    (program,) = programs("docs/data-out/migrate-away.md")
    exec(program, {})
    table.refresh()
    assert list(table.refs()) == ["main"]
    assert not [name for name in table.properties if name.startswith(("lithify.", "commit.retry"))]
    assert table.scan().to_arrow().column("value").to_pylist() == [b"1"]
    with pytest.raises(lithify.LithifyError, match="Lithify did not create it"):
        lake.topic("orders")
