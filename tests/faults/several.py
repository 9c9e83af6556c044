"""Several topics of one run, in one of which something may go wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lithify.model.names import TopicName
from lithify.model.settings.topic_settings import settings_of
from lithify.ports.store import Warehouse
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from support.engines.oracle import OracleEngine
from support.faults.topics import PARTITIONS, records

TOPICS: dict[TopicName, dict[str, object]] = {
    TopicName("default", "backlog"): {"compaction.mode": "side-by-side"},
    TopicName("default", "orders"): {"delete.retention.ms": 0},
    TopicName("other", "aged"): {"cleanup.policy": "compact,delete", "retention.ms": 999_980},
}


def prepared(make: Callable[[Path], Warehouse], folder: Path) -> Warehouse:
    """Each topic with two batches, a round, and a third batch."""
    warehouse = make(folder)
    engine = OracleEngine(warehouse.files)
    for name, config in TOPICS.items():
        warehouse.store.create_topic(name, name.topic, settings_of(config), PARTITIONS, warehouse.clock.now_ms())
        append(warehouse, name, records(range(0, 20), keys=6))
        append(warehouse, name, records(range(20, 40), keys=6))
        compact(warehouse, engine, name, RunRequest(now_ms=999_990))
        append(warehouse, name, records(range(40, 60), keys=6))
    return warehouse
