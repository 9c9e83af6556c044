"""A warehouse in trouble: one clear line that says what to do, and nothing lost."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from lithify.api.wiring import SystemClock, groups_of
from lithify.columnar.files.access import local_path
from lithify.errors import CoordinationError, UnknownTopicError, WarehouseError
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.service.documents import put_report
from lithify.store.iceberg import open_store
from lithify.store.iceberg.catalog import embedded as catalog_module
from lithify.testing.fake_clock import FakeClock
from support.servers.disks import an_open_folder, no_file_larger_than, read_only, small_disk
from support.store.builders import NOW_MS, ORDERS, Place, a_report, an_iceberg_place, some_records
from support.store.catalogs import describe_catalog

MIB = 2**20
ORDERS_TABLE = ("default", "orders")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with an_open_folder() as folder:
        yield folder


def refused(call: Callable[[], object], what: str, hint: str) -> None:
    """The call fails with one line for a person: what is wrong and what to do next."""
    with pytest.raises(WarehouseError, match=what) as caught:
        call()
    assert hint in caught.value.hint
    assert "\n" not in str(caught.value)


def test_a_read_only_warehouse_can_be_read_and_not_written(open_folder: Path) -> None:
    place = an_iceberg_place(open_folder / "w", FakeClock())
    state = place.append(place.create(), some_records("a"))
    segments = place.store.segments(state)

    with read_only(open_folder):
        assert place.store.load(ORDERS) == state
        assert place.store.topics() == (ORDERS,)
        assert [r.key for r in place.records(state)] == [b"a"]
        with place.store.commit_lock(ORDERS):
            refused(lambda: place.append(state, some_records("b")), "orders: it is not writable", "make it writable")
        refused(lambda: place.change(state, generation=1), "orders: it is not writable", "make it writable")
        refused(lambda: place.round(state), "orders: it is not writable", "make it writable")
        refused(
            lambda: put_report(place.store, state, "r", a_report(1)), "r.json: it is not writable", "make it writable"
        )
        refused(lambda: place.create(type(ORDERS)("default", "new")), str(open_folder), "make it writable")
        refused(lambda: place.store.drop_topic(ORDERS), str(open_folder), "make it writable")

    assert place.store.load(ORDERS) == state
    assert place.store.segments(state) == segments
    assert place.append(state, some_records("b")).log(0).log_end_offset == 2


def test_a_place_where_no_warehouse_may_be_made(open_folder: Path) -> None:
    place = an_iceberg_place(open_folder / "w", FakeClock())

    with read_only(open_folder):
        assert place.store.topics() == ()
        refused(place.create, f"{open_folder}/w: it is not writable", "make it writable")


def test_a_full_disk_refuses_the_write_and_keeps_what_is_there(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 2 * MIB) as disk:
        place = an_iceberg_place(disk / "w", FakeClock())
        state = place.append(place.create(max_message_bytes=8 * MIB), some_records("a"))
        big = [Record(b"big", os.urandom(4 * MIB), NOW_MS, partition=0)]

        refused(lambda: place.append(state, big), "orders: no space is left", "free some space")

        assert place.store.load(ORDERS) == state
        # The file cut short is named by no version and would be swept; here a person makes room.
        for cut in disk.rglob("*.parquet"):
            if cut.stat().st_size > MIB:
                cut.unlink()
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            while True:
                file.write(b"x" * 512)
        refused(lambda: place.change(state, generation=1), "orders: no space is left", "free some space")
        filler.unlink()
        assert place.append(place.store.load(ORDERS), some_records("b")).log(0).log_end_offset == 2


def test_a_file_that_may_not_grow_refuses_the_write(iceberg: Place) -> None:
    state = iceberg.append(iceberg.create(max_message_bytes=8 * MIB), some_records("a"))
    big = [Record(b"big", os.urandom(4 * MIB), NOW_MS, partition=0)]

    with no_file_larger_than(MIB):
        refused(lambda: iceberg.append(state, big), "larger than this process may write", "free some space")

    assert iceberg.store.load(ORDERS) == state
    assert [r.offset for r in iceberg.records(iceberg.append(state, big))] == [0, 1]


def test_a_folder_that_is_unmounted_while_it_is_used_gets_no_new_catalog(tmp_path: Path) -> None:
    """SQLite makes a file that is not there: it would look like a warehouse, and get what is meant for the real one."""
    folder, away = tmp_path / "lake", tmp_path / "away"
    place = an_iceberg_place(folder, FakeClock())
    state = place.create()
    groups = groups_of(Warehouse(place.store, place.files, SystemClock()), None)
    folder.rename(away)
    folder.mkdir()
    for call in (place.store.topics, lambda: place.store.load(ORDERS), lambda: list(place.store.change_tokens())):
        refused(call, "its catalog.db is missing or cannot be opened", "mount its disk")
    with pytest.raises(CoordinationError) as failure:
        groups.positions()
    assert f"check sqlite+pysqlite:///{folder}/catalog.db" in str(failure.value)
    assert list(folder.iterdir()) == []
    folder.rmdir()
    away.rename(folder)
    assert place.store.load(ORDERS) == state
    assert groups.positions() == ()


def test_what_is_no_warehouse_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "catalog.db").mkdir()

    for name in ("full", "file", "odd"):
        place = an_iceberg_place(tmp_path / name, FakeClock())
        for call in (
            place.create,
            place.store.topics,
            lambda place=place: place.store.load(ORDERS),
            lambda place=place: list(place.store.change_tokens()),
        ):
            refused(call, f"{tmp_path / name} is not a warehouse", "use a warehouse")
    refused(
        an_iceberg_place(tmp_path / "file" / "below", FakeClock()).create,
        "a file is in the place of a folder",
        "move the file",
    )
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.txt"]
    assert (tmp_path / "file").read_text() == "mine"


def test_looking_makes_nothing(tmp_path: Path) -> None:
    place = an_iceberg_place(tmp_path / "not there", FakeClock())

    assert place.store.topics() == ()
    assert list(place.store.change_tokens()) == []
    with pytest.raises(UnknownTopicError):
        place.store.load(ORDERS)
    with place.store.commit_lock(ORDERS), pytest.raises(UnknownTopicError):
        place.store.versions(ORDERS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("warehouse", "catalog", "what"),
    [
        ("s3://bucket/x", None, "not a local directory"),
        (None, None, "no warehouse and no catalog is given, or both are"),
        ("w", "c", "no warehouse and no catalog is given, or both are"),
        ("/tmp/a?b", None, "cannot contain"),
        ("/tmp/a#b", None, "cannot contain"),
        (None, "no-such-catalog-here", "does not describe a catalog no-such-catalog-here"),
    ],
)
def test_a_warehouse_that_cannot_be(warehouse: str | None, catalog: str | None, what: str) -> None:
    with pytest.raises(WarehouseError, match=what):
        open_store(warehouse, catalog, FakeClock().new_id)[0].topics()


def test_a_catalog_file_that_is_none(iceberg: Place, tmp_path: Path) -> None:
    state = iceberg.create()
    (tmp_path / "warehouse" / "catalog.db").write_bytes(b"not a database" * 1000)

    refused(lambda: iceberg.store.load(ORDERS), "catalog.db is not a catalog", "restore a copy")
    refused(lambda: iceberg.change(state, generation=1), "catalog.db is not a catalog", "restore a copy")
    again = an_iceberg_place(tmp_path / "warehouse", FakeClock())
    refused(again.store.topics, "catalog.db is not a catalog", "restore a copy")


def test_a_catalog_that_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_module, "BUSY_TIMEOUT_S", 0.1)
    place = an_iceberg_place(tmp_path / "w", FakeClock())
    state = place.create()
    holder = sqlite3.connect(tmp_path / "w" / "catalog.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")

    refused(lambda: place.store.load(ORDERS), "stayed locked", "stop the program that locks it")
    refused(lambda: place.change(state, generation=1), "stayed locked", "stop the program that locks it")

    holder.execute("ROLLBACK")
    holder.close()
    assert place.change(state, generation=1).log(0).generation == 1


def test_a_catalog_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    store, files = open_store(None, "prod", FakeClock().new_id)
    describe_catalog(monkeypatch, type="rest", uri="http://127.0.0.1:9")

    refused(store.topics, "catalog prod cannot be reached", "configuration")
    refused(lambda: store.load(ORDERS), "catalog prod cannot be reached", "configuration")
    refused(lambda: files.access, "catalog prod cannot be reached", "configuration")


def test_a_catalog_by_name_keeps_topics_beside_other_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    describe_catalog(monkeypatch, type="sql", uri=f"sqlite:///{tmp_path}/prod.db", warehouse=f"file://{tmp_path}/lake")
    store, files = open_store(None, "prod", FakeClock().new_id)
    place = Place(store, files, FakeClock(), lambda _: None)

    state = place.round(place.append(place.create(), some_records("a", "b")))
    catalog: Catalog = store._source.created()
    catalog.create_table(("default", "other"), catalog.load_table(ORDERS_TABLE).schema())

    assert store.topics() == (ORDERS,)
    assert state.location.startswith(f"file://{tmp_path}/lake/default/orders-")
    assert str(dict(store.change_tokens())[ORDERS]).startswith(state.location)
    assert [r.key for r in place.records(store.load(ORDERS))] == [b"a", b"b"]
    store.drop_topic(ORDERS)
    assert not Path(local_path(state.location) or "").exists()
    assert store.topics() == ()
    catalog.close()
