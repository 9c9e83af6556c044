"""Tables in SQLite and DuckDB files: every change is there as a whole, with its position."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest

from lithify.errors import ConflictError, LithifyError, RefusedError, UnusableEnvironmentError
from lithify.hydration.duckdb_table import DuckDbTable
from lithify.hydration.rows import BusyError, Change, StoredTable, TableName, headers_of, headers_text, row_of
from lithify.hydration.sqlite_table import TEMPORARY, SqliteTable
from lithify.model.record import Record

KINDS = {"SQLite": SqliteTable, "DuckDB": DuckDbTable}
TOPIC = 'an "odd" topic.of-ours'

Opened = Callable[..., StoredTable]


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    with ExitStack() as tables:

        def open_one(name: str = TOPIC, strategy: str = "offset", path: Path | None = None) -> StoredTable:
            table = KINDS[request.param](TableName(path or tmp_path / "file", name, strategy))
            tables.callback(table.close)
            return table

        yield open_one


def rows_there(table: StoredTable, path: Path, name: str = TOPIC) -> list[tuple[object, ...]]:
    """As another program reads them."""
    table.release()
    connect = sqlite3.connect if isinstance(table, SqliteTable) else duckdb.connect
    connection = connect(path)
    try:
        quoted = name.replace('"', '""')
        return list(connection.execute(f'SELECT * FROM "{quoted}" ORDER BY partition, key').fetchall())
    finally:
        connection.close()


def row(key: bytes, offset: int, value: bytes | None = b"v", partition: int = 0) -> tuple[object, ...]:
    return row_of(Record(key, value, 7, (("h", b"x"),), partition, offset))


def test_rows_are_put_replaced_and_deleted_with_the_position(opened: Opened, tmp_path: Path) -> None:
    table = opened()
    assert table.position == ""
    table.apply(
        Change([row(b"a", 0), row(b"b", 1), row(b"\x00\xff", 2, b""), row(b"a", 3, partition=1)], [], {}, "", "p1")
    )
    table.apply(Change([row(b"a", 4, b"new")], [(0, b"b"), (0, b"never there")], {}, "p1", "p2"))
    expected = [
        (0, b"\x00\xff", b"", 2, 7, '[["h", "x"]]'),
        (0, b"a", b"new", 4, 7, '[["h", "x"]]'),
        (1, b"a", b"v", 3, 7, '[["h", "x"]]'),
    ]
    assert rows_there(table, tmp_path / "file") == expected
    table.close()
    again = opened()
    assert again.position == "p2"
    again.apply(Change([row(b"b", 5)], [(0, b"a")], {}, "p2", "p3"))  # what a change has deleted may come back, and go
    again.apply(Change([row(b"a", 6)], [(0, b"b")], {}, "p3", "p4"))
    assert [r[1] for r in rows_there(again, tmp_path / "file")] == [b"\x00\xff", b"a", b"a"]
    again.close()


def test_a_change_that_fails_leaves_everything_as_it_was(opened: Opened, tmp_path: Path) -> None:
    table = opened()
    table.apply(Change([row(b"a", 0)], [], {}, "", "p1"))
    with pytest.raises(LithifyError):
        table.apply(Change([row(b"b", 1), row(b"c", None)], [(0, b"a")], {}, "p1", "p2"))  # type: ignore[arg-type]
    assert [r[1] for r in rows_there(table, tmp_path / "file")] == [b"a"]
    table.apply(Change([row(b"b", 1)], [], {}, "p1", "p2"))
    table.close()
    assert opened().position == "p2"


def test_of_two_that_fill_a_table_one_says_so(opened: Opened, tmp_path: Path) -> None:
    one, two = opened(), opened()
    one.apply(Change([row(b"a", 0)], [], {}, "", "p1"))
    one.release()
    with pytest.raises(ConflictError, match="another run is filling the table"):
        two.apply(Change([row(b"b", 1)], [], {}, "", "other"))
    two.close()
    assert [r[1] for r in rows_there(one, tmp_path / "file")] == [b"a"]
    one.close()


def test_orders_are_those_of_the_table_alone(opened: Opened) -> None:
    table, other = opened(strategy="timestamp"), opened("other", "timestamp")
    low = -(2**63) - 1
    table.apply(Change([row(b"a", 0)], [(0, b"gone")], {(0, b"a"): 2**63 - 1, (0, b"gone"): low}, "", "p1"))
    found = table.orders([(0, b"a"), (0, b"gone"), (0, b"none"), (1, b"a")])
    assert found == {(0, b"a"): 2**63 - 1, (0, b"gone"): low}
    table.release()
    assert other.orders([(0, b"a")]) == {}
    other.close()
    table.close()


def test_several_topics_share_a_file(opened: Opened, tmp_path: Path) -> None:
    for name in ("one", "two"):
        table = opened(name)
        table.apply(Change([row(name.encode(), 0)], [], {}, "", name))
        table.close()
    table = opened("one")
    assert table.position == "one"
    assert [r[1] for r in rows_there(table, tmp_path / "file", "two")] == [b"two"]
    table.close()


def test_a_table_that_was_dropped_is_new(opened: Opened, tmp_path: Path) -> None:
    table = opened("t", "timestamp")
    table.apply(Change([row(b"a", 0)], [], {(0, b"a"): 7}, "", "p1"))
    table.close()
    connection = (sqlite3 if isinstance(table, SqliteTable) else duckdb).connect(tmp_path / "file")
    connection.execute("DROP TABLE t")
    connection.commit()
    connection.close()
    again = opened("t", "timestamp")
    assert (again.position, again.orders([(0, b"a")])) == ("", {})
    again.close()


def test_what_is_not_ours_is_refused(opened: Opened, tmp_path: Path) -> None:
    table = opened("t")
    table.close()
    with pytest.raises(
        RefusedError, match=r"was filled with compaction\.strategy offset, but the topic now has header:v"
    ):
        opened("t", "header:v")
    connection = (sqlite3 if isinstance(table, SqliteTable) else duckdb).connect(tmp_path / "file")
    connection.execute("CREATE TABLE theirs (a INTEGER)")
    connection.commit()
    connection.close()
    with pytest.raises(RefusedError, match="has a table Theirs that Lithify did not create"):
        opened("Theirs")
    text = tmp_path / "text"
    text.write_text("no database, but a text of some length\n" * 100)
    with pytest.raises(RefusedError, match=r"is not a (SQLite|DuckDB) file"):
        opened(path=text)
    with pytest.raises(UnusableEnvironmentError):
        opened(path=tmp_path)
    assert text.read_text().startswith("no database")


HOLD = {
    SqliteTable: "import sqlite3; c = sqlite3.connect(path, isolation_level=None); c.execute('BEGIN IMMEDIATE')",
    DuckDbTable: "import duckdb; c = duckdb.connect(path)",
}


def test_a_file_that_another_program_has_is_busy_for_so_long(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lithify.hydration.sqlite_table.BUSY_S", 0.1)
    table = opened()
    table.release()
    program = f"import sys; path = sys.argv[1]; {HOLD[type(table)]}; print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        for _ in range(2):
            with pytest.raises(BusyError, match="another program"):
                table.apply(Change([row(b"a", 0)], [], {}, "", "p1"))
    table.apply(Change([row(b"a", 0)], [], {}, "", "p1"))
    table.close()


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_removed_or_replaced_is_noticed(
    opened: Opened, tmp_path: Path, released: bool, replaced: bool
) -> None:
    """What is stored would go with it; a file of another program that is there now is left alone."""
    table, file = opened(), tmp_path / "file"
    table.apply(Change([row(b"a", 0)], [], {}, "", "p1"))
    if released:
        table.release()
    file.rename(tmp_path / "moved")
    if replaced:
        file.write_text("of another program")
    with pytest.raises(LithifyError) as raised:
        table.apply(Change([row(b"b", 1)], [], {}, "p1", "p2"))
    assert "removed or replaced" in str(raised.value) or (released and replaced)
    assert file.exists() is replaced
    assert not replaced or file.read_text() == "of another program"
    table.close()


def test_no_bar_is_drawn_where_python_has_no_script(tmp_path: Path) -> None:
    """There DuckDB draws one on stdout for a call that takes two seconds, as in a notebook."""
    program = """
