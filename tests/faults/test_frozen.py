"""Every service is paused at each of its port calls while any other one runs to its end (C6, C44, C45).

On the memory store all pairs at all calls, on Iceberg a sample. The textbook is the services themselves,
one after the other: what they come to alone, the tests beside this one hold to the contract.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest

from faults.cases import CASES
from faults.history import (
    CONFIGS,
    GRACE_MS,
    START_MS,
    a_history,
    a_round,
    iceberg_warehouse,
    memory_warehouse,
    prepared_again,
    records,
)
from lithify.errors import LithifyError
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.engine import Progress
from lithify.ports.store import Warehouse
from lithify.service.change.alter import uncompact
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.sweep import sweep
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg.catalog import lock
from lithify.testing.fake_clock import FakeClock
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import LONG_MS, Freezer, Verb, faulty, outcome
from support.faults.topics import NAME, PARTITIONS, picture
from support.topics.whole_logs import check_whole

MOST_CALLS = 120
"""No service makes so many port calls."""
ICEBERG_SAMPLE = 14
"""Of all (configuration, one, other, call) so many are tried on Iceberg."""
PAUSES_MS = (0, LONG_MS)
PAUSED = [paused for paused in itertools.product(CONFIGS, PAUSES_MS) if paused != ("aging", 0)]
"""Where no time passes nothing ages."""


def recreate(warehouse: Warehouse) -> object:
    settings = warehouse.store.load(NAME).settings
    warehouse.store.drop_topic(NAME)
    return warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))


def of_cases(*names: str) -> dict[str, Verb]:
    return {name: CASES[name].verb for name in names}


VERBS: Mapping[str, Verb] = {
    "append": lambda w: append(w, NAME, records(range(60, 70), keys=9)),
    **of_cases("batch", "ingest"),
    "round": a_round,
    "retain": lambda w: retain(w, NAME),
    **of_cases("delete-records", "truncate", "truncate-view", "alter", "undo"),
    "uncompact": lambda w: uncompact(w, NAME, lose_trimmed=True),
    **of_cases("expire", "sweep"),
    "recreate": recreate,
}
ONES = [name for name in VERBS if name != "recreate"]
"""`recreate` is two calls of the store; a service that is paused between them has deleted the topic."""


def seen(warehouse: Warehouse) -> object:
    """What a user sees, now and after everything that is due has been done days later."""
    try:
        now = picture(warehouse)
        check_whole(warehouse, NAME)
        clock = warehouse.clock
        assert isinstance(clock, FakeClock)
        clock.advance(LONG_MS)
        a_round(warehouse)
        expire_versions(warehouse, NAME)
        sweep(warehouse, NAME, delete=True, allow_unusual=True)
        check_whole(warehouse, NAME)
    except LithifyError as error:
        return type(error)
    return now, picture(warehouse)


class LateClock(FakeClock):
    """A clock that was read `early` times before `passed_ms` went by."""

    def __init__(self, real: FakeClock, early: int, passed_ms: int) -> None:
        super().__init__(real.now_ms())
        self._real, self.early, self.reads, self._passed_ms = real, early, 0, passed_ms

    def now_ms(self) -> int:
        self.reads += 1
        return self._real.now_ms() - (self._passed_ms if self.reads <= self.early else 0)

    def new_id(self) -> str:
        return self._real.new_id()

    def sleep(self, seconds: float) -> None:
        """It does not wait."""


class Orders:
    """What one service after the other comes to, in each order: worked out once for each pair."""

    def __init__(self, anew: Callable[[], Warehouse], one: str, other: str, pause_ms: int) -> None:
        self._anew, self._pause_ms, self._names = anew, pause_ms, (one, other)
        self._one, self._other = VERBS[one], VERBS[other]
        self._known: list[object] = []
        self._more = self._both()

    def has(self, found: object) -> bool:
        """Whether both were done, in either order. The orders are worked out as far as needed, and kept."""
        if found in self._known:
            return True
        for outcome_of_an_order in self._more:
            self._known.append(outcome_of_an_order)
            if found == outcome_of_an_order:
                return True
        return False

    @cached_property
    def other_alone(self) -> object:
        """What the second comes to where the first was refused."""
        return self._run(self._pause, lambda w: outcome(self._other, w))

    def _both(self) -> Iterator[object]:
        """What the two come to. The first may have read the clock some times before the pause."""
        other = partial(outcome, self._other)
        yield self._run(partial(outcome, self._one), self._pause, other)
        if self._one is a_round:  # the rounds of a run that another commit overtook are done again
            for first, last in itertools.permutations(range(PARTITIONS)):
                yield self._run(
                    partial(a_round, partitions=(first,)), self._pause, other, partial(a_round, partitions=(last,))
                )
        for is_first in (False, True):
            for early in range(MOST_CALLS):
                warehouse = self._anew()
                self._pause(warehouse)
                assert isinstance(warehouse.clock, FakeClock)
                clock = LateClock(warehouse.clock, early, self._pause_ms)
                late = Warehouse(warehouse.store, warehouse.files, clock)
                if is_first:
                    outcome(self._one, late)
                    outcome(self._other, warehouse)
                else:
                    outcome(self._other, warehouse)
                    outcome(self._one, late)
                yield seen(warehouse)
                if clock.reads < early or not self._pause_ms:
                    break

    def _pause(self, warehouse: Warehouse) -> None:
        clock = warehouse.clock
        assert isinstance(clock, FakeClock)
        clock.advance(self._pause_ms)

    def _run(self, *steps: Callable[[Warehouse], object]) -> object:
        warehouse = self._anew()
        for step in steps:
            step(warehouse)
        return seen(warehouse)

    def check(self, at: int, anew: Callable[[], Warehouse] | None = None) -> bool:
        """Freezes the one at its `at`-th call; False if it has none. What was acknowledged is there.

        `anew` makes the same history in another store.
        """
        warehouse = (anew or self._anew)()

        def meanwhile() -> None:
            self._pause(warehouse)
            outcome(self._other, warehouse)

        freezer = Freezer(at, meanwhile)
        refused = outcome(self._one, faulty(warehouse, freezer))
        if not freezer.reached:
            return False
        found = seen(warehouse)
        where = f"{self._names[0]} frozen before call {at} ({freezer.calls[at - 1]}), then {self._names[1]}"
        right = self.has(found) or (refused is not None and found == self.other_alone)
        assert right, f"{where}; refused: {refused!r}; {found}"
        return True


def prepared(make: Callable[[Path], Warehouse], folder: Path, config: str) -> Callable[[], Warehouse]:
    return prepared_again(make, lambda make, to: a_history(make, to, CONFIGS[config]), folder)


@pytest.mark.parametrize(
    ("config", "pause_ms"), PAUSED, ids=lambda value: {0: "at once", LONG_MS: "long"}.get(value, value)
)
@pytest.mark.parametrize("one", ONES)
def test_frozen_anywhere_it_is_as_one_order_or_the_other(config: str, one: str, pause_ms: int, tmp_path: Path) -> None:
    """C6, C44, C45: whatever runs while a service is paused, at whichever of its calls."""
    tried = 0
    anew = prepared(memory_warehouse, tmp_path, config)
    for other in VERBS:
        orders = Orders(anew, one, other, pause_ms)
        at = 1
        while orders.check(at):
            at += 1
            assert at < MOST_CALLS
        tried += at - 1
    assert tried >= len(VERBS), "hardly a call was frozen"


def test_the_same_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of the above on Iceberg, where what a commit stages are files as well."""
    monkeypatch.setattr(lock, "MAX_WAIT_S", 0.05)  # which the other waits out if the one was frozen in its turn
    luck = random.Random(15)
    every = list(itertools.product(CONFIGS, PAUSES_MS, ONES, VERBS))
    tried = 0
    on_disk = {config: prepared(iceberg_warehouse, tmp_path / config, config) for config in CONFIGS}
    for config, pause_ms, one, other in luck.sample(every, ICEBERG_SAMPLE):
        orders = Orders(prepared(memory_warehouse, tmp_path / "memory", config), one, other, pause_ms)
        tried += orders.check(luck.randint(1, 5), on_disk[config])
    assert tried > ICEBERG_SAMPLE // 4


