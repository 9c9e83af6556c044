"""A lake in memory: everything that programs do to topics, without Java, Spark, a database and files."""

from __future__ import annotations

from lithify.api.lake import Lake
from lithify.api.wiring.system_clock import SystemClock
from lithify.ports.clock import Clock
from lithify.ports.store import Doubles, Warehouse
from lithify.testing.memory_files import MemoryFiles
from lithify.testing.memory_groups import MemoryGroups
from lithify.testing.memory_store import MemoryStore
from lithify.testing.oracle_engine import OracleEngine
from lithify.testing.oracle_inspector import OracleInspector


def memory_lake(clock: Clock | None = None) -> Lake:
    """An empty lake, which is lost with the process; by default on the machine's clock.

    Rounds, `verify` and groups are the same as in a stored lake, in plain Python; what is given for Spark and for a
    database is not used. Cleaners, replicas, ingests and repair raise `RefusedError`.
    """
    clock = SystemClock() if clock is None else clock
    files, groups = MemoryFiles(clock.now_ms, converts=True), MemoryGroups("memory")
    doubles = Doubles(OracleEngine(files), OracleInspector(files), groups)
    return Lake(Warehouse(MemoryStore(clock.new_id, files), files, clock, groups, doubles))