import sys
from lithify.hydration.duckdb_table import DuckDbTable, TableName
with DuckDbTable(TableName(sys.argv[1], "t", "offset"))._opened() as connection:
    print(connection.execute("SELECT current_setting('enable_progress_bar')").fetchone()[0])
"""
    command = [sys.executable, "-c", program, str(tmp_path / "file")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_temporary_one_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = SqliteTable(TableName(TEMPORARY, "t", "offset"))
    table.apply(Change([row(b"b", 1), row(b"a", 2)], [], {}, "", "p1"))
    assert [(r[1], r[3]) for r in table.rows()] == [(b"b", 1), (b"a", 2)]
    table.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "headers", [(), (("h", b"text"), ("h", None)), (("é", "ü".encode()), ("b", b"\xff\x00"), ("", b""))]
)
def test_headers_come_back_as_they_were(headers: tuple[tuple[str, bytes | None], ...]) -> None:
    assert headers_of(headers_text(headers)) == headers


@pytest.mark.parametrize("order", ["abc", "", "9" * 6000, "1.5"])
def test_an_order_that_is_none_is_refused(opened: Opened, order: str) -> None:
    table = opened(strategy="header:version")
    table.apply(Change([row(b"a", 0)], [], {(0, b"a"): 7}, "", "p1"))
    _changed_outside(table, 'UPDATE lithify_orders SET "order" = \'' + order + "'")
    with pytest.raises(RefusedError, match=r"lithify_orders has .*drop the table") as refused:
        table.orders([(0, b"a")])
    assert len(str(refused.value)) < 400


def test_a_position_that_is_none_is_refused(opened: Opened) -> None:
    _changed_outside(opened(), "UPDATE lithify_positions SET position = NULL")
    with pytest.raises(RefusedError, match=r"lithify_positions has None .*drop the table"):
        opened()


def _changed_outside(table: StoredTable, sql: str) -> None:
    path = table._path  # type: ignore[attr-defined]
    table.close()
    connection = (sqlite3.connect if isinstance(table, SqliteTable) else duckdb.connect)(path)
    connection.execute(sql)
    connection.commit()
    connection.close()
    if isinstance(table, SqliteTable):
        table._connection = sqlite3.connect(path, isolation_level=None)


@pytest.mark.parametrize("name", ["lithify_positions", "Lithify_Orders"])
def test_a_topic_named_like_a_table_of_ours_is_refused(opened: Opened, name: str) -> None:
    opened()
    with pytest.raises(RefusedError, match="use a file of JSON lines"):
        opened(name)


def test_a_name_of_sqlites_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="SQLite reserves names that begin with sqlite_, such as sqlite_master"):
        SqliteTable(TableName(tmp_path / "file", "sqlite_master", "offset"))


def test_an_error_of_a_database_is_one_line(opened: Opened) -> None:
    table = opened()
    _changed_outside(table, "ALTER TABLE lithify_positions RENAME COLUMN position TO p")
    with pytest.raises(UnusableEnvironmentError) as raised:
        table.apply(Change([], [], {}, "", "p1"))
    assert "\n" not in str(raised.value)
