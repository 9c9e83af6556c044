"""Ctrl-C at every point of every consumer, which is then used again, as after a stopped cell of a notebook.

What it had not handed over is handed over by the next call, each record once; a table is that of the topic (C6, C9).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pytest

from lithify.api.topic import Topic
from lithify.coordination.groups.group_reader import GroupReader
from lithify.coordination.groups.member import Member
from lithify.hydration import hydrate
from lithify.model.groups.positions import GroupTopic
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.rules.reading.pieces import Reading
from lithify.service.round.compact import RunRequest, compact
from lithify.service.snapshot.lake_and_live import STORE_MS
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_groups import MemoryGroups
from lithify.testing.oracle_engine import OracleEngine
from support.faults.interrupts import interrupts
from support.faults.topics import NAME, memory_warehouse

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # struck while it is closed

T = TypeVar("T")

CONSUMERS, READERS, GROUPS, FILES = (
    ("service/snapshot",),
    ("service/read", "rules/reading"),
    ("coordination/groups",),
    ("hydration",),
)
"""Where they are struck."""
KEPT: dict[str, object] = {"delete.retention.ms": 10**12}  # else what was interrupted would miss deletes (C49)


@dataclass(slots=True)
class Scene:
    """A topic that grows while it is consumed."""

    topic: Topic
    got: list[tuple[int, int]] = field(default_factory=list)
    """Partition and offset of every record that was handed over."""
    table: dict[bytes, bytes] = field(default_factory=dict)
    """The latest value of every live key."""
    _next: int = 0

    def more(self) -> None:
        """Records and deletes, a new partition, a round."""
        warehouse, first = self.topic.warehouse, self._next
        self._next += 12
        if first:
            self.topic.alter(partitions=len(self.topic.state().logs) + 1)
        logs = len(self.topic.state().logs)
        numbers = range(first, self._next)
        batch = [(n % logs, b"%d-%d" % (n % logs, n % 5), None if n % 4 == 3 else b"%d" % n) for n in numbers]
        for _, key, value in batch:
            self.table.pop(key, None)
            self.table |= {} if value is None else {key: value}
        append(warehouse, NAME, [Record(key, value, 1_000, partition=p) for p, key, value in batch])
        if first:
            compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest((0,)))

    def follow(self, read: Callable[[], None]) -> None:
        """Reads what there is, again and again: what an interrupted call has not seen, a later one sees."""
        for more in (True, True, False, False, False):
            again(read)
            if more:
                self.more()
            self.wait()

    def wait(self) -> None:
        clock = self.topic.warehouse.clock
        assert isinstance(clock, FakeClock)
        clock.advance(STORE_MS + 1)

    def take(self, records: Iterable[Record]) -> None:
        self.got += [(record.partition or 0, record.offset or 0) for record in records]

    @property
    def logs(self) -> dict[int, list[int]]:
        """What was handed over of each log."""
        return {p: [offset for of, offset in self.got if of == p] for p in {p for p, _ in self.got}}


def a_scene() -> Scene:
    warehouse = memory_warehouse(None)  # type: ignore[arg-type]
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings_of(KEPT), 2, warehouse.clock.now_ms()))
    scene = Scene(Topic(warehouse, NAME))
    scene.more()
    return scene


def again(call: Callable[[], T]) -> T:
    """As the user of a notebook does, until the cell ends by itself."""
    while True:
        with suppress(KeyboardInterrupt):
            return call()


class Unwilling(dict[bytes, Record]):
    """A table that is full once."""

    left = 17

    def __setitem__(self, key: bytes, record: Record) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        super().__setitem__(key, record)


def fills(scene: Scene) -> None:
    table: dict[bytes, Record] = Unwilling()
    consumer = again(scene.topic.consumer)
    for _ in range(3):
        again(lambda: consumer.fill(table))
        assert {key: record.value for key, record in table.items()} == scene.table
        scene.more()


def polled(scene: Scene) -> None:
    consumer = again(scene.topic.consumer)

    def poll() -> None:
        while not consumer.caught_up():
            if (record := consumer.poll()) is not None:
                scene.take([record])

    scene.follow(poll)


def taken(scene: Scene) -> None:
    consumer = again(scene.topic.consumer)

    def take() -> None:
        while not consumer.caught_up():
            scene.take(consumer.take())

    scene.follow(take)


def polled_by_readers(scene: Scene) -> None:
    reader = again(lambda: scene.topic.reader(follow=True))

    def poll() -> None:
        for batch in reader.poll():
            scene.take(batch.records())

    scene.follow(poll)


def batches_of_readers(scene: Scene) -> None:
    scene.more()
    reader = again(scene.topic.reader)

    def read() -> None:
        for table in reader.batches():
            take_table(scene, table)

    again(read)


def one_by_one(scene: Scene) -> None:
    reader = again(lambda: scene.topic.reader(follow=True))

    def read() -> None:
        while reader.has_message_available():
            record = reader.read_next()
            assert record is not None
            scene.take([record])

    scene.follow(read)


def take_table(scene: Scene, table: object) -> None:
    scene.got += zip(*(table.column(name).to_pylist() for name in ("partition", "offset")), strict=True)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "program, places",
    [
        (polled, CONSUMERS),
        (taken, CONSUMERS),
        (polled_by_readers, READERS),
        (batches_of_readers, READERS),
        (one_by_one, READERS),
    ],
)
def test_every_record_is_handed_over_once(program: Callable[[Scene], None], places: tuple[str, ...]) -> None:
    whole = a_scene()
    program(whole)
    assert len(whole.logs) > 2, "partitions that were added are consumed too"
    for interrupt in interrupts(lambda: program(a_scene()), *places):
        scene = a_scene()
        interrupt.during(lambda scene=scene: program(scene))  # type: ignore[misc]
        assert scene.logs == whole.logs, interrupt


def test_a_filled_table_is_that_of_the_topic() -> None:
    for interrupt in interrupts(lambda: fills(a_scene()), *CONSUMERS):
        interrupt.during(lambda: fills(a_scene()))


class Beating(FakeClock):
    """A clock on which the member's own thread has its turn while the reader waits."""

    member: Member

    def sleep(self, seconds: float) -> None:
        assert self.monotonic_ms() < 10 * 30_000, "it waits for nobody"
        super().sleep(seconds)
        self.member.beat()


