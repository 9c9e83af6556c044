"""A round beside a catalog that is restored and counts on: another version has the number of the planned one."""

from __future__ import annotations

import shutil
from pathlib import Path

from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
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


def _records(warehouse: Warehouse, segment: Segment) -> list[Record]:
    return [record for batch in warehouse.files.read(segment, segment.base_offset) for record in batch.records()]
