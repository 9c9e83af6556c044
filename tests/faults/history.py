"""A topic with a history of days, for services that are paused while others go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from lithify.errors import EngineError
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.ports.store import Warehouse
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg import open_store
from support.engines.oracle import OracleEngine
from support.fake_clock import FakeClock
from support.faults.topics import IN_PLACE, NAME, PARTITIONS, SIDE_BY_SIDE
from support.faults.topics import records as numbered
from support.topics.memory_topic import a_warehouse

DAY_MS = 86_400_000
GRACE_MS = 3_600_000
RETENTION_MS = 2 * DAY_MS
START_MS = time.time_ns() // 10**6
"""Files on a disk have times of their own."""


def memory_warehouse(_: Path) -> Warehouse:
    return a_warehouse(now_ms=START_MS)


def iceberg_warehouse(folder: Path) -> Warehouse:
    clock = FakeClock(START_MS)
    return Warehouse(*open_store(str(folder), None, clock.new_id), clock)


def records(numbers: range, keys: int) -> list[Record]:
    return [r._replace(timestamp=START_MS + number) for number, r in zip(numbers, numbered(numbers, keys), strict=True)]


def a_round(warehouse: Warehouse, partitions: tuple[int, ...] | None = None) -> object:
    report = compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest(partitions))
    if report.failed:
        raise EngineError(str(report.failed[0].error))
    return report


CONFIGS: Mapping[str, dict[str, object]] = {
    "in-place": {**IN_PLACE, "retention.ms": RETENTION_MS, "delete.retention.ms": 0},
    "aging": {**IN_PLACE, "retention.ms": -1, "delete.retention.ms": DAY_MS, "compaction.strategy": "timestamp"},
    "view": {**SIDE_BY_SIDE, "cleanup.policy": "compact,delete", "retention.ms": -1, "delete.retention.ms": DAY_MS},
}


def a_history(make: Callable[[Path], Warehouse], folder: Path, config: dict[str, object]) -> Warehouse:
    """Two rounds, deletes and values that no round has seen yet, and what a run that died has left."""
    warehouse = make(folder)
    clock = warehouse.clock
    assert isinstance(clock, FakeClock)
    warehouse.store.create_topic(NAME, "orders", settings_of(config), PARTITIONS, clock.now_ms())
    engine = OracleEngine(warehouse.files)
    young = [Record(b"young%d" % p, b"v", clock.now_ms() + 3_000_000, (), p) for p in range(PARTITIONS)]
    append(warehouse, NAME, [*records(range(0, 20), keys=6), *young])
    append(warehouse, NAME, records(range(20, 40), keys=7))
    compact(warehouse, engine, NAME, RunRequest())
    clock.advance(RETENTION_MS + 1_000)
    compact(warehouse, engine, NAME, RunRequest())  # where there is retention it takes values, and D stays
    append(warehouse, NAME, [r._replace(timestamp=clock.now_ms(), value=None) for r in records(range(12), keys=6)])
    append(warehouse, NAME, [r._replace(timestamp=clock.now_ms()) for r in records(range(40, 50), keys=8)])
    state, files = warehouse.store.load(NAME), warehouse.files
    left = files.receive(state, records(range(70, 80), keys=3), now_ms=clock.now_ms(), keep_offsets=False)
    for partition, arrivals in left.items():
        files.write(state, arrivals, state.log(partition).log_end_offset, clock.new_id())
    return warehouse
