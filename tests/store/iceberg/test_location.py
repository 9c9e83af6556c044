"""The folder of a topic is pinned; only files of ours, in it, are deleted (C47)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table.update import AssertTableUUID, SetLocationUpdate

from lithify.columnar.files.access import local_path, normal_form
from lithify.errors import LocationChangedError
from lithify.ports.store import Warehouse
from lithify.service.change.sweep import sweep
from lithify.service.write.append import append
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.testing.fake_clock import FakeClock
from support.store.builders import ORDERS, Place, some_records

LONG_AFTER_MS = 2**43


def set_location(catalog: Catalog, location: str) -> None:
    """`ALTER TABLE orders SET LOCATION`, as any engine may do."""
    table = catalog.load_table(("default", "orders"))
    catalog.commit_table(
        table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (SetLocationUpdate(location=location),)
    )


def swept_for_days(place: Place) -> list[str]:
    """What sweeps delete that are made long after everything was written."""
    clock, gone = FakeClock(LONG_AFTER_MS), []
    for _ in range(3):
        gone += [f.path for f in sweep(Warehouse(place.store, place.files, clock), ORDERS, delete=True).files]
        clock.advance(86_400_000)
    return gone


RESPELLED: dict[str, Callable[[str], str]] = {
    "without scheme": lambda location: location.removeprefix("file://"),
    "one slash": lambda location: location.replace("file://", "file:"),
    "trailing slash": lambda location: f"{location}/",
    "dots": lambda location: f"{location}/data/..",
    "doubled": lambda location: location.replace("/default/", "//default//"),
}


@pytest.mark.parametrize("spelling", RESPELLED)
def test_the_same_folder_spelled_otherwise_is_the_same_folder(spelling: str, iceberg: Place, foreign: Catalog) -> None:
    """C47: metadata that is written from then on, too, is known to be named."""
    state = iceberg.append(iceberg.create(), some_records("a"))
    set_location(foreign, RESPELLED[spelling](state.location))
    state = iceberg.append(iceberg.store.load(ORDERS), some_records("b"))

    swept_for_days(iceberg)

    FILE_CACHE.clear()
    newest = iceberg.store.load(ORDERS)
    assert newest.location == state.location
    assert [r.key for r in iceberg.records(newest)] == [b"a", b"b"]
    iceberg.append(newest, some_records("c"))


@pytest.mark.parametrize("where", ["", "/elsewhere"], ids=["warehouse", "elsewhere"])
def test_another_folder_is_refused_by_all_and_nothing_in_it_goes(
    where: str, iceberg: Place, foreign: Catalog, tmp_path: Path
) -> None:
    """C47: at the root of the warehouse are other topics and the catalog, elsewhere are files of others."""
    state = iceberg.append(iceberg.create(), some_records("a"))
    root = local_path(state.location.rpartition("/default/")[0]) or ""
    folder = Path(f"{root}{where}")
    folder.mkdir(exist_ok=True)
    (folder / "photo.jpg").write_bytes(b"x")
    before = sorted(path for path in Path(root).rglob("*") if path.is_file())
    set_location(foreign, f"file://{folder}")
    now_there = {*Path(root).rglob("*.metadata.json")} - {*before}

    warehouse = Warehouse(iceberg.store, iceberg.files, FakeClock(LONG_AFTER_MS))
    for verb in (
        lambda: iceberg.store.load(ORDERS),
        lambda: append(warehouse, ORDERS, some_records("b")),
        lambda: sweep(warehouse, ORDERS, delete=True),
        lambda: iceberg.store.drop_topic(ORDERS),
        lambda: iceberg.store.load_at(ORDERS, dict(iceberg.store.change_tokens())[ORDERS]),
    ):
        with pytest.raises(LocationChangedError, match="the location of its table was changed"):
            verb()
    assert sorted({*(p for p in Path(root).rglob("*") if p.is_file())} - now_there) == before

    set_location(foreign, state.location)
    assert [r.key for r in iceberg.records(iceberg.store.load(ORDERS))] == [b"a"]


def test_files_of_others_in_the_folder_stay(iceberg: Place) -> None:
    state = iceberg.append(iceberg.create(), some_records("a"))
    folder = Path(local_path(state.location) or "")
    theirs = [folder / "notes.txt", folder / "data/partition=0/00000-0-someone.parquet", folder / "lithify/README"]
    for file in theirs:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"not ours")
    assert not {str(file) for file in theirs} & {local_path(path) for path in swept_for_days(iceberg)}
    assert all(file.exists() for file in theirs)
    with pytest.raises(ValueError, match="is not a file of"):
        iceberg.store.delete_files(state, [f"{state.location}/notes.txt"])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("file:///a/b", "/a/b", True),
        ("file:/a/b", "/a//b/", True),
        ("s3a://bucket/a/b", "s3://bucket/a/b/", True),
        ("S3N://bucket/a", "s3://bucket/a", True),
        ("file:///a/c/../b", "file:///a/./b", True),
        ("/a/b", "/a/B", False),
        ("s3://b/a", "s3://c/a", False),
        ("s3://b/a//c", "s3://b/a/c", False),
        ("s3://b/a", "gs://b/a", False),
        ("/a", "/ab", False),
    ],
)
def test_one_normal_form_for_all_spellings_of_a_place(one: str, other: str, same: bool) -> None:
    assert (normal_form(one) == normal_form(other)) == same
