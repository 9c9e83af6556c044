"""Many programs on one warehouse in PostgreSQL and S3: every record gets one offset, and rounds get through."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from lithify.model.record import Record
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.commit import ATTEMPTS, commit
from lithify.service.write.append import append
from support.processes.store_workers import append_all, append_until, open_at_once, together
from support.store.builders import NOW_MS, ORDERS, Place, some_records

from .conftest import Backend

PROD = "catalog:prod"
APPENDERS, BATCHES, RECORDS = 3, 8, 3
THREADS, EACH = 8, 5
ROUND_S = 60.0
DECIDING_S = 0.3
BOUND_S = 120.0


def test_programs_open_a_fresh_catalog_at_once(backend: Backend) -> None:
    topics = [f"topic{n}" for n in range(4)]

    seen = together(open_at_once, [([PROD], topic) for topic in topics])

    assert seen == [[topics]] * 4


def test_programs_append_at_once_and_every_record_gets_one_offset(place: Place) -> None:
    place.create(partitions=2)

    together(partial(append_all, turns=True), [(PROD, worker, BATCHES) for worker in range(APPENDERS)])

    state = place.store.load(ORDERS)
    for partition in (0, 1):
        records = place.records(state, partition)
        assert [r.offset for r in records] == list(range(APPENDERS * BATCHES * RECORDS))
        assert Counter(r.value for r in records) == Counter(
            b"%d/%d/%d" % (w, b, n) for w in range(APPENDERS) for b in range(BATCHES) for n in range(RECORDS)
        )


def test_a_round_gets_through_among_tight_appenders(backend: Backend, place: Place, tmp_path: Path) -> None:
    state = place.create()
    for n in range(10):
        state = place.append(state, some_records(f"{n}", f"{n}"))
    old = place.store.segments(state)
    merged = place.rewrite(state, place.records_of(old), "merged")
    stop = tmp_path / "stop"

    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(together, append_until, [(PROD, worker, str(stop)) for worker in range(3)])
        try:
            _wait_for_appends(place, state, 10)
            before = time.monotonic()
            tries = _round(backend.warehouse(), TopicEdit("round", NOW_MS, {}, add=merged, remove=old))
            took_s = time.monotonic() - before
            _wait_for_appends(place, place.store.load(ORDERS), 4)
        finally:
            stop.touch()
        batches = appending.result()

    newest = place.store.load(ORDERS)
    assert took_s < ROUND_S
    assert tries < ATTEMPTS
    assert len(place.store.segments(newest)) == 1 + sum(batches)
    assert [r.offset for r in place.records(newest)] == list(range(20 + sum(batches)))


def _round(warehouse: Warehouse, edit: TopicEdit) -> int:
    """A round whose commit takes longer than the pauses between appends; returns its tries."""
    tries = 0

    def decide(newest: TopicState) -> TopicEdit:
        nonlocal tries
        tries += 1
        time.sleep(DECIDING_S)
        return replace(edit, logs={0: newest.log(0)})

    commit(warehouse, ORDERS, edit.run_id, decide)
    return tries


def _wait_for_appends(place: Place, state: TopicState, commits: int) -> None:
    deadline = time.monotonic() + BOUND_S
    while place.store.load(ORDERS).version < state.version + commits:
        assert time.monotonic() < deadline, "the appenders do not get through"
        time.sleep(0.02)


def test_threads_share_one_store(backend: Backend, place: Place) -> None:
    place.create()
    warehouse = backend.warehouse()

    def work(thread: int) -> None:
        for n in range(EACH):
            append(warehouse, ORDERS, [Record(b"%d/%d" % (thread, n), b"v", partition=0)])

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, thread) for thread in range(THREADS)]:
            done.result(timeout=BOUND_S)

    records = place.records(place.store.load(ORDERS))
    assert [r.offset for r in records] == list(range(THREADS * EACH))
    assert {r.key for r in records} == {b"%d/%d" % (thread, n) for thread in range(THREADS) for n in range(EACH)}
