"""One warehouse is one, whatever it is called: all that processes share, by every spelling of its place (C73)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.utils.config import Config
from sqlalchemy import text

import lithify
from lithify import Lake, Record
from lithify.api.wiring import cleaner_notes, groups_of, open_warehouse
from lithify.api.wiring.completion_names import CompletionNames
from lithify.api.wiring.replicas import replicas_of
from lithify.api.wiring.scopes import scope_of, source_of
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.lease_scopes import SCOPES
from lithify.errors import CoordinationError, RefusedError
from lithify.store.iceberg import IcebergStore
from store.rest_catalog import a_rest_catalog

PARTITIONS = 4


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake with a topic, and a link to the folder that it is in."""
    made = tmp_path / "disk" / "lake"
    lake = lithify.open(str(made))
    lake.create_topic("orders", partitions=PARTITIONS).append([Record(b"k%d" % n, b"v") for n in range(40)])
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return made


SPELLINGS: dict[str, Callable[[Path], str]] = {
    "its path": str,
    "with a slash": lambda folder: f"{folder}/",
    "with two": lambda folder: str(folder).replace("/lake", "//lake"),
    "a link": lambda _: "link/lake",
    "relative": lambda _: "disk/lake",
    "by way of its parent": lambda _: "./link/../link/lake/",
    "of the user": lambda _: "~/disk/lake",
    "a URI": lambda folder: f"file://{folder}",
    "as Hadoop writes it": lambda folder: f"file:{folder}",
}


@pytest.fixture(params=["the catalog's own", "another"])
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    if request.param == "the catalog's own":
        return None
    monkeypatch.setenv("LITHIFY_COORDINATION_URL", url := f"sqlite:///{tmp_path}/shared.db")
    return url


def opened(folder: Path) -> Iterator[tuple[str, Lake]]:
    for spelling, place in SPELLINGS.items():
        yield spelling, lithify.open(place(folder))


def test_all_that_processes_share_is_the_same_by_every_spelling_c73(folder: Path, database: str | None) -> None:
    first = lithify.open(str(folder))
    first.replicas().add("orders", "./backup", name="r")
    with first.topic("orders").reader(group="g") as reader:
        assert len(list(reader)) == 40
        reader.commit()
    cleaner = first.cleaner(cleaner_id="c", coordination_url=database)
    positions = groups_of(first.warehouse, None).positions()
    for spelling, lake in opened(folder):
        assert groups_of(lake.warehouse, None).positions() == positions, spelling
        assert [one.name for one in lake.replicas().definitions()] == ["r"], spelling
        assert lake.cleaner(cleaner_id="d").options.scope == cleaner.options.scope, spelling
        with pytest.raises(RefusedError, match="itself"):
            lake.replicas().add("orders", str(folder))
        with pytest.raises(RefusedError, match=r"itself|already"):
            lake.replicas().add("orders", "./link/../backup", name="other")
    assert len(positions) == PARTITIONS


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_replica_inside_of_its_source_is_refused_by_every_spelling_c73(folder: Path, spelling: str) -> None:
    lake = lithify.open(str(folder))
    place = SPELLINGS[spelling](folder).rstrip("/")
    for where, said in (("", "itself"), ("/inside", "inside the other")):
        with pytest.raises(RefusedError, match=said):
            lake.replicas().add("orders", f"{place}{where}")


