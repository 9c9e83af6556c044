"""A lake in memory with cleaners on it: the test takes every step, on a clock that only it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.daemons.cleaner.cleaner import Cleaner, Waits
from lithify.daemons.cleaner.cleaner_options import CleanerOptions
from lithify.daemons.cleaner.loop import make_cleaner
from lithify.daemons.stop import Stop
from lithify.errors import CoordinationError, LithifyError
from lithify.model.names import LogId, TopicName
from lithify.model.record import Record
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.engine import PlannedLog, Progress, RunLimits
from lithify.ports.store import Warehouse
from lithify.reports.events import CleanerEvent, EventKind
from lithify.service.read.fetch import open_log
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_store import MemoryWarehouse
from lithify.testing.oracle_engine import OracleEngine
from support.builders import some_settings
from support.topics.known_positions import KnownPositions

LEASE_MS = 30_000
INTERVAL_MS = 15_000


class TroubledEngine:
    """The oracle, of which some logs fail, or the whole job does; it notes which logs came together."""

    def __init__(self, real: OracleEngine) -> None:
        self._real = real
        self.fails: dict[LogId, LithifyError] = {}
        self.job_fails: Exception | None = None
        self.jobs: list[list[LogId]] = []
        self.during: Callable[[], object] = lambda: None
        """What happens during each job."""

    @contextmanager
    def open_round(
        self, logs: Sequence[PlannedLog], limits: RunLimits, run_id: str, progress: Progress
    ) -> Iterator[Any]:
        self.jobs.append([log.id for log in logs])
        self.during()
        # As with Spark, which is not started for rounds that have nothing to read.
        if self.job_fails is not None and any(log.plan.scanned for log in logs):
            raise self.job_fails
        with self._real.open_round(logs, limits, run_id, progress) as round_:
            yield _TroubledRound(round_, self.fails)


class _TroubledRound:
    def __init__(self, real: Any, fails: Mapping[LogId, LithifyError]) -> None:
        self._real = real
        self._fails = fails
        self.rewrite = real.rewrite

    def find_survivors(self) -> Any:
        return {log: self._fails.get(log, found) for log, found in self._real.find_survivors().items()}


@dataclass(slots=True)
class OneCleaner:
    """A cleaner, what it told, and its leases, which the test renews."""

    cleaner: Cleaner
    leases: LeaseKeeper
    stop: Stop
    events: list[CleanerEvent] = field(default_factory=list)

    def renew(self) -> None:
        self.leases.renew()
        with suppress(CoordinationError):  # as in `loop`
            self.leases.observe()

    def work(self, *, steps: int = 200) -> list[CleanerEvent]:
        """Steps until there is nothing to do; the events meanwhile."""
        before = len(self.events)
        for _ in range(steps):
            self.renew()
            if isinstance(self.cleaner.step(), Waits):
                return self.events[before:]
        raise AssertionError(f"still busy after {steps} steps: {self.events[-3:]}")

    def told(self, kind: EventKind) -> list[CleanerEvent]:
        return [event for event in self.events if event.kind is kind]


class CleanerLake:
    """Topics by short names, of one partition unless said otherwise."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.clock = FakeClock(now_ms)
        memory = MemoryWarehouse(self.clock.new_id, self.clock.now_ms)
        self.groups = KnownPositions()
        self.warehouse = Warehouse(memory.store, memory.files, self.clock, self.groups)
        self.engine = TroubledEngine(OracleEngine(memory.files))
        self.coordination = MemoryCoordination()

    def cleaner(self, name: str = "alpha", *, warehouse: Warehouse | None = None, **options: Any) -> OneCleaner:
        stop = Stop()
        leases = LeaseKeeper(self.coordination, f"{name}/{self.clock.new_id()}", LEASE_MS, self.clock.monotonic_ms)
        events: list[CleanerEvent] = []
        given = CleanerOptions(name, "memory", interval_ms=INTERVAL_MS, lease_ms=LEASE_MS, **options)
        made = make_cleaner(warehouse or self.warehouse, self.engine, leases, given, stop, events.append)
        return OneCleaner(made, leases, stop, events)

    def topic(self, name: str, partitions: int = 1, **config: object) -> TopicName:
        topic = TopicName("default", name)
        self.warehouse.store.create_topic(
            NewTopic(topic, name, some_settings(**config), partitions, self.clock.now_ms())
        )
        return topic

    def append(self, topic: TopicName, text: str, partition: int = 0, *, age_ms: int = 0) -> None:
        """`a=1 b=2 a=-`: keys and values, `-` deletes."""
        timestamp = self.clock.now_ms() - age_ms
        pairs = [pair.partition("=") for pair in text.split()]
        records = [
            Record(key.encode(), None if value == "-" else value.encode(), timestamp, partition=partition)
            for key, _, value in pairs
        ]
        append(self.warehouse, topic, records)

    def state(self, topic: TopicName) -> TopicState:
        return self.warehouse.store.load(topic)

    def text(self, topic: TopicName, partition: int = 0) -> str:
        """What is left of a log, as `append` takes it."""
        records = open_log(self.warehouse, self.state(topic), partition)
        return " ".join(f"{(r.key or b'').decode()}={'-' if r.value is None else r.value.decode()}" for r in records)

    def wait(self, ms: int = INTERVAL_MS) -> None:
        self.clock.advance(ms)
