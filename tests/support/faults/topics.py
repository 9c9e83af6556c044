"""A topic to strike at, on either store: in two partitions, with duplicates and tombstones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.rules.reading.pieces import Reading
from lithify.service.documents import put_failures
from lithify.service.read.fetch import open_log
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg import open_store
from lithify.testing.fake_clock import FakeClock
from lithify.testing.oracle_engine import OracleEngine
from support.topics.memory_topic import a_warehouse

NAME = TopicName("default", "orders")
PARTITIONS = 2


def memory_warehouse(_: Path, now_ms: int = 1_000_000) -> Warehouse:
    return a_warehouse(now_ms=now_ms)


def iceberg_warehouse(folder: Path, now_ms: int = 1_000_000) -> Warehouse:
    clock = FakeClock(now_ms)
    return Warehouse(*open_store(str(folder), None, clock.new_id), clock)


MAKERS = {"memory": memory_warehouse, "iceberg": iceberg_warehouse}


def records(numbers: range, keys: int) -> list[Record]:
    """Duplicates and tombstones over `keys` keys, in two partitions."""
    return [
        Record(
            key=b"k%d" % (n % keys),
            value=None if n % 5 == 4 else b"v%d" % n,
            timestamp=1_000 + n,
            partition=n % PARTITIONS,
        )
        for n in numbers
    ]


IN_PLACE: dict[str, object] = {"cleanup.policy": "compact,delete", "retention.ms": 500}


SIDE_BY_SIDE: dict[str, object] = {"compaction.mode": "side-by-side"}


def picture(warehouse: Warehouse, name: TopicName = NAME) -> object:
    """All that a user sees of the topic: settings, offsets, what plain and compacted readers get."""
    state = warehouse.store.load(name)
    return state.settings, tuple(
        (
            (log.log_start_offset, log.first_dirty_offset, log.log_end_offset, log.generation),
            tuple(open_log(warehouse, state, log.partition)),
            tuple(open_log(warehouse, state, log.partition, "earliest", Reading(compacted=True))),
        )
        for log in state.logs
    )


def prepared(make: Callable[[Path], Warehouse], folder: Path, config: dict[str, object]) -> Warehouse:
    """Two batches, a round, another batch, a round of one log, one batch more; then two days pass."""
    warehouse = make(folder)
    settings = settings_of({"delete.retention.ms": 0, "retention.ms": -1, **config})
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))
    engine = OracleEngine(warehouse.files)
    append(warehouse, NAME, records(range(0, 20), keys=6))
    append(warehouse, NAME, records(range(20, 40), keys=7))
    compact(warehouse, engine, NAME, RunRequest(now_ms=1_100))
    append(warehouse, NAME, records(range(40, 50), keys=8))
    compact(warehouse, engine, NAME, RunRequest((0,), now_ms=1_100))
    append(warehouse, NAME, records(range(50, 60), keys=6))
    failure = LogFailure(3, 0, 0, 0, "injected: no luck", quarantined=True)
    put_failures(warehouse.store, warehouse.store.load(NAME), {0: failure, 1: failure})
    clock = warehouse.clock
    assert isinstance(clock, FakeClock)
    clock.advance(2 * 86_400_000)
    return warehouse
