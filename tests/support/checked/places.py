"""The two places on which the long random test goes on: a fast one and a real one.

memory     the memory store, rounds by the oracle: thousands of steps
iceberg    tables in a folder, rounds by the kernels of the Spark engine, without a JVM; also small files have an index
           of their keys, where settings say so
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lithify.ports.store import Warehouse
from lithify.service.creation import create_warehouse
from lithify.store.iceberg import open_store
from lithify.store.iceberg.catalog import lock
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_store import MemoryWarehouse
from lithify.testing.oracle_engine import OracleEngine
from support.checked.trouble import RandomPlace
from support.engines.kernel import KernelEngine
from support.generated.indexed_files import every_file_indexed
from support.topics.known_positions import KnownPositions

MEMORY_NOW_MS = 1_000
ICEBERG_NOW_MS = 4_000_000_000_000
"""After anything that is written today, so that unnamed files get old."""


@contextmanager
def memory_place() -> Iterator[RandomPlace]:
    clock = FakeClock(MEMORY_NOW_MS)
    made = MemoryWarehouse(clock.new_id, clock.now_ms)
    create_warehouse(made.store)  # else it counts as one of before, without masks
    warehouse = Warehouse(made.store, made.files, clock, KnownPositions())
    yield RandomPlace(warehouse, OracleEngine(made.files), clock)


@contextmanager
def iceberg_place() -> Iterator[RandomPlace]:
    clock = FakeClock(ICEBERG_NOW_MS)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch, every_file_indexed():
        patch.setattr(lock, "MAX_WAIT_S", 0.0)  # a paused verb may have the turn, and would be waited for in vain
        store, files = open_store(str(Path(folder) / "warehouse"), None, clock.new_id)
        create_warehouse(store)
        warehouse = Warehouse(store, files, clock, KnownPositions())
        yield RandomPlace(warehouse, KernelEngine(ranges=2), clock, size_unit=40)


PLACES = {"memory": memory_place, "iceberg": iceberg_place}
