"""The memory store does what every store must: it is the one that says what that is."""

from __future__ import annotations

import pytest

from lithify.store.memory import MemoryWarehouse
from store.conformance import StoreConformance
from support.fake_clock import FakeClock
from support.store.builders import Place


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def place(self) -> Place:
        clock = FakeClock()
        warehouse = MemoryWarehouse(clock.new_id)
        return Place(
            warehouse.store, warehouse.files, clock, lambda segment: warehouse.files.data.pop(segment.path) and None
        )
