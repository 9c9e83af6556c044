"""A lake in memory: everything that programs do to topics, without Java, Spark, a database and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lithify.api.lake import Lake
from lithify.columnar.arrivals.arrived_columns import given_batches, given_schema
from lithify.model.topic.state import TopicState
from lithify.ports.clock import Clock
from lithify.ports.store import Doubles, Warehouse
from lithify.testing.memory_batches import RecordArrivals
from lithify.testing.memory_files import MemoryFiles
from lithify.testing.memory_groups import MemoryGroups
from lithify.testing.memory_store import MemoryStore
from lithify.testing.oracle_engine import OracleEngine
from lithify.testing.oracle_inspector import OracleInspector
from lithify.wiring.system_clock import SystemClock


def memory_lake(clock: Clock | None = None) -> Lake:
    """An empty lake, which is lost with the process; by default on the machine's clock.

    Rounds, `verify` and groups are those of a stored lake, in plain Python; what is given for Spark and for a database
    is not used. Cleaners, replicas, ingests and repair raise `RefusedError`.
    """
    clock = SystemClock() if clock is None else clock
    files, groups = _ConvertingFiles(clock.now_ms), MemoryGroups("memory")
    doubles = Doubles(OracleEngine(files), OracleInspector(files), groups)
    return Lake(Warehouse(MemoryStore(clock.new_id, files), files, clock, groups, doubles))


class _ConvertingFiles(MemoryFiles):
    """Refuses and converts what programs give as a stored lake does, and keeps nothing that they may change."""

    def receive(
        self, state: TopicState, batch: Any, *, now_ms: int, keep_offsets: bool
    ) -> Mapping[int, RecordArrivals]:
        schema = given_schema(state.settings)
        table = pa.Table.from_batches(given_batches(batch, schema), schema)
        return super().receive(state, table, now_ms=now_ms, keep_offsets=keep_offsets)
