"""Beside a catalog that is restored and counts on: another version has the number of that of a round or a reader."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lithify.columnar.files.access import local_path
from lithify.errors import UnknownVersionError
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import NewTopic
from lithify.ports.store import StaleVersionError, Warehouse
from lithify.service.change.cut import delete_records
from lithify.service.read.fetch import open_log
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg.catalog.newest_state import Lists
from lithify.testing.fake_clock import FakeClock
from lithify.testing.oracle_engine import OracleEngine
from support.faults.topics import NAME, records
from support.topics.replicas import two_warehouses, warehouses_in


@dataclass(frozen=True, slots=True)
class Backup:
    """A warehouse with a topic of one partition, whose catalog can be put back."""

    warehouse: Warehouse
    folder: Path

    def save(self) -> None:
        shutil.copy(self._catalog, self.folder / "backup.db")

    def restore(self) -> None:
        shutil.copy(self.folder / "backup.db", self._catalog)

    def values(self) -> list[bytes | None]:
        """Those of all records in the topic's files."""
        segments, read = self.warehouse.store.segments(self.warehouse.store.load(NAME)), self.warehouse.files.read
        return [r.value for s in segments for batch in read(s, s.base_offset) for r in batch.records()]

    def opened(self) -> Warehouse:
        """The warehouse, for a process that has not seen its versions, or has seen so many since."""
        clock = self.warehouse.clock
        assert isinstance(clock, FakeClock)
        return warehouses_in(self.folder, clock)[0]

    @property
    def _catalog(self) -> Path:
        return next((self.folder / "source").rglob("catalog.db"))


@pytest.fixture
def backup(tmp_path: Path) -> Backup:
    warehouse, _ = two_warehouses("iceberg", tmp_path)
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings_of({}), 1, warehouse.clock.now_ms()))
    return Backup(warehouse, tmp_path)


def some_records(count: int, keys: int) -> list[Record]:
    return [record._replace(partition=0) for record in records(range(count), keys)]


def test_another_version_of_the_same_number(backup: Backup) -> None:
    warehouse, store, given = backup.warehouse, backup.warehouse.store, some_records(9, keys=3)
    append(warehouse, NAME, given[:3])
    backup.save()
    append(warehouse, NAME, given[3:6])
    planned_on = store.load(NAME)

    def restored_meanwhile(phase: str, done: int, total: int) -> None:
        if phase == "key_pass" and done == 0 and store.load(NAME) == planned_on:
            backup.restore()
            append(warehouse, NAME, given[6:])
            assert store.load(NAME).version == planned_on.version

    compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest(), restored_meanwhile)
    left = backup.values()
    assert left == [record.value for record in given[6:]]
    assert store.load(NAME).log(0).clean.records == len(left)


def test_what_a_restoration_has_undone_stays_undone(backup: Backup) -> None:
    """`delete-records` by mistake makes a round due; its key pass has begun when the catalog is put back."""
    warehouse, given = backup.warehouse, some_records(6, keys=6)
    append(warehouse, NAME, given[:3])
    compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest())
    append(warehouse, NAME, given[3:])
    backup.save()
    delete_records(warehouse, NAME, 0, 3)

    class Restores(OracleEngine):
        @contextmanager
        def open_round(self, *arguments: Any) -> Iterator[Any]:
            backup.restore()
            with super().open_round(*arguments) as round_:
                yield round_

    compact(warehouse, Restores(warehouse.files), NAME, RunRequest())
    log = warehouse.store.load(NAME).log(0)
    assert (log.log_start_offset, backup.values()) == (0, [record.value for record in given])


def test_no_append_lands_on_another_version_of_its_number(backup: Backup) -> None:
    """The catalog loses its last commit while a producer stalls before its own, and another one commits."""
    warehouse, store, given = backup.warehouse, backup.warehouse.store, some_records(9, keys=9)
    append(warehouse, NAME, given[:3])
    backup.save()
    append(warehouse, NAME, given[3:6])
    decided_on = store.load(NAME)
    backup.restore()
    append(warehouse, NAME, given[6:8])
    assert store.load(NAME).version == decided_on.version
    log = decided_on.log(0).with_run("late")
    with pytest.raises(StaleVersionError):
        store.commit(decided_on, TopicEdit("late", decided_on.created_ms, {0: log}))


def test_a_reader_reads_the_version_that_it_was_opened_on(backup: Backup) -> None:
    """C7: it was opened at the end, and reads manifests when it is moved back, after another version had its number."""
    warehouse = backup.warehouse
    append(warehouse, NAME, [Record(b"k", b"kept", partition=0)])
    backup.save()
    append(warehouse, NAME, [Record(b"k", b"lost", partition=0)])
    lost = warehouse.store.load(NAME)
    reader = open_log(warehouse, lost, 0, "latest")
    backup.restore()
    append(warehouse, NAME, [Record(b"k", b"other", partition=0)])
    assert warehouse.store.load(NAME).version == lost.version
    reader.seek(0)
    assert [record.value for record in reader] == [b"kept", b"lost"]
    assert len(backup.opened().store.segments(lost)) == 2
    with pytest.raises(UnknownVersionError, match="is not retained"):
        warehouse.store.segments(replace(lost, stored_as=None))
    assert backup.values() == [b"kept", b"other"]


def test_a_version_that_a_restoration_has_undone_is_not_damaged(backup: Backup) -> None:
    """C7: its manifests are gone, and a kept version has its number."""
    warehouse, given = backup.warehouse, some_records(9, keys=3)
    append(warehouse, NAME, given[:3])
    backup.save()
    append(warehouse, NAME, given[3:6])
    lost = warehouse.store.load(NAME)
    backup.restore()
    append(warehouse, NAME, given[6:])
    kept = warehouse.store.load(NAME)
    compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest())
    assert [version.version for version in warehouse.store.versions(NAME)] == [lost.version] == [kept.version]
    assert isinstance(lost.stored_as, Lists)
    Path(local_path(lost.stored_as.log.path) or "").unlink()
    warehouse.store.clear_file_cache()
    with pytest.raises(UnknownVersionError, match="is not retained"):
        warehouse.store.segments(lost)
    assert len(warehouse.store.segments(kept)) == 2
