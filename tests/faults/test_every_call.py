"""Every port call of an append and of a round fails, in turn (C6, C31, C44).

For every N, until a run gets through untouched: the N-th call fails, loses its request or its
answer, or kills the process. Afterwards the log must be what it was before or what it is after,
what was acknowledged must be there, and the same work must go through when tried again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lithify.errors import LithifyError, UnknownOutcomeError
from lithify.model.log import TopicEdit, TopicState
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.ports.store import CommitUnknownError, LogStore, Warehouse
from lithify.service.commit import ATTEMPTS
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg import open_store
from lithify.store.memory import MemoryWarehouse
from support.engines.oracle import OracleEngine
from support.fake_clock import FakeClock
from support.faults.injection import CrashError, FaultyEngine, Injector, Kind, faulty
from support.topics.whole_logs import check_whole, compacted, contents

NAME = TopicName("default", "orders")
PARTITIONS = 2
MOST_CALLS = 200
"""No run makes so many port calls: a loop that reaches it would never end."""


def memory_warehouse(_: Path) -> Warehouse:
    clock = FakeClock(now_ms=1_000_000)
    made = MemoryWarehouse(clock.new_id)
    return Warehouse(made.store, made.files, clock)


def iceberg_warehouse(folder: Path) -> Warehouse:
    clock = FakeClock(now_ms=1_000_000)
    store, files = open_store(str(folder), None, clock.new_id)
    return Warehouse(store, files, clock)


MAKERS = {"memory": memory_warehouse, "iceberg": iceberg_warehouse}


def records(numbers: range, keys: int) -> list[Record]:
    """Duplicates and tombstones over `keys` keys, in two partitions."""
    return [
        Record(
            key=b"k%d" % (n % keys),
            value=None if n % 5 == 4 else b"v%d" % n,
            timestamp=1_000 + n,
            partition=n % PARTITIONS,
        )
        for n in numbers
    ]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A topic with some history: two batches, a round, a third batch."""

    warehouse: Warehouse
    engine: OracleEngine


def prepared(make: Callable[[Path], Warehouse], folder: Path) -> Prepared:
    warehouse = make(folder)
    settings = settings_of({"delete.retention.ms": 0})
    warehouse.store.create_topic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms())
    engine = OracleEngine(warehouse.files)
    append(warehouse, NAME, records(range(0, 20), keys=6))
    append(warehouse, NAME, records(range(20, 40), keys=6))
    compact(warehouse, engine, NAME, RunRequest())
    append(warehouse, NAME, records(range(40, 60), keys=6))
    return Prepared(warehouse, engine)


def strikes(kind: Kind) -> Iterator[Injector]:
    """Injectors for the first call, the second, and so on, until one is not reached."""
    for at in itertools.count(1):
        assert at < MOST_CALLS
        injector = Injector(at, kind)
        yield injector
        if not injector.struck:
            assert at > 2, "the run made hardly a call: nothing was tried"
            return


def check_struck_append(ready: Prepared, injector: Injector) -> None:
    """An append behind struck ports is there whole or not at all, and an acknowledged one is there."""
    before = contents(ready.warehouse, NAME)
    batch = records(range(60, 70), keys=6)
    acknowledged = False
    try:
        append(faulty(ready.warehouse, injector), NAME, batch)
        acknowledged = True
    except (LithifyError, CrashError):
        pass
    check_whole(ready.warehouse, NAME)
    after = contents(ready.warehouse, NAME)
    new = [[r.value for r in now[len(then) :]] for then, now in zip(before, after, strict=True)]
    wanted = [[r.value for r in batch if r.partition == p] for p in range(PARTITIONS)]
    assert tuple(now[: len(then)] for then, now in zip(before, after, strict=True)) == before
    assert new in ([wanted] if acknowledged else [wanted, [[], []]]), injector
    assert acknowledged or injector.struck


def check_struck_round(ready: Prepared, injector: Injector) -> None:
    """After a round behind struck ports the log is as before or as after, and a new round gets through."""
    before, wanted = contents(ready.warehouse, NAME), compacted(ready.warehouse, NAME)
    assert before != wanted
    succeeded = False
    try:
        engine = FaultyEngine(ready.engine, injector)
        report = compact(faulty(ready.warehouse, injector), engine, NAME, RunRequest())
        succeeded = not report.failed
    except (LithifyError, CrashError):
        pass
    check_whole(ready.warehouse, NAME)
    assert contents(ready.warehouse, NAME) in ([wanted] if succeeded else [before, wanted]), injector
    report = compact(ready.warehouse, ready.engine, NAME, RunRequest())
    assert report.failed == ()
    assert contents(ready.warehouse, NAME) == wanted
    check_whole(ready.warehouse, NAME)
    assert succeeded or injector.struck


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("store", MAKERS)
def test_append_is_all_or_nothing(store: str, kind: Kind, tmp_path: Path) -> None:
    """C6: a struck append is there whole or not at all, and an acknowledged one is there."""
    for injector in strikes(kind):
        check_struck_append(prepared(MAKERS[store], tmp_path / str(injector.at)), injector)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("store", MAKERS)
def test_round_is_all_or_nothing(store: str, kind: Kind, tmp_path: Path) -> None:
    """C6, C31: after a struck round the log is as before or as after, and a new round gets through."""
    for injector in strikes(kind):
        check_struck_round(prepared(MAKERS[store], tmp_path / str(injector.at)), injector)


class NoAnswers:
    """A store whose commits never answer; only that of the last attempt arrives."""

    def __init__(self, real: LogStore) -> None:
        self._real = real
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(self, state: TopicState, edit: TopicEdit) -> TopicState:
        self.commits += 1
        if self.commits == ATTEMPTS:
            self._real.commit(state, edit)
        raise CommitUnknownError("injected: no answer")


def test_a_commit_without_any_answer_is_not_said_to_have_changed_nothing(tmp_path: Path) -> None:
    """C6: what the last attempt came to has to be looked up, or nobody knows."""
    warehouse = prepared(memory_warehouse, tmp_path).warehouse
    before = contents(warehouse, NAME)
    store: Any = NoAnswers(warehouse.store)
    try:
        append(Warehouse(store, warehouse.files, warehouse.clock), NAME, records(range(60, 70), keys=6))
    except LithifyError as error:
        assert isinstance(error, UnknownOutcomeError) or contents(warehouse, NAME) == before, error
    assert store.commits == ATTEMPTS