def test_a_group_reads_every_record_and_commits_none_that_it_has_not() -> None:
    def program(scene: Scene) -> None:
        scene.more()
        groups, part = MemoryGroups("here"), GroupTopic("here", "g", NAME)
        clock = Beating()
        member = clock.member = again(lambda: Member(groups, part, "one", 30_000, clock))
        topic = replace(scene.topic, warehouse=replace(scene.topic.warehouse, clock=clock))
        again(member.beat)
        reader = again(lambda: GroupReader(topic.warehouse, member, topic.state(), "earliest", Reading()))

        def read() -> None:
            for table in reader.batches():
                take_table(scene, table)
                reader.commit()
                check()

        def check() -> None:
            committed = {p.log.partition: p.cursor.offset for p in groups.positions("g", NAME)}
            assert all((p, offset) in scene.got for p, offset in all_of(topic) if offset < committed.get(p, 0))

        again(read)
        check()
        assert set(scene.got) == all_of(topic)

    for interrupt in interrupts(lambda: program(a_scene()), *GROUPS):
        interrupt.during(lambda: program(a_scene()))


def all_of(topic: Topic) -> set[tuple[int, int]]:
    return {(record.partition or 0, record.offset or 0) for record in topic.reader()}


def test_a_table_in_a_file_is_that_of_the_topic(tmp_path: Path) -> None:
    """Rows and position are stored together, so a run after an interrupted one continues where the table is."""

    def program(number: int) -> None:
        scene, to = a_scene(), tmp_path / f"{number}.db"
        scene.follow(lambda: hydrate(scene.topic, str(to)))
        with closing(sqlite3.connect(to)) as file:
            assert dict(file.execute("SELECT key, value FROM orders")) == scene.table

    for number, interrupt in enumerate(islice(interrupts(lambda: program(0), *FILES), 0, None, 2), 1):
        interrupt.during(lambda number=number: program(number))  # type: ignore[misc]