class SlowEngine(OracleEngine):
    """Tells its progress for hours after it has written."""

    @contextmanager
    def open_round(self, logs: Any, limits: Any, run_id: str, progress: Progress) -> Iterator[Any]:
        with super().open_round(logs, limits, run_id, progress) as round_:
            yield round_
            for done in range(6):
                progress("rewrite", done, 6)


@pytest.mark.parametrize("make", [memory_warehouse, iceberg_warehouse])
def test_a_round_that_takes_longer_than_the_grace_still_commits(
    make: Callable[[Path], Warehouse], tmp_path: Path
) -> None:
    """C45: while it writes heartbeats, sweeps leave its files alone, however old they are."""
    warehouse = make(tmp_path)
    clock = warehouse.clock
    assert isinstance(clock, FakeClock)
    settings = settings_of({"sweep.grace.ms": GRACE_MS})
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, clock.now_ms()))
    append(warehouse, NAME, records(range(20), keys=6))

    def hours_go_by(_phase: str, _done: int, _total: int) -> None:
        for sign in tmp_path.rglob("lithify/runs/*.json"):
            if sign.stat().st_mtime > time.time() - 60:  # the disk has a clock of its own
                os.utime(sign, (clock.now_ms() / 1000,) * 2)
        clock.advance(GRACE_MS // 3)
        sweep(warehouse, NAME, delete=True)

    report = compact(warehouse, SlowEngine(warehouse.files), NAME, RunRequest(), hours_go_by)

    assert report.failed == ()
    assert report.changed
    assert clock.now_ms() > START_MS + 2 * GRACE_MS
    check_whole(warehouse, NAME)
