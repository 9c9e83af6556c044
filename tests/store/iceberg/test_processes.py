"""The Iceberg store under processes that share nothing but the warehouse."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lithify.api.wiring import open_warehouse
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.commit import commit
from lithify.store.iceberg.catalog.embedded import EmbeddedCatalog
from lithify.testing.fake_clock import FakeClock
from support.processes.store_workers import append_all, append_until, count_up, open_at_once, together
from support.store.builders import NOW_MS, ORDERS, Place, some_records

OPENERS, FRESH_WAREHOUSES = 6, 4
BATCHES, RECORDS = 8, 3
ROUND_MS = 10_000
DECIDING_S = 0.3


def test_processes_open_a_fresh_warehouse_at_once(tmp_path: Path) -> None:
    folders = [str(tmp_path / f"warehouse{n}") for n in range(FRESH_WAREHOUSES)]
    topics = [f"topic{n}" for n in range(OPENERS)]

    seen = together(open_at_once, [(folders, topic) for topic in topics])

    assert seen == [[topics] * FRESH_WAREHOUSES] * OPENERS


@pytest.mark.parametrize(("appenders", "turns"), [(4, False), (6, True)])
def test_processes_append_at_once_and_every_record_gets_one_offset(tmp_path: Path, appenders: int, turns: bool) -> None:
    place = _place(tmp_path)
    place.create(partitions=2)

    work = partial(append_all, turns=turns)
    written = together(work, [(str(tmp_path), worker, BATCHES) for worker in range(appenders)])

    state = place.store.load(ORDERS)
    for partition in (0, 1):
        records = place.records(state, partition)
        assert [r.offset for r in records] == list(range(appenders * BATCHES * RECORDS))
        values = Counter(r.value for r in records)
        assert values == Counter(
            b"%d/%d/%d" % (w, b, n) for w in range(appenders) for b in range(BATCHES) for n in range(RECORDS)
        )
        at = {r.offset: r.value for r in records}
        for worker, ranges in enumerate(written):
            ours = [(batch, start) for batch, p, start in ranges if p == partition]
            assert [batch for batch, _ in ours] == list(range(BATCHES))
            for batch, start in ours:
                expected = [b"%d/%d/%d" % (worker, batch, n) for n in range(RECORDS)]
                assert [at[start + n] for n in range(RECORDS)] == expected
        assert state.log(partition).dirty.records == len(records)


def test_processes_that_change_state_and_move_no_file_lose_no_change(tmp_path: Path) -> None:
    place = _place(tmp_path)
    place.create()

    tries = together(count_up, [(str(tmp_path), 10)] * 4)

    assert sum(tries) > 40  # they did race
    assert place.store.load(ORDERS).log(0).generation == 40


def test_a_round_gets_through_among_tight_appenders(tmp_path: Path) -> None:
    place = _place(tmp_path / "warehouse")
    state = place.create()
    for n in range(20):
        state = place.append(state, some_records(f"{n}", f"{n}"))
    old = place.store.segments(state)
    merged = place.rewrite(state, place.records_of(old), "merged")
    stop = tmp_path / "stop"
    jobs = [(str(tmp_path / "warehouse"), worker, str(stop)) for worker in range(4)]

    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(together, append_until, jobs)
        try:
            _wait_for_appends(place, state, 20)
            warehouse = open_warehouse(str(tmp_path / "warehouse"))
            before = time.monotonic()
            _round(warehouse, TopicEdit("round", NOW_MS, {}, add=merged, remove=old))
            took_ms = (time.monotonic() - before) * 1000
            _wait_for_appends(place, place.store.load(ORDERS), 8)
        finally:
            stop.touch()
        batches = appending.result()

    newest = place.store.load(ORDERS)
    assert took_ms < ROUND_MS
    assert len(place.store.segments(newest)) == 1 + sum(batches)
    assert [r.offset for r in place.records(newest)] == list(range(40 + sum(batches)))


def _round(warehouse: Warehouse, edit: TopicEdit) -> None:
    """A round whose commit takes longer than the pauses between appends: without turns it would starve."""

    def decide(newest: TopicState) -> TopicEdit:
        time.sleep(DECIDING_S)
        return replace(edit, logs={0: newest.log(0)})

    commit(warehouse, ORDERS, edit.run_id, decide)


def _wait_for_appends(place: Place, state: TopicState, commits: int) -> None:
    deadline = time.monotonic() + 60
    while place.store.load(ORDERS).version < state.version + commits:
        assert time.monotonic() < deadline, "the appenders do not get through"
        time.sleep(0.02)


def _place(folder: Path) -> Place:
    warehouse = open_warehouse(str(folder))
    return Place(warehouse.store, warehouse.files, FakeClock(), lambda _: None)


def test_a_warehouse_that_is_created_between_two_looks_is_one(tmp_path, monkeypatch):
    """What the two processes above do once in a while: the catalog was not there yet, its neighbours were."""
    catalog, look = EmbeddedCatalog(str(tmp_path / "w")), EmbeddedCatalog._has_nothing
    (tmp_path / "w").mkdir()

    def others(self: EmbeddedCatalog) -> bool:
        EmbeddedCatalog(str(tmp_path / "w"))._new()
        (tmp_path / "w" / "default").mkdir()
        return look(self)

    monkeypatch.setattr(EmbeddedCatalog, "_has_nothing", others)
    assert catalog.existing() is not None
