"""What every task of a round does first."""

from __future__ import annotations

import gc

import pyarrow as pa

from lithify.spark import tasks

BATCH = pa.record_batch({"part": pa.array([1, 2])})


def test_a_worker_leaves_its_imports_out_of_collections_once(monkeypatch):
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    tasks._leave_out_imports.cache_clear()
    task = tasks.in_worker(lambda batches: (batch.slice(1) for batch in batches))
    try:
        assert [batch.num_rows for _ in range(2) for batch in task(iter([BATCH, BATCH]))] == [1, 1, 1, 1]
    finally:
        tasks._leave_out_imports.cache_clear()
    assert frozen == [True]
