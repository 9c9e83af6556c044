"""Cleaners that share topics of hundreds of partitions, of which some die and some are frozen in the middle of rounds.

Of those that are awake no two do a log at once; every log is compacted in the end, by those that are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from lithify.daemons.cleaner.cleaner import Waits
from lithify.model.names import LogId, TopicName
from lithify.ports.engine import PlannedLog
from support.faults.ports import CrashError
from support.topics.cleaner_lake import LEASE_MS, CleanerLake, OneCleaner

WIDE = 230
"""Partitions; more than two shares of a topic that is split."""
MOST_NESTED = 3


class Fleet:
    """Five cleaners; whenever one is in a round, others may do any steps meanwhile, and it may die or be frozen."""

    def __init__(self, seed: int) -> None:
        self.luck = Random(seed)
        self.lake = CleanerLake()
        self.wide = self.lake.topic("wide", WIDE)
        self.topics = [self.wide, *(self.lake.topic(f"narrow{n}", 3) for n in range(5))]
        self.lake.engine = Interrupted(self.lake.engine, self)  # type: ignore[assignment]
        self.awake: list[OneCleaner] = []
        self.busy: list[OneCleaner] = []
        self.logs: list[set[LogId]] = []
        """By nesting, the logs of the rounds of those that are awake."""
        self.started = self.deaths = self.freezes = 0
        for _ in range(5):
            self.start()

    def start(self) -> None:
        self.started += 1
        self.awake.append(self.lake.cleaner(f"cleaner{self.started}"))

    def fill(self) -> None:
        for name in self.topics:
            for log in self.lake.state(name).logs:
                if self.luck.random() < 0.8:
                    self.lake.append(name, f"a={self.luck.randrange(9)} a=2 b=1", log.partition)

    def let_others_work(self, steps: int) -> None:
        for _ in range(steps):
            free = [cleaner for cleaner in self.awake if cleaner not in self.busy]
            if free and len(self.busy) < MOST_NESTED:
                self.step(self.luck.choice(free))

    def pass_time(self, ms: int) -> None:
        """Those that are awake renew all the time, as their threads do, also during rounds."""
        for _ in range(0, ms, LEASE_MS // 3):
            self.lake.clock.advance(LEASE_MS // 3)
            for cleaner in self.awake:
                cleaner.renew()

    def step(self, cleaner: OneCleaner) -> bool:
        self.busy.append(cleaner)
        try:
            cleaner.renew()
            return isinstance(cleaner.cleaner.step(), Waits)
        except CrashError:
            self.deaths += 1
            self.start()
            return False
        finally:
            self.busy.remove(cleaner)

    def interrupt(self, logs: set[LogId]) -> None:
        """The cleaner that has begun its step last is in the middle of a round of these logs."""
        cleaner = self.busy[-1]
        assert not any(logs & others for others in self.logs), "two do a log at once"
        match self.luck.choice(["dies", "frozen", "frozen", "slow", "", ""]):
            case "dies" if self.deaths < 3:
                self.awake.remove(cleaner)
                raise CrashError
            case "frozen" if self.freezes < 3:
                self.freezes += 1
                self.awake.remove(cleaner)
                self.pass_time(2 * LEASE_MS)
                self.let_others_work(12)
                self.awake.append(cleaner)
            case "slow":
                self.logs.append(logs)
                self.pass_time(2 * LEASE_MS)
                self.let_others_work(4)
                self.logs.pop()
            case _:
                self.logs.append(logs)
                self.let_others_work(2)
                self.logs.pop()


class Interrupted:
    """An engine that tells the fleet of every round."""

    def __init__(self, real: Any, fleet: Fleet) -> None:
        self._real, self._fleet = real, fleet

    @contextmanager
    def open_round(self, logs: list[PlannedLog], *rest: Any) -> Iterator[Any]:
        with self._real.open_round(logs, *rest) as round_:
            self._fleet.interrupt({log.id for log in logs})
            yield round_


def newest(text: str) -> str:
    """What a round leaves."""
    found: dict[str, str] = {}
    for pair in text.split():
        key, _, value = pair.partition("=")
        found.pop(key, None)
        found[key] = value
    return " ".join(f"{key}={value}" for key, value in found.items())


def left_undone(lake: CleanerLake, names: list[TopicName]) -> list[str]:
    logs = [LogId(name, p) for name in names for p in lake.state(name).partitions]
    texts = {log: lake.text(log.topic, log.partition) for log in logs}
    return [str(log) for log, text in texts.items() if text != newest(text)]


@pytest.mark.parametrize("seed", range(4))
def test_every_log_is_compacted_and_no_two_do_one_at_once(seed: int) -> None:
    fleet = Fleet(seed)
    for _ in range(5):
        fleet.fill()
        before = {name: [fleet.lake.text(name, p) for p in fleet.lake.state(name).partitions] for name in fleet.topics}
        fleet.pass_time(LEASE_MS)
        fleet.let_others_work(25)
        fleet.pass_time(4 * LEASE_MS)
        for _ in range(300):
            if all([fleet.step(cleaner) for cleaner in list(fleet.awake)]):  # noqa: C419 - each takes a step
                fleet.pass_time(LEASE_MS)
                if not left_undone(fleet.lake, fleet.topics):
                    break
        assert left_undone(fleet.lake, fleet.topics) == []
        after = {name: [fleet.lake.text(name, p) for p in fleet.lake.state(name).partitions] for name in fleet.topics}
        assert after == {name: [newest(text) for text in texts] for name, texts in before.items()}
    assert fleet.deaths + fleet.freezes > 0
