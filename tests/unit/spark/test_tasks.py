"""What every task of a round does first, and what an error of one is to the driver."""

from __future__ import annotations

import gc
import pickle
from copy import copy

import pyarrow as pa

from lithify import errors
from lithify.errors import LithifyError
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


def test_an_error_of_a_task_is_all_that_it_was_on_the_driver():
    """So that an ingest waits for what a task could not reach, as it does for what the driver could not."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LithifyError)]
    assert len(kinds) > 30
    for kind in kinds:
        error = kind("orders-0 cannot be read", hint="`lithify verify` says more")
        error.is_outage = True
        error.index, error.reason = 7, "it is too long"  # what a kind of its own may have besides
        for same in (pickle.loads(pickle.dumps(error)), copy(error)):
            assert (type(same), same.args, vars(same)) == (kind, error.args, vars(error))
