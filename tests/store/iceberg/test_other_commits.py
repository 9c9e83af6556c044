"""A catalog that lacks commits which a topic's folder has deletes none of its files (C45).

the catalog    00003                           restored from a dump, or put back by a failover of its database
the folder     00003 ─► 00004 ─► 00005         what was acknowledged since
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import pytest

from lithify.api.lake import Lake
from lithify.errors import RefusedError, UnusualSweepError
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.store.iceberg import open_store
from lithify.store.iceberg.commit import swap
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.store.iceberg.layout import METADATA_FILES_KEPT
from lithify.store.iceberg.store import IcebergStore
from lithify.testing.fake_clock import FakeClock
from support.engines.kernel import compact_without_spark

DAY_MS = 86_400_000


class ManyPrograms(FakeClock):
    """The clock of a program, whose ids no other one has."""

    ids = count(1)

    def new_id(self) -> str:
        return f"run{next(self.ids):04d}"


def opened(folder: Path, later_ms: int = 0) -> Lake:
    """As a program of its own opens it."""
    FILE_CACHE.clear()
    clock = ManyPrograms(time.time_ns() // 1_000_000 + later_ms)
    return Lake(Warehouse(*open_store(str(folder), None, clock.new_id), clock))


def grow(lake: Lake, commits: int) -> None:
    topic = lake.topic("orders")
    for _ in range(commits):
        topic.append([Record(b"k%d" % n, b"v") for n in range(3)])


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*.*") if path.is_file() and "catalog.db" not in path.name}


class Beside:
    """A warehouse with two catalogs, of which one was restored from a dump of the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lake = opened(folder)
        lake.create_topic("orders", 1, config={"versions.retention.ms": "0", "sweep.grace.ms": "60s"})
        grow(lake, 3)
        self.restored, self.original = folder.with_name("restored.db"), folder.with_name("original.db")
        self.dump()

    def dump(self) -> None:
        shutil.copy(self.folder / "catalog.db", self.restored)

    def restore(self) -> None:
        shutil.copy(self.folder / "catalog.db", self.original)
        shutil.copy(self.restored, self.folder / "catalog.db")

    def back(self) -> None:
        shutil.copy(self.original, self.folder / "catalog.db")


@pytest.fixture
def beside(tmp_path: Path) -> Beside:
    return Beside(tmp_path / "w")


DELETERS: Mapping[str, Callable[[Lake], object]] = {
    "sweep": lambda lake: lake.topic("orders").sweep(delete=True),
    "topic delete": lambda lake: lake.delete_topic("orders"),
    "stream delete": lambda lake: lake.stream("default").delete(topics=True),
}


@pytest.mark.parametrize(
    ("deleter", "original", "restored"),
    [
        *((deleter, 2, 0) for deleter in DELETERS),
        *(("sweep", 3, 3), ("sweep", 2, 6), ("sweep", 17, 2)),
        *((deleter, 2, METADATA_FILES_KEPT + 4) for deleter in ("sweep", "topic delete")),
    ],
)
def test_no_verb_deletes_files_of_a_catalog_beside_it(
    beside: Beside, deleter: str, original: int, restored: int
) -> None:
    """A sweep by a restored catalog deleted every segment that was appended since its dump.

    So did one by a catalog that had gone on for so long that it no longer named its own metadata files of that time.
    """
    grow(opened(beside.folder), original)
    compact_without_spark(opened(beside.folder).topic("orders"))
    beside.restore()
    grow(opened(beside.folder), restored)
    before = files(beside.folder)
    with pytest.raises(RefusedError, match=r"of commits that it does not have.*nothing was deleted"):
        DELETERS[deleter](opened(beside.folder, 2 * DAY_MS))
    assert files(beside.folder) >= before
    beside.back()
    assert len(list(opened(beside.folder).topic("orders").reader())) == 3


def test_sweeps_go_on_after_commits_that_lost_races(beside: Beside) -> None:
    """Each leaves metadata with the number of the commit that won: many of them are no other catalog's."""
    for number in range(6):
        grow(opened(beside.folder), 1)
        newest = max(beside.folder.rglob("*.metadata.json"), key=lambda path: path.name[:5])
        shutil.copy(newest, newest.with_name(f"{newest.name[:5]}-lost-{number}.metadata.json"))
    opened(beside.folder, 2 * DAY_MS).topic("orders").sweep(delete=True)
    assert len(list(opened(beside.folder).topic("orders").reader())) == 27


def test_sweeps_go_on_where_old_metadata_of_the_catalog_itself_was_left(beside: Beside) -> None:
    """By programs that were killed between a commit and the deletion of what it replaced."""
    grow(opened(beside.folder), 2)
    compact_without_spark(opened(beside.folder).topic("orders"))
    old = {path: path.read_bytes() for path in beside.folder.rglob("*.metadata.json")}
    grow(opened(beside.folder), METADATA_FILES_KEPT + len(old))
    assert not any(path.exists() for path in old)
    for path, content in old.items():
        path.write_bytes(content)
    opened(beside.folder, 2 * DAY_MS).topic("orders").sweep(delete=True)
    assert len(list(opened(beside.folder).topic("orders").reader())) == 3 * (METADATA_FILES_KEPT + len(old) + 1)


