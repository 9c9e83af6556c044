"""A round beside a catalog that is restored and counts on: another version has the number of the planned one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import NewTopic
from lithify.ports.store import StaleVersionError, Warehouse
from lithify.service.change.cut import delete_records
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.topics import NAME, records
from support.topics.replicas import two_warehouses


def test_another_version_of_the_same_number(tmp_path: Path) -> None:
    warehouse, _ = two_warehouses("iceberg", tmp_path)
    store = warehouse.store
    store.create_topic(NewTopic(NAME, "orders", settings_of({}), 1, warehouse.clock.now_ms()))
    given = [record._replace(partition=0) for record in records(range(9), keys=3)]
    append(warehouse, NAME, given[:3])
    catalog = next((tmp_path / "source").rglob("catalog.db"))
    shutil.copy(catalog, tmp_path / "backup.db")
    append(warehouse, NAME, given[3:6])
    planned_on = store.load(NAME)

    def restored_meanwhile(phase: str, done: int, total: int) -> None:
        if phase == "key_pass" and done == 0 and store.load(NAME) == planned_on:
            shutil.copy(tmp_path / "backup.db", catalog)
            append(warehouse, NAME, given[6:])
            assert store.load(NAME).version == planned_on.version

    compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest(), restored_meanwhile)
    newest = store.load(NAME)
    left = [record.value for segment in store.segments(newest) for record in _records(warehouse, segment)]
    assert left == [record.value for record in given[6:]]
    assert newest.log(0).clean.records == len(left)


def test_what_a_restoration_has_undone_stays_undone(tmp_path: Path) -> None:
    """`delete-records` by mistake makes a round due; its key pass has begun when the catalog is put back."""
    warehouse, _ = two_warehouses("iceberg", tmp_path)
    store = warehouse.store
    store.create_topic(NewTopic(NAME, "orders", settings_of({}), 1, warehouse.clock.now_ms()))
    given = [record._replace(partition=0) for record in records(range(6), keys=6)]
    append(warehouse, NAME, given[:3])
    compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest())
    append(warehouse, NAME, given[3:])
    catalog = next((tmp_path / "source").rglob("catalog.db"))
    shutil.copy(catalog, tmp_path / "backup.db")
    delete_records(warehouse, NAME, 0, 3)

    class Restores(OracleEngine):
        @contextmanager
        def open_round(self, *arguments: Any) -> Iterator[Any]:
            shutil.copy(tmp_path / "backup.db", catalog)
            with super().open_round(*arguments) as round_:
                yield round_

    compact(warehouse, Restores(warehouse.files), NAME, RunRequest())
    newest = store.load(NAME)
    left = [record.value for segment in store.segments(newest) for record in _records(warehouse, segment)]
    assert (newest.log(0).log_start_offset, left) == (0, [record.value for record in given])


def test_no_append_lands_on_another_version_of_its_number(tmp_path: Path) -> None:
    """The catalog loses its last commit while a producer stalls before its own, and another one commits."""
    warehouse, _ = two_warehouses("iceberg", tmp_path)
    store = warehouse.store
    store.create_topic(NewTopic(NAME, "orders", settings_of({}), 1, warehouse.clock.now_ms()))
    given = [record._replace(partition=0) for record in records(range(9), keys=9)]
    append(warehouse, NAME, given[:3])
    catalog = next((tmp_path / "source").rglob("catalog.db"))
    shutil.copy(catalog, tmp_path / "backup.db")
    append(warehouse, NAME, given[3:6])
    decided_on = store.load(NAME)
    shutil.copy(tmp_path / "backup.db", catalog)
    append(warehouse, NAME, given[6:8])
    assert store.load(NAME).version == decided_on.version
    log = decided_on.log(0).with_run("late")
    with pytest.raises(StaleVersionError):
        store.commit(decided_on, TopicEdit("late", decided_on.created_ms, {0: log}))


def _records(warehouse: Warehouse, segment: Segment) -> list[Record]:
    return [record for batch in warehouse.files.read(segment, segment.base_offset) for record in batch.records()]
