"""What services are paused and struck at: a topic with a history of days, or several topics, as often as wanted."""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from lithify.errors import EngineError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg import open_store
from lithify.testing.fake_clock import FakeClock
from lithify.testing.oracle_engine import OracleEngine
from support.faults import topics
from support.faults.topics import IN_PLACE, NAME, PARTITIONS, SIDE_BY_SIDE
from support.topics.memory_copies import copies_of
from support.topics.replicas import Pair, warehouses_in

Prepared = TypeVar("Prepared", Warehouse, Pair)

DAY_MS = 86_400_000
GRACE_MS = 3_600_000
RETENTION_MS = 2 * DAY_MS
START_MS = time.time_ns() // 10**6
"""Files on a disk have times of their own."""


def memory_warehouse(folder: Path) -> Warehouse:
    return topics.memory_warehouse(folder, START_MS)


def iceberg_warehouse(folder: Path) -> Warehouse:
    return topics.iceberg_warehouse(folder, START_MS)


def records(numbers: range, keys: int) -> list[Record]:
    return [
        r._replace(timestamp=START_MS + number)
        for number, r in zip(numbers, topics.records(numbers, keys), strict=True)
    ]


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
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings_of(config), PARTITIONS, clock.now_ms()))
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


TOPICS: dict[TopicName, dict[str, object]] = {
    TopicName("default", "backlog"): {"compaction.mode": "side-by-side"},
    TopicName("default", "orders"): {"delete.retention.ms": 0},
    TopicName("other", "aged"): {"cleanup.policy": "compact,delete", "retention.ms": 999_980},
}


def several_topics(make: Callable[[Path], Warehouse], folder: Path) -> Warehouse:
    """Each with two batches, a round, and a third batch: in a run of them all something may go wrong in one."""
    warehouse = make(folder)
    engine = OracleEngine(warehouse.files)
    for name, config in TOPICS.items():
        warehouse.store.create_topic(
            NewTopic(name, name.topic, settings_of(config), PARTITIONS, warehouse.clock.now_ms())
        )
        append(warehouse, name, topics.records(range(0, 20), keys=6))
        append(warehouse, name, topics.records(range(20, 40), keys=6))
        compact(warehouse, engine, name, RunRequest(now_ms=999_990))
        append(warehouse, name, topics.records(range(40, 60), keys=6))
    return warehouse


def prepared_again(
    make: Callable[[Path], Warehouse], prepare: Callable[[Callable[[Path], Warehouse], Path], Warehouse], folder: Path
) -> Callable[[], Warehouse]:
    """What `prepare` makes with `make`, as often as it is wanted."""

    def opened(there: Path, clock: FakeClock) -> Warehouse:
        return Warehouse(*open_store(str(there), None, clock.new_id), clock)

    return _copied_back(partial(prepare, make), opened, folder)


def pairs_again(prepare: Callable[[str, Path], Pair], kind: str, folder: Path) -> Callable[[], Pair]:
    """What `prepare` makes in stores of this kind, as often as it is wanted."""
    return _copied_back(partial(prepare, kind), lambda there, clock: Pair(*warehouses_in(there, clock)), folder)


def _copied_back(
    prepare: Callable[[Path], Prepared], opened: Callable[[Path, FakeClock], Prepared], folder: Path
) -> Callable[[], Prepared]:
    """It is prepared once. What is on disk is copied back to where it was, as metadata names whole paths."""
    there, saved = folder / "warehouse", folder / "saved"
    first = prepare(there)
    if not there.exists():
        return copies_of(first)
    shutil.copytree(there, saved)
    clock = copy.copy(first.clock)
    assert isinstance(clock, FakeClock)

    def again() -> Prepared:
        shutil.rmtree(there)
        shutil.copytree(saved, there)
        return opened(there, copy.copy(clock))

    return again
