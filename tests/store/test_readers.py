"""Readers on both stores, in every mode: nothing is left out and nothing comes twice, however they are asked.

PIP-429's loop (`while reader.has_message_available(): reader.read_next()`), one iterator for each record,
batches, all of these in turns, and sent elsewhere in the middle (C2, C7, C33, C36, C37).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from lithify.api.topic import Topic
from lithify.columnar.segment.convert import to_records
from lithify.errors import LogTruncatedError
from lithify.model.record import Record
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.service.round.compact import RunRequest, compact
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_store import MemoryWarehouse
from lithify.testing.oracle_engine import OracleEngine
from support.builders import some_settings
from support.engines.kernel import KernelEngine
from support.store.builders import NOW_MS, ORDERS, an_iceberg_place

PARTITIONS = 2


class AwakeClock(FakeClock):
    """No reader waits for a record that is there."""

    def sleep(self, seconds: float) -> None:
        pytest.fail("a reader waits")


@dataclass
class Place:
    """A topic, and rounds of it."""

    topic: Topic
    engine: OracleEngine | KernelEngine
    values: Iterator[int] = field(default_factory=lambda: iter(range(10**6)))

    def append(self, *keys: str) -> None:
        """A batch into every partition; a key in capitals is deleted."""
        self.topic.append([self._record(key, p) for p in range(PARTITIONS) for key in keys])

    def compact(self) -> None:
        assert compact(self.topic.warehouse, self.engine, ORDERS, RunRequest()).failed == ()

    def churn(self) -> None:
        """A batch, another of which records were superseded, and a round."""
        self.append("k", "l", "l")
        self.append("m", "k")
        self.compact()

    def _record(self, key: str, partition: int) -> Record:
        number = next(self.values)
        value = None if key.isupper() else f"v{number}".encode()
        return Record(key.lower().encode(), value, NOW_MS + number, partition=partition)


def on_memory(_folder: Path) -> tuple[Warehouse, OracleEngine]:
    clock = AwakeClock(NOW_MS)
    memory = MemoryWarehouse(clock.new_id, clock.now_ms)
    return Warehouse(memory.store, memory.files, clock), OracleEngine(memory.files)


def on_iceberg(folder: Path) -> tuple[Warehouse, KernelEngine]:
    clock = AwakeClock(NOW_MS)
    place = an_iceberg_place(folder, clock)
    return Warehouse(place.store, place.files, clock), KernelEngine()


STORES = {"memory": on_memory, "iceberg": on_iceberg}
PLACES = [f"{store}, {mode}" for store in STORES for mode in ("in-place", "side-by-side")]


def a_place(named: str, folder: Path) -> Place:
    """Two logs with gaps: superseded records, deletes that are gone, a last record that is gone, segments above D."""
    store, mode = named.split(", ")
    warehouse, engine = STORES[store](folder)
    place = Place(Topic(warehouse, ORDERS), engine)
    settings = some_settings(compaction_mode=mode, delete_retention_ms=0)
    warehouse.store.create_topic(NewTopic(ORDERS, "orders", settings, PARTITIONS, NOW_MS))
    place.append("a", "b", "c")
    place.append("a", "d", "D")
    place.append("e", "b", "F")
    place.compact()
    place.append("g", "a", "G")
    place.append("h", "i")
    return place


@pytest.fixture(scope="module", params=PLACES)
def place(request, tmp_path_factory) -> Place:
    """For those who only read."""
    return a_place(request.param, tmp_path_factory.mktemp("place"))


@pytest.fixture(params=PLACES)
def changing(request, tmp_path) -> Place:
    """For those under whom the topic changes."""
    return a_place(request.param, tmp_path / "warehouse")


@dataclass(frozen=True)
class Kind:
    """A kind of reader."""

    partition: int | None
    compacted: bool
    follow: bool

    def open(self, topic: Topic, start="earliest"):
        return topic.reader(self.partition, start, compacted=self.compacted, follow=self.follow)

    def wanted(self, topic: Topic, at_ms: int = 0) -> list[Record]:
        """What stands in the segments from a time on, log by log; side by side in those of the view."""
        store, state, found = topic.warehouse.store, topic.state(), []
        for p in state.partitions if self.partition is None else [self.partition]:
            segments, dirty = store.segments(state, [p]), 0
            if self.compacted and state.settings.side_by_side:
                dirty = state.log(p).first_dirty_offset
                segments = store.view(state, [p]) + tuple(s for s in segments if s.base_offset >= dirty)
            records = [r for s in segments for b in topic.warehouse.files.read(s, 0) for r in b.records()]
            later = next((n for n, r in enumerate(records) if r.timestamp >= at_ms), len(records))
            found += records[later:]
        return found


KINDS = [Kind(p, compacted, follow) for p in (0, None) for compacted in (False, True) for follow in (False, True)]


@pytest.fixture(params=KINDS, ids=str)
def kind(request) -> Kind:
    return request.param


def one_by_one(reader) -> Iterator[Sequence[Record]]:
    while reader.has_message_available():
        yield [reader.read_next()]


def an_iterator_each(reader) -> Iterator[Sequence[Record]]:
    while reader.has_message_available():
        yield [next(iter(reader))]


def in_batches(reader) -> Iterator[Sequence[Record]]:
    while reader.has_message_available():
        yield list(to_records(next(reader.batches())))


def in_turns(reader) -> Iterator[Sequence[Record]]:
    ways = cycle([one_by_one, an_iterator_each, one_by_one, in_batches, an_iterator_each])
    while reader.has_message_available():
        yield next(next(ways)(reader))


Loop = Callable[[Any], Iterator[Sequence[Record]]]
LOOPS: dict[str, Loop] = {
    "read_next": one_by_one,
    "next(iter)": an_iterator_each,
    "batches": in_batches,
    "in turns": in_turns,
}


def run(loop: Loop, reader: Any, times: int | None = None) -> list[Record]:
    return [record for taken in islice(loop(reader), times) for record in taken]


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_available_is_read_and_then_nothing_is(place, kind, loop):
    """C36: PIP-429's loop, whatever takes the next record."""
    reader = kind.open(place.topic)
    assert run(LOOPS[loop], reader) == kind.wanted(place.topic)
    assert not reader.has_message_available()
    if not kind.follow:
        assert reader.read_next() is None
        assert list(reader) == []
        reader.seek(at_ms=0)
        assert list(reader) == kind.wanted(place.topic)


