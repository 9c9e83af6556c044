"""A disk that is full at each write of every verb: the verb says so, nothing is lost, and it gets through later.

disk     a file system of its own, filled but for so many blocks: 0, 1, 2, ... until the verb gets through
limit    a process that may write no file larger than so many bytes, which needs no rights: likewise
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from faults.cases import CASES, Case, a_round_of_kernels
from lithify.api.lake import Lake
from lithify.errors import InsufficientSpaceError, LithifyError, WarehouseError
from lithify.model.failure import LogFailure
from lithify.ports.store import Warehouse
from lithify.reports.events import EventKind
from lithify.service.documents import put_failures, put_report
from lithify.service.write.append import append
from lithify.store.iceberg import open_store
from support.engines.kernel import KernelEngine
from support.faults.ports import outcome
from support.faults.topics import IN_PLACE, NAME, SIDE_BY_SIDE, iceberg_warehouse, picture, prepared, records
from support.servers.disks import filled, no_file_larger_than, small_disk
from support.store.builders import a_report
from support.topics.cleaner_lake import CleanerLake
from support.topics.whole_logs import check_whole

DISK_BYTES = 8 * 2**20
MOST_BLOCKS = 100


def note_failures(warehouse: Warehouse) -> None:
    failures = {0: LogFailure(1, 0, 0, 0, "no luck")}
    put_failures(warehouse.store, warehouse.store.load(NAME), failures)


def store_report(warehouse: Warehouse) -> None:
    put_report(warehouse.store, warehouse.store.load(NAME), "r", a_report(1))


VERBS: dict[str, Case] = {
    "append": Case(lambda w: append(w, NAME, records(range(60, 70), keys=6)), IN_PLACE),
    "compact": Case(a_round_of_kernels, IN_PLACE),
    "compact to a view": Case(a_round_of_kernels, SIDE_BY_SIDE),
    "note failures": Case(note_failures, IN_PLACE),
    "store a report": Case(store_report, IN_PLACE),
    "topic create": Case(lambda w: Lake(w).create_topic("another"), IN_PLACE),
    "topic delete": Case(lambda w: w.store.drop_topic(NAME), IN_PLACE, look=lambda w: w.store.topics()),
    **{
        name: CASES[name]
        for name in ("retain", "truncate", "alter", "uncompact", "undo", "sweep", "expire", "throttle")
    },
}
NEED_NO_ROOM = ("sweep",)
"""What makes room must not ask for any."""

BY_FILE = ("append", "compact", "truncate", "alter", "note failures", "throttle", "topic create")
"""Tried file by file as well, for machines on which no file system can be mounted."""

UNSEEN = ("sweep", "note failures", "store a report")
"""What they change is not looked at here."""


@pytest.mark.parametrize("name", VERBS)
def test_a_full_disk_is_reported_and_loses_nothing(name: str, tmp_path: Path) -> None:
    """C6: whichever write finds no room, the topic is as it was, and the verb gets through once there is."""
    case = VERBS[name]
    with small_disk(tmp_path / "small", DISK_BYTES) as disk:
        warehouse = prepared(iceberg_warehouse, disk / "warehouse", case.config)
        before, refused = everything(case, warehouse), 0
        for blocks in count():
            assert blocks < MOST_BLOCKS
            with filled(disk, blocks):
                error = outcome(case.verb, warehouse)
            if error is None:
                break
            refused += 1
            check_told(error, "no space is left", " free")
            assert everything(case, warehouse) == before, f"{blocks} blocks were free"
        assert (refused == 0) == (name in NEED_NO_ROOM), "no write was refused: nothing was tried"
        assert (everything(case, warehouse) == before) == (name in UNSEEN)


@pytest.mark.parametrize("name", BY_FILE)
def test_a_file_that_may_not_get_so_large_is_reported_and_loses_nothing(name: str, tmp_path: Path) -> None:
    """C6: likewise, for every file that the verb writes; and what refused writes left behind blocks no later verb."""
    case = VERBS[name]
    warehouse = prepared(iceberg_warehouse, tmp_path / "one", case.config)
    before = everything(case, warehouse)
    for size_bytes in sizes_written(case, tmp_path / "two"):
        with no_file_larger_than(size_bytes * 3 // 4):  # compressed ones differ a little from run to run
            error = outcome(case.verb, warehouse)
        assert error is not None, f"a file of {size_bytes} bytes was written"
        check_told(error, "larger than this process may write")
        assert everything(case, warehouse) == before, f"files of {size_bytes} bytes could not be written"
    case.verb(warehouse)
    assert (everything(case, warehouse) == before) == (name in UNSEEN)


def sizes_written(case: Case, folder: Path) -> list[int]:
    """The sizes of the files that the verb makes, but for those of the catalog."""
    warehouse = prepared(iceberg_warehouse, folder, case.config)
    before = files_in(folder)
    case.verb(warehouse)
    made = [path for path, _ in files_in(folder) - before]
    catalog_bytes = (folder / "catalog.db").stat().st_size
    sizes = sorted({path.stat().st_size for path in made})
    assert sizes
    assert sizes[-1] < catalog_bytes, "the catalog would be refused first"
    return sizes


def files_in(folder: Path) -> set[tuple[Path, int]]:
    """With the time of their last change."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {(path, path.stat().st_mtime_ns) for path in files if path.name != "catalog.db"}


