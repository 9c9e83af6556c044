"""A whole topic in memory: store, files, services and the oracle engine, on a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import Segment, segments_of
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import LogState
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import Warehouse
from lithify.reports.rounds.round import RoundReport
from lithify.rules.reading.pieces import Reading
from lithify.service.creation import create_warehouse
from lithify.service.read.fetch import LogReader, open_log
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import AppendResult, append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_store import MemoryWarehouse
from lithify.testing.oracle_engine import OracleEngine
from support.builders import some_settings
from support.engines.phased import PhasedEngine
from support.topics.known_positions import KnownPositions

ORDERS = TopicName("default", "orders")


def a_warehouse(*topics: TopicName, partitions: int = 1, now_ms: int = 0, **config: object) -> Warehouse:
    """A warehouse in memory with these topics, on a clock that only the test moves."""
    clock = FakeClock(now_ms)
    memory = MemoryWarehouse(clock.new_id, clock.now_ms)
    for name in topics:
        memory.store.create_topic(NewTopic(name, str(name), some_settings(**config), partitions, 0))
    return memory.with_clock(clock)


class MemoryTopic:
    """The topic `orders`. Settings by Kafka's names, with underscores for dots."""

    def __init__(self, *, partitions: int = 1, now_ms: int = 1000, **config: object) -> None:
        self.clock = FakeClock(now_ms)
        memory = MemoryWarehouse(self.clock.new_id, self.clock.now_ms)
        self.files = memory.files
        self.store = memory.store
        self.groups = KnownPositions()
        self.warehouse = Warehouse(memory.store, memory.files, self.clock, self.groups)
        """What verbs go through; a test may put something in between."""
        self.engine: Any = OracleEngine(memory.files)
        create_warehouse(memory.store)
        memory.store.create_topic(NewTopic(ORDERS, "orders", some_settings(**config), partitions, now_ms))

    def make_again(self) -> None:
        """The topic is deleted and recreated under that name and those settings."""
        store, state = self.store, self.state
        store.drop_topic(ORDERS)
        store.create_topic(NewTopic(ORDERS, "orders", state.settings, len(state.logs), self.clock.now_ms()))

    @property
    def state(self) -> TopicState:
        return self.store.load(ORDERS)

    def log(self, partition: int = 0) -> LogState:
        return self.state.log(partition)

    def segments(self, partition: int = 0) -> tuple[Segment, ...]:
        return segments_of(self.store.segments(self.state), partition)

    def view(self, partition: int = 0) -> tuple[Segment, ...]:
        return segments_of(self.store.view(self.state), partition)

    def append(self, records: Sequence[Record], *, keep_offsets: bool = False) -> AppendResult:
        return append(self.warehouse, ORDERS, records, keep_offsets=keep_offsets)

    def compact(
        self,
        now_ms: int | None = None,
        partitions: tuple[int, ...] | None = None,
        *,
        meanwhile: Callable[[], object] = lambda: None,
        times: int | None = None,
        early: bool = False,
    ) -> RoundReport:
        """A round; others do something `meanwhile`, each time it is tried or the first `times` times.

        That is before its commit or, with `early`, before it reads anything.
        """
        rounds = count()

        def happens() -> None:
            if times is None or next(rounds) < times:
                meanwhile()

        engine = PhasedEngine(self.engine, {"open" if early else "commit": happens})
        return compact(self.warehouse, engine, ORDERS, RunRequest(partitions, now_ms))

    def group_reads(self, group: str, offset: int, partition: int = 0) -> None:
        """A group commits a position."""
        self.groups.commit(self.state, partition, group, offset, self.clock.now_ms())

    def edit(self, **changes: Any) -> None:
        """A commit of another writer: settings, or what it makes of partition 0."""
        state, run_id = self.state, self.clock.new_id()
        settings = changes.pop("settings", None)
        log = replace(state.log(0), **changes).with_run(run_id)
        edit = TopicEdit(run_id, self.clock.now_ms(), {0: log}, settings=settings)
        self.warehouse.store.commit(state, edit)

    def reader(
        self, partition: int = 0, start: object = "earliest", *, follow: bool = False, compacted: bool = False
    ) -> LogReader:
        how = Reading(follow=follow, compacted=compacted)
        return open_log(self.warehouse, self.state, partition, start, how)  # type: ignore[arg-type]

    def records(self, partition: int = 0, *, compacted: bool = False) -> list[Record]:
        """What a reader gets from the start to the end."""
        return list(self.reader(partition, compacted=compacted))

    def contents(self, partition: int = 0, *, view: bool = False) -> list[list[Record]]:
        """What is stored of the log, or of its view, by segment."""
        segments = self.view(partition) if view else self.segments(partition)
        return [[r for b in self.files.read(s, s.base_offset) for r in b.records()] for s in segments]
