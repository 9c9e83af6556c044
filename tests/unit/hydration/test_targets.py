"""What a table is hydrated into, by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.errors import RefusedError
from lithify.hydration.targets import Kind, Target, parse_target


@pytest.mark.parametrize(
    "text, kind, name",
    [
        ("orders.db", Kind.SQLITE, "orders.db"),
        ("orders.SQLite3", Kind.SQLITE, "orders.SQLite3"),
        ("sqlite:orders", Kind.SQLITE, "orders"),
        ("SQLite:orders", Kind.SQLITE, "orders"),
        ("sqlite:orders.duckdb", Kind.SQLITE, "orders.duckdb"),
        ("orders.duckdb", Kind.DUCKDB, "orders.duckdb"),
        ("duckdb:orders.db", Kind.DUCKDB, "orders.db"),
        ("orders.jsonl", Kind.LINES, "orders.jsonl"),
        ("orders", Kind.LINES, "orders"),
        ("orders.json", Kind.LINES, "orders.json"),
        ("./parquet:orders", Kind.LINES, "parquet:orders"),
        ("sqlite:orders.csv", Kind.SQLITE, "orders.csv"),
    ],
)
def test_the_scheme_and_then_the_ending_say_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, kind: Kind, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_target(text) == Target(kind, tmp_path / name)


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert parse_target(str(tmp_path / "link")).path == tmp_path / "real"


@pytest.mark.parametrize(
    "text",
    [
        *(":memory:", "sqlite::memory:"),
        *("", "-", "sqlite:", "folder/", "no/such/folder/x.db", ".", "/dev/null", "duckdb:/dev/null", "SQLite:"),
        *("postgres://user:hunter2@db/shop", "duckdb:s3://bucket/x", "circle", "circle.db", "duckdb:circle"),
        *("n" * 300, "sqlite:" + "n" * 5000, "duckdb:" + "n" * 300, "a\0b", "sqlite:a\0b", "x\udcff.duckdb"),
    ],
)
def test_what_can_be_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "circle.db").symlink_to("circle")
    with pytest.raises(RefusedError) as refused:
        parse_target(text)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *(
            ("parquet:orders", "cannot write tables into parquet"),
            ("sqlite3:orders.jsonl", "cannot write tables into sqlite3"),
        ),
        *(("postgresql:shop", "cannot write tables into postgresql"), ("delta:x", "cannot write tables into delta")),
        *(
            ("orders.parquet", "cannot write .parquet files"),
            ("orders.CSV", "cannot write .CSV files"),
            ("./a/../orders.avro", "cannot write .avro files"),
        ),
    ],
)
def test_another_format_is_not_written_as_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    """`parquet:x` wrote JSON lines into a file of that name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError, match=why):
        parse_target(text)


@pytest.mark.parametrize("content", [b"SQLite format 3\0", b"PAR1", b"\0\0\0\0\0\0\0\0DUCK", b"#!/bin/sh\n", b"\n"])
def test_a_file_of_something_else_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    there = tmp_path / "shop.sqlitedb"
    there.write_bytes(content)
    with pytest.raises(RefusedError, match="not a file of JSON lines"):
        parse_target(str(there))


@pytest.mark.parametrize("content", [b"", b'{"partition":0}\n'])
def test_a_file_of_lines_is_replaced(tmp_path: Path, content: bytes) -> None:
    there = tmp_path / "orders.jsonl"
    there.write_bytes(content)
    assert parse_target(str(there)) == Target(Kind.LINES, there)