def test_sweeps_go_on_where_writers_may_not_delete(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then all old metadata is left, also that on which a commit was staged that lost a race."""
    monkeypatch.setattr(swap, "delete_old_metadata", lambda *_: None)
    grow(opened(beside.folder), 1)
    beside.restore()
    grow(opened(beside.folder), 2 * METADATA_FILES_KEPT + 5)
    swept = opened(beside.folder, 2 * DAY_MS).topic("orders").sweep(delete=True)
    assert len([file for file in swept.files if file.path.endswith(".parquet")]) == 1
    assert len(list(opened(beside.folder).topic("orders").reader())) == 3 * (3 + 2 * METADATA_FILES_KEPT + 5)


def test_old_commits_are_found_where_writers_may_not_delete(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only the first of them has added a segment."""
    monkeypatch.setattr(swap, "delete_old_metadata", lambda *_: None)
    lake = opened(beside.folder)
    grow(lake, 1)
    lake.topic("orders").alter({"delete.retention.ms": "1h"})
    beside.restore()
    grow(opened(beside.folder), 2 * METADATA_FILES_KEPT + 5)
    with pytest.raises(UnusualSweepError, match="of commits that it does not have"):
        opened(beside.folder, 2 * DAY_MS).topic("orders").sweep(delete=True)


def test_a_person_may_give_the_other_commits_up(beside: Beside) -> None:
    grow(opened(beside.folder), 4)
    beside.restore()
    with pytest.raises(UnusualSweepError):
        opened(beside.folder, 2 * DAY_MS).topic("orders").sweep(delete=True)
    swept = opened(beside.folder, 2 * DAY_MS).topic("orders").sweep(delete=True, allow_unusual=True)
    assert len([file for file in swept.files if file.path.endswith(".parquet")]) == 4


def test_commits_that_were_given_up_stop_no_later_sweep(beside: Beside) -> None:
    """However long the files of versions stay: their metadata was there until a second one, days later."""
    opened(beside.folder).topic("orders").alter({"versions.retention.ms": "1d"})
    beside.dump()
    grow(opened(beside.folder), 4)
    beside.restore()
    grow(opened(beside.folder), 1)
    topic = opened(beside.folder, 2 * DAY_MS).topic("orders")
    listed = topic.sweep(allow_unusual=True).files
    assert topic.sweep(delete=True, allow_unusual=True).files == listed
    for days in (2, 3):
        opened(beside.folder, days * DAY_MS).topic("orders").sweep(delete=True)
    assert len(list(opened(beside.folder).topic("orders").reader())) == 12


def test_repair_goes_on_with_the_other_commits(beside: Beside) -> None:
    grow(opened(beside.folder), 4)
    beside.restore()
    lake = opened(beside.folder, 2 * DAY_MS)
    assert lake.repair("orders").way == "nothing"
    with pytest.raises(UnusualSweepError) as refused:
        lake.topic("orders").sweep(delete=True)
    (file,) = re.findall(r"metadata='([^']+)'", refused.value.hint)
    for wrong in ("", file.replace(".metadata.json", ".json")):
        with pytest.raises(RefusedError, match="is not a file of the topic's folder"):
            lake.repair("orders", True, metadata=wrong)
    assert lake.repair("orders", True, metadata=file).way == "register"
    lake = opened(beside.folder, 2 * DAY_MS)
    state = lake.topic("orders").state()
    assert (state.log(0).log_end_offset, state.settings.versions_retention_ms) == (21, 0)
    lake.topic("orders").sweep(delete=True)
    assert len(list(lake.topic("orders").reader())) == 21


def test_repair_does_not_choose_metadata_for_a_whole_topic(beside: Beside) -> None:
    """Only where the catalog lacks commits: else it would take back commits that it has."""
    lake = opened(beside.folder)
    older = str(sorted(beside.folder.rglob("*.metadata.json"))[0])
    grow(lake, 1)
    assert lake.repair("orders", True, metadata=f"file://{older}").way == "nothing"


def test_commits_of_other_programs_that_a_repair_left_out_stop_no_sweep(beside: Beside) -> None:
    """They are no versions of the topic. `repair` has the catalog name Lithify's newest commit again."""
    store = opened(beside.folder).warehouse.store
    assert isinstance(store, IcebergStore)
    catalog = store.source.created()
    for number in range(3):
        with catalog.load_table("default.orders").transaction() as changed:
            changed.set_properties({"owner": f"program {number}"})
    beside.restore()
    opened(beside.folder, 2 * DAY_MS).topic("orders").sweep(delete=True)
    assert len(list(opened(beside.folder).topic("orders").reader())) == 9
