"""Appends and rounds of which a port call is struck, and what must be so after them (C6, C31)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lithify.errors import LithifyError
from lithify.model.formats.warehouse import NEWEST_FORMAT
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.engine import RunLimits
from lithify.ports.store import Warehouse
from lithify.service.documents import put_warehouse_format
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import CrashError, FaultyEngine, Injector, Kind, faulty
from support.faults.topics import NAME, PARTITIONS, records
from support.topics.whole_logs import check_whole, compacted, contents

AT_ONCE = RunRequest()
IN_PARTS = RunRequest(limits=RunLimits(rewrite_bytes=1))
"""Rounds that rewrite one segment after the other."""

MOST_CALLS = 400
"""No run makes so many port calls: a loop that reaches it would never end."""


def strikes(kind: Kind, store: str = "memory") -> Iterator[Injector]:
    """Injectors for the first call, the second, and so on, until one is not reached.

    A request is lost at commits alone: at any other call that is the same as a failure.

    In another store, where a call takes long, each of two kinds takes every second call, one of them from the first on:
    only for tests that strike there by `LOSES_ANSWER` and one other kind.
    """
    if kind is Kind.LOSES_REQUEST:
        yield from _lost_commits()
        return
    first, step = (1, 1) if store == "memory" else (1 if kind is Kind.LOSES_ANSWER else 2, 2)
    for at in itertools.count(first, step):
        assert at < MOST_CALLS
        injector = Injector(at, kind)
        yield injector
        if not injector.struck:
            assert at > 2, "the run made hardly a call: nothing was tried"
            return


def _lost_commits() -> Iterator[Injector]:
    """The first strikes nothing and tells which calls are commits."""
    untouched = Injector(MOST_CALLS, Kind.LOSES_REQUEST)
    yield untouched
    assert 1 < len(untouched.calls) < MOST_CALLS
    for at, name in enumerate(untouched.calls, 1):
        if name == "commit":
            yield Injector(at, Kind.LOSES_REQUEST)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A topic with some history: two batches, a round, a third batch."""

    warehouse: Warehouse
    engine: OracleEngine


def prepared(make: Callable[[Path], Warehouse], folder: Path) -> Prepared:
    warehouse = make(folder)
    settings = settings_of({"delete.retention.ms": 0})
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))
    engine = OracleEngine(warehouse.files)
    append(warehouse, NAME, records(range(0, 20), keys=6))
    append(warehouse, NAME, records(range(20, 40), keys=6))
    compact(warehouse, engine, NAME, RunRequest())
    append(warehouse, NAME, records(range(40, 60), keys=6))
    return Prepared(warehouse, engine)


def prepared_to_mask(make: Callable[[Path], Warehouse], folder: Path, segment_bytes: int = 20_000) -> Prepared:
    """A topic of which the next round masks one clean segment in each log."""
    warehouse = make(folder)
    settings = settings_of({"segment.bytes": segment_bytes})
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))
    put_warehouse_format(warehouse.store, NEWEST_FORMAT)
    engine = OracleEngine(warehouse.files)
    append(warehouse, NAME, records(range(60), keys=60))
    compact(warehouse, engine, NAME, RunRequest())
    append(warehouse, NAME, records(range(4), keys=60))
    return Prepared(warehouse, engine)


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


def check_struck_round(ready: Prepared, injector: Injector, request: RunRequest = AT_ONCE) -> None:
    """After a round behind struck ports the log is as before or as after, and a new round gets through.

    Of rounds in parts each log by itself, as they are taken one after the other.
    """
    before, wanted = contents(ready.warehouse, NAME), compacted(ready.warehouse, NAME)
    assert before != wanted
    succeeded = False
    try:
        engine = FaultyEngine(ready.engine, injector)
        report = compact(faulty(ready.warehouse, injector), engine, NAME, request)
        succeeded = not report.failed
    except (LithifyError, CrashError):
        pass
    check_whole(ready.warehouse, NAME)
    now = contents(ready.warehouse, NAME)
    assert now == wanted or (not succeeded and all(log in pair for log, *pair in zip(now, before, wanted, strict=True)))
    assert now in (before, wanted) or request is IN_PARTS, injector
    report = compact(ready.warehouse, ready.engine, NAME, request)
    assert report.failed == ()
    assert contents(ready.warehouse, NAME) == wanted
    check_whole(ready.warehouse, NAME)
    assert succeeded or injector.struck
