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
        ("sqlite:orders.duckdb", Kind.SQLITE, "orders.duckdb"),
        ("orders.duckdb", Kind.DUCKDB, "orders.duckdb"),
        ("duckdb:orders.db", Kind.DUCKDB, "orders.db"),
        ("orders.jsonl", Kind.LINES, "orders.jsonl"),
        ("orders", Kind.LINES, "orders"),
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
    "text", ["", "sqlite:", "folder/", "no/such/folder/x.db", ".", "/dev/null", "duckdb:/dev/null"]
)
def test_what_can_be_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError):
        parse_target(text)
