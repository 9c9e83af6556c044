"""Every port call of a cleaner fails, in turn; it heals by itself, and what was due gets done (C6, C31).

    step, step, step ...          all topics, all chores, until there is nothing to do
         ▲ the N-th call of a store, of files, of the engine or of the database of leases is struck

A call that fails leaves the cleaner running; where the process dies another cleaner goes on, once the
first has not renewed its leases for long enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lithify.errors import CoordinationError, WarehouseError
from lithify.reports.events import EventKind
from lithify.service.documents import failures_of
from support.faults.ports import CrashError, FaultyEngine, FaultyPort, Injector, Kind, faulty
from support.topics.cleaner_lake import CleanerLake

DAY_MS = 86_400_000
LOOKS = 12
"""Enough for what failed to be tried again, and for upkeep to come round."""


def prepared() -> CleanerLake:
    """Topics with something due for each thing that a cleaner does."""
    lake = CleanerLake(now_ms=10 * DAY_MS)
    compacted = lake.topic("compacted", partitions=2, versions_retention_ms=1_000, sweep_grace_ms=60_000)
    retained = lake.topic("retained", cleanup_policy="delete", retention_ms=DAY_MS)
    view = lake.topic("view", compaction_mode="side-by-side", delete_retention_ms=1_000)
    for partition in (0, 1):
        lake.append(compacted, "a=1 b=1 a=2 c=-", partition)
    lake.append(retained, "a=1 b=1", age_ms=2 * DAY_MS)
    lake.append(retained, "a=2")
    lake.append(view, "a=1 b=1 a=- b=2")
    return lake


def picture(lake: CleanerLake) -> object:
    """What is left of each log, how far it is clean, and how many versions are kept."""
    store = lake.warehouse.store
    found = {}
    for name in store.topics():
        state = store.load(name)
        logs = tuple((lake.text(name, log.partition), log.first_dirty_offset) for log in state.logs)
        views = tuple(None if log.view is None else log.view.volume.records for log in state.logs)
        found[name] = (logs, views, len(store.versions(name)), failures_of(store, state))
    return found


class FaultyCoordination(FaultyPort):
    """A database of leases, whose errors are of its own kind."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)

        def through(*args: Any, **more: Any) -> Any:
            try:
                return found(*args, **more)
            except WarehouseError as error:
                raise CoordinationError(str(error)) from error

        return through if callable(found) else found


def driven(lake: CleanerLake, injector: Injector) -> Iterator[None]:
    """A cleaner behind ports that can be struck; and, if it dies, another one."""
    lake.engine._real = FaultyEngine(lake.engine._real, injector)
    warehouse = faulty(lake.warehouse, injector)
    real = lake.coordination
    lake.coordination = FaultyCoordination(real, injector)  # type: ignore[assignment]
    one = lake.cleaner("alpha", warehouse=warehouse, sweep_interval_ms=30_000)
    lake.coordination = real
    for _ in range(LOOKS):
        try:
            one.work()
        except CrashError:
            one = lake.cleaner("beta", sweep_interval_ms=30_000)
        assert one.told(EventKind.QUARANTINED) == []
        lake.wait()
        yield


def finished(lake: CleanerLake, injector: Injector) -> object:
    for _ in driven(lake, injector):
        pass
    return picture(lake)


NEVER = 10**9


def test_undisturbed_it_does_all_of_it() -> None:
    lake = prepared()
    found = finished(lake, Injector(NEVER, Kind.FAILS))
    texts = {name.topic: [text for text, _ in logs] for name, (logs, *_) in found.items()}  # type: ignore[attr-defined]
    assert texts == {"compacted": ["b=1 a=2 c=-"] * 2, "retained": ["a=2"], "view": ["a=1 b=1 a=- b=2"]}
    assert [kept for _, _, kept, _ in found.values()] == [0, 1, 2]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_struck_anywhere_it_gets_everything_done(kind: Kind) -> None:
    wanted = finished(prepared(), Injector(NEVER, kind))
    calls: set[str] = set()
    at = 1
    while True:
        lake = prepared()
        injector = Injector(at, kind)
        found = finished(lake, injector)
        if not injector.struck:
            break
        calls.add(injector.calls[at - 1])
        assert found == wanted, f"call {at}: {injector.calls[at - 1]}"
        at += 1
    assert {
        "change_tokens", "load_at", "load", "segments", "get_document failures", "commit", "versions",
        "stored_files", "named_files", "closings", "delete_files", "put_document reports", "open_round",
        "find_survivors", "rewrite", "take", "renew", "leases", "release", "missing",
    } <= calls  # fmt: skip