def test_a_loop_goes_on_with_what_is_new(changing):
    """C7, C33: appends and rounds in between, to followers alone."""
    topic = changing.topic
    readers = [(kind, loop, kind.open(topic)) for kind in KINDS for loop in LOOPS.values()]
    wanted = {kind: kind.wanted(topic) for kind in KINDS}
    got = [run(loop, reader, 2) for _, loop, reader in readers]
    for change in (lambda: changing.append("j", "h"), changing.churn):
        change()
        for (kind, loop, reader), taken in zip(readers, got, strict=True):
            taken.extend(run(loop, reader))
            if kind.follow:
                ends = {r.partition: r.offset for r in wanted[kind]}
                new = [r for r in kind.wanted(topic) if r.offset > ends[r.partition]]
                assert taken == wanted[kind] + new, kind
            else:
                assert taken == wanted[kind], kind
        wanted |= {kind: taken for (kind, _, _), taken in zip(readers, map(list, got), strict=True)}


def test_a_delete_that_went_unseen_is_reported(changing):
    """C49: to followers of one log and of all, and to readers that continue at a cursor; the backlog has it still."""
    topic = changing.topic
    readers = [(kind, kind.open(topic)) for kind in KINDS]
    first = [(kind, reader.cursor() if kind.partition == 0 else reader.cursors()) for kind, reader in readers]
    for _, reader in readers:
        run(one_by_one, reader)
    ends = [log.log_end_offset for log in topic.state().logs]
    cursors = [(kind, reader.cursor() if kind.partition == 0 else reader.cursors()) for kind, reader in readers]
    changing.append("n")
    changing.append("a", "A")
    changing.compact()
    for kind, reader in readers:
        has_them = topic.state().settings.side_by_side and not kind.compacted
        if not kind.follow:
            assert not reader.has_message_available()
        elif has_them:
            assert [r.value is None for r in run(one_by_one, reader)][:3] == [False, False, True]
        else:
            for read in (
                reader.read_next,
                reader.poll().__next__,
                reader.batches().__next__,
                reader.__iter__().__next__,
            ):
                with pytest.raises(LogTruncatedError, match="removed deletes"):
                    read()
            with pytest.raises(LogTruncatedError, match="removed deletes"):
                reader.has_message_available()
    for kind, start in cursors:
        has_them = topic.state().settings.side_by_side and not kind.compacted
        if has_them:
            new = [r for r in Kind(kind.partition, False, False).wanted(topic) if r.offset >= ends[r.partition]]
            assert list(topic.reader(kind.partition, start)) == new
        else:
            with pytest.raises(LogTruncatedError, match="removed deletes"):
                topic.reader(kind.partition, start, compacted=kind.compacted)
        if kind.partition == 0:  # a mere offset is not checked
            topic.reader(0, start.offset, compacted=kind.compacted)
    for kind, start in first:  # who has taken nothing yet misses nothing
        assert list(topic.reader(kind.partition, start, compacted=kind.compacted)) == kind.wanted(topic)


