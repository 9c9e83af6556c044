"""A cleaner on a full disk quarantines nothing, and when there is room everything is done (C31)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lithify.ports.store import Warehouse
from lithify.reports.events import EventKind
from lithify.store.iceberg import open_store
from support.engines.kernel import KernelEngine
from support.store.trouble import no_file_larger_than
from support.topics.cleaner_lake import CleanerLake

TRIES = 9
RECORDS = 20_000


def test_no_log_is_to_blame_for_a_full_disk(tmp_path: Path) -> None:
    lake = CleanerLake()
    store, files = open_store(str(tmp_path), None, lake.clock.new_id)
    lake.warehouse = Warehouse(store, files, lake.clock)
    engine: Any = KernelEngine(access=files.access)
    lake.engine = engine
    topic, alpha = lake.topic("orders", min_cleanable_dirty_ratio=0), lake.cleaner()
    values = " ".join(f"k{number}={number * 7919 % 10007}" for number in range(RECORDS))
    lake.append(topic, values)
    lake.append(topic, "k1=new")
    with no_file_larger_than(40_000):  # metadata fits in, segments do not
        for _ in range(TRIES):
            alpha.work()
            lake.wait(31 * 60_000)
    assert len(alpha.told(EventKind.FAILED)) == TRIES, alpha.events
    assert alpha.told(EventKind.QUARANTINED) == []
    assert "File too large" in alpha.told(EventKind.FAILED)[-1].facts["error"]
    alpha.work()
    assert len(lake.text(topic).split()) == RECORDS