@pytest.mark.parametrize("scheme", ["s3a", "s3n", "S3", "S3A"])
def test_a_bucket_is_one_by_every_scheme_c73(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """Of two catalogs that keep files in one folder, neither is to be a replica of the other one."""
    places = {"a": "s3://bucket/lake", "b": f"{scheme}://bucket/lake/", "c": f"{scheme}://bucket/lake/inside"}
    for name, place in places.items():
        for key, value in (("TYPE", "sql"), ("URI", f"sqlite:///{tmp_path}/{name}.db"), ("WAREHOUSE", place)):
            monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__{key}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    monkeypatch.setattr(IcebergStore, "identity", lambda *_, **__: None)  # it would ask the bucket for its format
    here, same, inside = (scope_of(lithify.open(catalog=name).warehouse) for name in places)
    assert here.location == same.location
    assert here.holds(inside)
    assert same.holds(inside)
    assert not inside.holds(here)


def test_members_by_a_path_and_by_a_link_share_the_partitions_c73(folder: Path) -> None:
    lakes = [lithify.open(str(folder)), lithify.open("link/lake")]
    with lakes[0].topic("orders").reader(group="g") as first:
        next(iter(first))
        with lakes[1].topic("orders").reader(group="g"):
            held = [lease.name for lease in groups_of(lakes[0].warehouse, None).leases.leases()]
            assert len([name for name in held if "member:" in name]) == 2
            assert len({name.rpartition("@")[2] for name in held}) == 1, "so they see each other"


def test_two_first_openings_at_once_agree_c73(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        places = [str(folder), "link/lake"] * 4
        found = set(pool.map(lambda place: scope_of(open_warehouse(place), makes=True).name, places))
    assert len(found) == 1 and str(folder) not in found.pop()


def test_looks_make_no_identity_c73(folder: Path) -> None:
    lake = lithify.open(str(folder))
    lake.status()
    lake.groups()
    lake.replicas().definitions()
    assert scope_of(lake.warehouse).former is None
    assert scope_of(lake.warehouse).name == f"file://{folder}"


def test_a_catalog_service_by_two_names_is_one_warehouse_c73(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_rest_catalog(tmp_path / "rest") as server:
        names = []
        for name in ("prod", "other"):
            monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__TYPE", "rest")
            monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__URI", server.uri)
            monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
            lake = lithify.open(catalog=name)
            lake.warehouse.store.create_warehouse()
            names.append(scope_of(lake.warehouse, makes=True).name)
        assert names[0] == names[1] != "catalog prod"
        stream = lake.warehouse.store
        stream.create_stream("lithify_warehouse", {})
        stream.drop_stream("lithify_warehouse")
        assert scope_of(lithify.open(catalog="prod").warehouse).name == names[0], "it outlives a stream of that name"


def as_before(folder: Path, url: str, scope: str) -> None:
    """What a version without identities has left in a database: all under the place."""
    engine = engine_at(url)
    with engine.begin() as connection:
        tables = [row[0] for row in connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'"))]
        for table in tables:
            columns = [row[1] for row in connection.execute(text(f"PRAGMA table_info({table})"))]
            for column in {"scope", "target_scope"} & {*columns} if table.startswith("lithify_") else ():
                place = f"file://{folder}" if column == "scope" else scope
                connection.execute(text(f"UPDATE {table} SET {column} = '{place}'"))
        connection.execute(text("DROP TABLE IF EXISTS lithify_scopes"))
        if "iceberg_namespace_properties" in tables:
            connection.execute(
                text("DELETE FROM iceberg_namespace_properties WHERE property_key = 'lithify.warehouse-id'")
            )


def prepared(folder: Path, url: str) -> Lake:
    lake = lithify.open(str(folder))
    lake.replicas().add("orders", "./backup", name="r", sync_groups=True)
    with lake.topic("orders").reader(group="g") as reader:
        list(reader)
        reader.commit()
    lithify.open(str(folder.parent.parent / "backup")).warehouse.store.create_warehouse()
    for place in {url, f"sqlite:///{folder}/catalog.db"}:
        as_before(folder, place, f"file://{folder.parent.parent}/backup")
    return lithify.open(str(folder))


def test_what_was_stored_under_the_place_is_taken_over_once_c73(folder: Path, database: str | None) -> None:
    url = database or f"sqlite:///{folder}/catalog.db"
    lake = prepared(folder, url)
    before = groups_of(lake.warehouse, None).positions()
    assert len(before) == PARTITIONS, "who only looks finds it under the place"
    assert [one.name for one in lake.replicas().definitions()] == ["r"]
    with ThreadPoolExecutor(4) as pool:
        places = [str(folder)] * 4
        found = list(pool.map(lambda place: groups_of(open_warehouse(place), None, makes=True).positions(), places))
    assert found == [before] * 4
    assert {*CompletionNames(warehouse=str(folder)).groups()} == {"g"}
    (definition,) = replicas_of(lake.warehouse, None).definitions()
    assert definition.scope == scope_of(lake.warehouse).name != f"file://{folder}"
    daemon = lake.replicas().daemon(interval_ms=100)
    assert daemon.run(once=True) and not daemon.failed
    assert lithify.open("backup").topic("orders").info()
    (definition,) = replicas_of(lake.warehouse, None).definitions()
    assert not definition.target_scope.startswith("file:")
    lake.group("g").delete()
    assert groups_of(lithify.open("link/lake").warehouse, None, makes=True).positions() == ()
    assert groups_of(lithify.open(str(folder)).warehouse, None, makes=True).positions() == (), "once"
    with engine_at(url).connect() as connection:
        assert connection.execute(SCOPES.select()).all() == [(f"file://{folder}", scope_of(lake.warehouse).name)]


def test_a_program_of_an_earlier_version_goes_on_with_its_own_positions_c73(folder: Path, database: str | None) -> None:
    url = database or f"sqlite:///{folder}/catalog.db"
    lake = prepared(folder, url)
    assert len(groups_of(lake.warehouse, None, makes=True).positions()) == PARTITIONS
    with engine_at(url).begin() as connection:
        left = f"FROM lithify_positions WHERE scope = 'file://{folder}'"
        assert connection.execute(text(f"SELECT count(*) {left}")).scalar() == PARTITIONS
        connection.execute(text(f"UPDATE lithify_positions SET position = 1 WHERE scope = 'file://{folder}'"))
    again = groups_of(lithify.open(str(folder)).warehouse, None, makes=True).positions()
    assert all(position.cursor.offset > 1 for position in again), "what it commits from then on counts for it alone"


def test_a_group_does_not_begin_anew_where_the_catalog_has_lost_the_identity_c73(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITHIFY_COORDINATION_URL", f"sqlite:///{tmp_path}/shared.db")
    lake = lithify.open(str(folder))
    with lake.topic("orders").reader(group="g") as reader:
        assert len(list(reader)) == 40
        reader.commit()
    lake.replicas().add("orders", "./backup", name="r")
    identity, catalog = scope_of(lake.warehouse).name, source_of(lake.warehouse).existing()
    assert catalog is not None
    catalog.drop_namespace("lithify_warehouse")  # by a user who tidies up
    again = lithify.open("link/lake")
    with pytest.raises(CoordinationError, match=identity):
        lithify.open(str(folder)).replicas().daemon(interval_ms=100).run(once=True)
    with (
        again.topic("orders").reader(group="g") as reader,
        pytest.raises(RefusedError, match="everything again") as refused,
    ):
        next(reader.batches())
    assert identity in str(refused.value) and "lithify.warehouse-id" in str(refused.value)
    with again.topic("orders").reader(group="new") as reader:
        assert len(list(reader)) == 40
    catalog.update_namespace_properties("lithify_warehouse", updates={"lithify.warehouse-id": identity})  # as docs say
    with lithify.open(str(folder)).topic("orders").reader(group="g") as reader:
        assert list(reader) == []


def test_a_group_does_not_begin_anew_by_a_place_by_which_it_was_not_read_before_c73(
    folder: Path, database: str | None
) -> None:
    lake = prepared(folder, database or f"sqlite:///{folder}/catalog.db")
    by_link = lithify.open("link/lake")
    with (
        by_link.topic("orders").reader(group="g") as reader,
        pytest.raises(RefusedError, match=f"file://{folder}") as it,
    ):
        next(reader.batches())
    assert "open the warehouse once by that place" in str(it.value)
    with lake.topic("orders").reader(group="g") as reader:
        assert list(reader) == []
    with by_link.topic("orders").reader(group="g") as reader:
        assert list(reader) == []


def test_a_stream_may_have_the_name_of_the_namespace_of_the_identity_c73(folder: Path, database: str | None) -> None:
    """Created before the identity and after it, with topics and without, dropped with its attributes, and repaired."""
    url = database or f"sqlite:///{folder}/catalog.db"
    lake = lithify.open(str(folder))
    lake.create_topic("lithify_warehouse/first")
    assert scope_of(lake.warehouse).former is None, "that is no identity"
    found = scope_of(lake.warehouse, makes=True).name
    assert not found.startswith("file:") and url
    store = lake.warehouse.store
    lake.delete_topic("lithify_warehouse/first")
    store.create_stream("lithify_warehouse", {"retention.ms": "5"})
    store.drop_stream("lithify_warehouse")
    assert "lithify_warehouse" not in store.streams()
    lake.create_topic("lithify_warehouse/second").append([Record(b"k", b"v")])
    assert scope_of(open_warehouse("link/lake"), makes=True).name == found


def test_a_user_who_may_only_read_sees_what_is_there_c73(folder: Path) -> None:
    lake = lithify.open(str(folder))
    with lake.topic("orders").reader(group="g") as reader:
        list(reader)
        reader.commit()
    as_before(folder, f"sqlite:///{folder}/catalog.db", "")
    (folder / "catalog.db").chmod(0o444)
    folder.chmod(0o555)
    try:
        assert len(groups_of(open_warehouse(str(folder)), None).positions()) == PARTITIONS
        assert cleaner_notes(open_warehouse(str(folder)), None) == ()
    finally:
        folder.chmod(0o755)
        (folder / "catalog.db").chmod(0o644)