def test_what_was_said_to_be_available_is_not_taken_away_by_a_round(changing):
    """C36, C7: the reader goes on in the version that it looked at, and does not wait."""
    topic = changing.topic
    readers = [(kind, kind.open(topic)) for kind in KINDS]
    assert all(run(one_by_one, reader) for _, reader in readers)
    changing.append("z")
    changing.append("y")
    assert all(reader.has_message_available() == kind.follow for kind, reader in readers)
    changing.append("Z", "Y")
    changing.compact()  # of all that was available nothing is left
    assert {reader.read_next().key for kind, reader in readers if kind.follow} == {b"z"}
    assert {reader.read_next() for kind, reader in readers if not kind.follow} == {None}


def test_one_that_is_sent_elsewhere_while_it_reads_goes_on_there(place, kind):
    """C37: at the next record, back and forth."""
    topic = place.topic
    every = kind.wanted(topic)
    reader = kind.open(topic)
    got: list[Record] = []
    to = {2: every[4].timestamp, 5: every[0].timestamp, 6: every[1].timestamp}
    for record in reader:
        got.append(record)
        if len(got) in to:
            reader.seek(at_ms=to[len(got)])
        if not reader.has_message_available():
            break
    assert got == [
        *every[:2],
        *kind.wanted(topic, every[4].timestamp)[:3],
        every[0],
        *kind.wanted(topic, every[1].timestamp),
    ]


def test_one_of_a_log_goes_to_offsets_while_it_reads(place):
    """C2, C37: also to one whose record is gone."""
    reader = place.topic.reader(0)
    every = list(reader)
    offsets = [record.offset for record in every]
    reader.seek(0)
    got = []
    for record in reader:
        got.append(record.offset)
        if len(got) == 4:
            reader.seek(offsets[0] + 1)
    assert got == offsets[:4] + offsets[1:]
    tables = reader.batches()
    for start in (offsets[-1], offsets[3], offsets[2]):
        reader.seek(start)
        assert next(to_records(next(tables))).offset == start


def test_batches_are_sent_elsewhere_too(place, kind):
    """C37."""
    every = kind.wanted(place.topic)
    reader = kind.open(place.topic)
    got: list[Record] = []
    for table in reader.batches():
        if not got:
            reader.seek(at_ms=0)
        got += to_records(table)
        if not reader.has_message_available():
            break
    assert len(got) > len(every)
    assert got == got[: len(got) - len(every)] + every


def test_a_position_is_behind_the_last_record_that_was_taken(place):
    """C2: another reader opened there continues without a gap or a repeat."""
    every = list(place.topic.reader(0))
    for taken in range(len(every)):
        reader = place.topic.reader(0)
        assert [*islice(reader, taken), *place.topic.reader(0, reader.position)] == every
