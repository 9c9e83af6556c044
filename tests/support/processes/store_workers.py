"""What processes of their own do in tests of the store: forks of one that has only imported, so they share nothing."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from lithify.api.wiring import open_warehouse
from lithify.errors import ConflictError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import StaleVersionError, Warehouse
from lithify.service.write.append import append
from lithify.store.iceberg.catalog import lock

ORDERS = TopicName("default", "orders")
TIMEOUT_S = 240.0


def together(work: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Runs `work(barrier, *job)` in a process for each job and returns what they return, in order.

    Each comes to the barrier when it has started, so that they begin at the same time.
    """
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    parent = spawn.Process(target=_fork, args=(results, work, jobs))
    parent.start()
    try:
        answers = dict(results.get(timeout=TIMEOUT_S) for _ in jobs)
    finally:
        parent.join(timeout=10)
        parent.terminate()  # which ends its children, as they are daemons
        parent.join(timeout=10)
        parent.kill()
    for answer in answers.values():
        if isinstance(answer, str) and answer.startswith("raised "):
            raise AssertionError(answer)
    return [answers[number] for number in range(len(jobs))]


def _fork(results: Any, work: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> None:
    import_module("lithify.store.iceberg")
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(len(jobs))
    processes = [
        fork.Process(target=_report, args=(results, number, work, barrier, *job), daemon=True)
        for number, job in enumerate(jobs)
    ]
    for process in processes:
        process.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # children end by it at once
    for process in processes:
        process.join()


def _report(results: Any, number: int, work: Callable[..., Any], barrier: Barrier, *arguments: Any) -> None:
    try:
        results.put((number, work(barrier, *arguments)))
    except BaseException as error:  # whatever it is, the test has to hear of it
        results.put((number, f"raised {error!r}: {traceback.format_exc()}"))
        barrier.abort()  # so that no other process waits for this one


def _opened(place: str) -> Warehouse:
    """The warehouse in a folder, or behind `catalog:NAME`."""
    kind, _, name = place.partition("catalog:")
    return open_warehouse(catalog=name) if not kind else open_warehouse(place)


def open_at_once(barrier: Barrier, folders: Sequence[str], topic: str) -> list[list[str]]:
    """Opens each warehouse at the same time as the others, makes a topic in it and lists what is there."""
    seen = []
    for folder in folders:
        barrier.wait(TIMEOUT_S)
        store = _opened(folder).store
        store.create_topic(NewTopic(TopicName("default", topic), topic, TopicSettings(), 1, 0))
        barrier.wait(TIMEOUT_S)
        seen.append([str(name) for name in store.topics()])
    return seen


def append_all(barrier: Barrier, folder: str, worker: int, batches: int, *, turns: bool) -> list[tuple[int, int, int]]:
    """Appends batches of 3 records to 2 logs and returns (batch, partition, first offset) of each."""
    warehouse = _opened(folder)
    if not turns:
        lock.MAX_WAIT_S = 0.0
    written = []
    barrier.wait(TIMEOUT_S)
    for batch in range(batches):
        records = [Record(b"%d" % n, b"%d/%d/%d" % (worker, batch, n), partition=p) for p in (0, 1) for n in range(3)]
        result = _until_through(lambda records=records: append(warehouse, ORDERS, records))  # type: ignore[misc]
        written += [(batch, r.partition, r.start_offset) for r in result.ranges]
    return written


def count_up(barrier: Barrier, folder: str, times: int) -> int:
    """Adds one to the generation of a log, moving no file; returns the tries that it took."""
    warehouse = _opened(folder)
    barrier.wait(TIMEOUT_S)
    tries = 0
    for _ in range(times):
        while True:
            tries += 1
            try:
                _add_one(warehouse, warehouse.store.load(ORDERS))
                break
            except StaleVersionError:
                continue
    return tries


def append_until(barrier: Barrier, folder: str, worker: int, stop: str) -> int:
    """Appends without a pause until the file `stop` is there; returns how many batches it wrote."""
    warehouse = _opened(folder)
    barrier.wait(TIMEOUT_S)
    batches = 0
    while not Path(stop).exists():
        record = Record(b"%d" % worker, b"%d" % batches, partition=0)
        _until_through(lambda record=record: append(warehouse, ORDERS, [record]))  # type: ignore[misc]
        batches += 1
    return batches


def _add_one(warehouse: Warehouse, state: TopicState) -> None:
    from dataclasses import replace

    from lithify.model.topic.edit import TopicEdit

    log = replace(state.log(0), generation=state.log(0).generation + 1)
    warehouse.store.commit(state, TopicEdit(warehouse.clock.new_id(), 0, {0: log}))


def _until_through(action: Callable[[], Any]) -> Any:
    while True:
        try:
            return action()
        except ConflictError:  # nothing was written: a producer sends again
            continue
