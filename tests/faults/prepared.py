"""A prepared warehouse as often as it is wanted, in a moment: one on disk is prepared once and copied back."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path

from lithify.ports.store import Warehouse
from lithify.store.iceberg import open_store
from support.fake_clock import FakeClock


def prepared_again(
    make: Callable[[Path], Warehouse], prepare: Callable[[Callable[[Path], Warehouse], Path], Warehouse], folder: Path
) -> Callable[[], Warehouse]:
    """What `prepare` makes with `make`. On disk each takes the place of the one before: metadata names whole paths."""
    there, saved = folder / "warehouse", folder / "saved"
    first = prepare(make, there)
    if not there.exists():
        return lambda: prepare(make, there)
    shutil.copytree(there, saved)
    clock = copy.copy(first.clock)

    def again() -> Warehouse:
        shutil.rmtree(there)
        shutil.copytree(saved, there)
        mine = copy.copy(clock)
        assert isinstance(mine, FakeClock)
        return Warehouse(*open_store(str(there), None, mine.new_id), mine)

    return again
