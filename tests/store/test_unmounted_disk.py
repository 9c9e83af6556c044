"""Where a warehouse's disk was unmounted under a writer, nothing is written into the empty mount point.

Only a warehouse that has nothing yet gets its folder.
"""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

import pytest

from lithify.api.lake import Lake
from lithify.columnar.files.access import FileAccess
from lithify.errors import WarehouseError
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.service.change.alter import alter
from lithify.service.write.append import append
from lithify.store.iceberg import open_store
from lithify.store.iceberg.io.documents import write_document
from lithify.testing.fake_clock import FakeClock
from support.faults.ports import Freezer, faulty, outcome
from support.faults.topics import NAME
from support.store.catalogs import describe_catalog
from support.topics.whole_logs import check_whole

FOLDER = "default/orders-1"


@pytest.fixture
def unmounted(tmp_path: Path) -> Path:
    mount_point = tmp_path / "warehouse"
    mount_point.mkdir()
    return mount_point


def test_no_segment_is_begun(unmounted: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileAccess().create(f"{unmounted}/{FOLDER}/data/partition=0/0.parquet")
    assert list(unmounted.iterdir()) == []


def test_no_document_is_begun(unmounted: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_document(FileAccess(), f"{unmounted}/{FOLDER}/metadata/heartbeat.json", {"time": 1})
    assert list(unmounted.iterdir()) == []


def test_folders_of_a_topic_that_is_there_are_made(unmounted: Path) -> None:
    (unmounted / FOLDER).mkdir(parents=True)
    with FileAccess().create(f"{unmounted}/{FOLDER}/data/partition=0/0.parquet") as sink:
        sink.write(b"PAR1")
    write_document(FileAccess(), f"{unmounted}/{FOLDER}/metadata/heartbeat.json", {"time": 1})
    assert sorted(path.name for path in (unmounted / FOLDER).iterdir()) == ["data", "metadata"]


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """In a folder that is not there yet, of a catalog that is elsewhere."""
    folder = tmp_path / "disk" / "lake" / "warehouse"
    describe_catalog(monkeypatch, type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=folder.as_uri())
    clock = FakeClock(1_000_000)
    return Warehouse(*open_store(None, "prod", clock.new_id), clock)


def test_the_first_topic_of_a_catalog_gets_the_folder_of_its_warehouse(tmp_path: Path, warehouse: Warehouse) -> None:
    lake = Lake(warehouse)
    with pytest.raises(WarehouseError, match="there is no warehouse yet"):
        lake.throttle(read_rate=2**20)
    assert not (tmp_path / "disk").exists()
    lake.create_topic("orders", 1)
    lake.throttle(read_rate=2**20)
    assert sorted(path.name for path in (tmp_path / "disk" / "lake" / "warehouse").iterdir()) == [".lithify", "default"]


def test_no_commit_lands_whose_files_are_in_the_mount_point(tmp_path: Path, warehouse: Warehouse) -> None:
    """C6: it was acknowledged, and the topic was damaged once the disk was mounted again."""
    Lake(warehouse).create_topic("orders", 1)
    append(warehouse, NAME, [Record(b"k", b"v")])
    disk, away = tmp_path / "disk", tmp_path / "away"

    def unmount() -> None:
        disk.rename(away)
        disk.mkdir()

    for at in count(1):
        freezer = Freezer(at, unmount)
        refused = outcome(lambda w, ms=at: alter(w, NAME, {"delete.retention.ms": ms}), faulty(warehouse, freezer))
        if not freezer.reached:
            break
        assert refused is not None
        assert not [path for path in disk.rglob("*") if path.is_file() and path.suffix != ".lock"]
        shutil.rmtree(disk)
        away.rename(disk)
        check_whole(warehouse, NAME)
    assert at > 3