def everything(case: Case, warehouse: Warehouse) -> object:
    """What the verb changes, and what topics there are; those that are there are whole."""
    topics = warehouse.store.topics()
    for topic in topics:
        check_whole(warehouse, topic)
    return case.look(warehouse), topics


def check_told(error: LithifyError, *whats: str) -> None:
    """One line that says what is wrong, and that nothing was lost."""
    assert isinstance(error, WarehouseError | InsufficientSpaceError), repr(error)
    said = str(error)
    assert "\n" not in said
    assert any(what in said for what in whats), said
    assert isinstance(error, InsufficientSpaceError) or "nothing was lost" in said, said


def test_a_catalog_that_may_not_be_written_is_reported(tmp_path: Path) -> None:
    """C6: SQLite says no more than `disk I/O error` then, and rolls the transaction back."""
    warehouse = prepared(iceberg_warehouse, tmp_path, IN_PLACE)
    before = picture(warehouse)
    with no_file_larger_than(8_000):  # less than SQLite's journal of two pages, more than any file of the topic
        error = outcome(VERBS["append"].verb, warehouse)
    assert picture(warehouse) == before
    assert isinstance(error, WarehouseError), repr(error)


CLEANER_TRIES = 9
RECORDS = 20_000


def test_no_log_is_to_blame_for_a_full_disk(tmp_path: Path) -> None:
    """C31: a cleaner quarantines nothing, and when there is room everything is done."""
    lake = CleanerLake()
    store, files = open_store(str(tmp_path), None, lake.clock.new_id)
    lake.warehouse = Warehouse(store, files, lake.clock)
    engine: Any = KernelEngine(access=files.access)
    lake.engine = engine
    topic, alpha = lake.topic("orders", min_cleanable_dirty_ratio=0), lake.cleaner()
    values = " ".join(f"k{number}={number * 7919 % 10007}" for number in range(RECORDS))
    lake.append(topic, values)
    lake.append(topic, "k1=new")
    with no_file_larger_than(40_000):  # metadata fits in, segments do not
        for _ in range(CLEANER_TRIES):
            alpha.work()
            lake.wait(31 * 60_000)
    assert len(alpha.told(EventKind.FAILED)) == CLEANER_TRIES, alpha.events
    assert alpha.told(EventKind.QUARANTINED) == []
    assert "File too large" in alpha.told(EventKind.FAILED)[-1].facts["error"]
    alpha.work()
    assert len(lake.text(topic).split()) == RECORDS
