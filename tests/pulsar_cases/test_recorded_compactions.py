"""What readers of a real Pulsar got before and after its compactor, replayed (C10, C16, C17, C33 to C37).

A batch is one append, a message that was sent alone is one; a compaction is a round. Both readers,
the last ids they get and where a reader may start must be Pulsar's, but for
`DIFFERENCES`. Each case runs on the memory store with the oracle, and on Iceberg with the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lithify.model.cursor import Start
from lithify.model.names import TopicName
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.log import LogState
from lithify.model.topic.state import NewTopic
from lithify.ports.engine import RewriteEngine
from lithify.ports.store import Warehouse
from lithify.reports.rounds.round import RoundReport
from lithify.rules.reading.pieces import Reading
from lithify.service.read.fetch import LogReader, open_log
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_store import MemoryWarehouse
from lithify.testing.oracle_engine import OracleEngine
from pulsar_cases.recorded_case import (
    CASES,
    DIFFERENCES,
    RECORDED,
    RecordedCase,
    expected,
    id_of,
    last_record,
    start_of,
)
from support.engines.kernel import KernelEngine
from support.store.builders import an_iceberg_place

TOPIC = TopicName("default", "recorded")


class Replay:
    """A topic that goes through the steps of a case."""

    def __init__(self, case: RecordedCase, warehouse: Warehouse, clock: FakeClock, engine: RewriteEngine) -> None:
        self._case = case
        self._warehouse = warehouse
        self._clock = clock
        self._engine = engine
        self._steps = 0
        settings = settings_of(case.config, like="pulsar")
        warehouse.store.create_topic(NewTopic(TOPIC, "recorded", settings, 1, clock.now_ms()))

    @property
    def log(self) -> LogState:
        return self._warehouse.store.load(TOPIC).log(0)

    def play(self, until: int) -> None:
        """The steps up to the one with this number."""
        for step in self._case.data["steps"][self._steps : until]:
            if step["do"] == "compact":
                assert self.round().failed == ()
            else:
                self._send(step)
        self._steps = until

    def round(self) -> RoundReport:
        return compact(self._warehouse, self._engine, TOPIC, RunRequest())

    def reader(self, start: Start = "earliest", *, compacted: bool) -> LogReader:
        state = self._warehouse.store.load(TOPIC)
        return open_log(self._warehouse, state, 0, start, Reading(compacted=compacted))

    def _send(self, step: Mapping[str, Any]) -> None:
        numbers = step["messages"]
        sent, records = self._case.data["sent"], self._case.records
        self._clock.set(max(sent[number]["publish_time"] for number in numbers))
        for batch in [numbers] if step["do"] == "batch" else [[number] for number in numbers]:
            append(self._warehouse, TOPIC, [records[number] for number in batch], keep_offsets=True)


def on_memory(case: RecordedCase, _folder: Path) -> Replay:
    clock = FakeClock(1000)
    memory = MemoryWarehouse(clock.new_id, clock.now_ms)
    return Replay(case, memory.with_clock(clock), clock, OracleEngine(memory.files))


def on_iceberg(case: RecordedCase, folder: Path) -> Replay:
    clock = FakeClock(1000)
    place = an_iceberg_place(folder, clock)
    return Replay(case, Warehouse(place.store, place.files, clock), clock, KernelEngine(ranges=2))


Replays = Callable[[RecordedCase, Path], Replay]


@pytest.mark.parametrize("replay", [on_memory, on_iceberg])
@pytest.mark.parametrize("name", RECORDED)
def test_readers_get_what_pulsar_gave_them(name: str, replay: Replays, tmp_path: Path) -> None:
    """C1, C10, C16, C17, C33: to the byte; C36: the last ids, none if nothing is left."""
    case = RECORDED[name]
    topic = replay(case, tmp_path)
    for steps, seen in case.checkpoints():
        topic.play(steps)
        compacted, plain = topic.reader(compacted=True), topic.reader(compacted=False)
        last, left = seen["last_message_id"], expected(case, steps, seen)
        if (name, steps) not in DIFFERENCES:
            assert compacted.last_message_id() == case.position(last["compacted"])
        assert compacted.last_message_id() == last_record(left)
        assert plain.last_message_id() == case.position(last["plain"])
        assert compacted.has_message_available() == bool(left)
        assert list(compacted) == left
        assert list(plain) == case.reads(seen["plain_read"])
        assert not compacted.has_message_available()
        assert not plain.has_message_available()


@pytest.mark.parametrize("replay", [on_memory, on_iceberg])
@pytest.mark.parametrize("name", [name for name, case in RECORDED.items() if "starts" in case.data])
def test_readers_start_where_pulsars_do(name: str, replay: Replays, tmp_path: Path) -> None:
    """C2, C37: from any id, with it or behind it; also from one that is compacted away."""
    case = RECORDED[name]
    topic = replay(case, tmp_path)
    topic.play(len(case.data["steps"]))
    for recorded in case.data["starts"]:
        start = start_of(case, recorded)
        reader = topic.reader(start, compacted=True)
        there = bool(recorded["messages"])
        assert reader.has_message_available() == there
        assert [r.offset for r in reader] == [case.offsets[id_of(m)] for m in recorded["messages"]]


@pytest.mark.parametrize("replay", [on_memory, on_iceberg])
def test_nothing_of_an_encrypted_batch_is_lost(replay: Replays, tmp_path: Path) -> None:
    """C3, C4: every key of the case that Pulsar lost one of has its newest value, and no other."""
    case = RECORDED["encrypted_batch_loss"]
    topic = replay(case, tmp_path)
    topic.play(len(case.data["steps"]))
    left = [(r.key, r.value) for r in topic.reader(compacted=True)]
    assert left == [(b"k1", b"b"), (b"k0", b"c"), (b"k2", b"d"), (b"k4", b"f")]


@pytest.mark.parametrize("replay", [on_memory, on_iceberg])
def test_an_empty_view_is_not_no_view(replay: Replays, tmp_path: Path) -> None:
    """C36, C41: where all keys are deleted, a reader of compacted data has nothing to wait for."""
    case = RECORDED["all_deleted"]
    topic = replay(case, tmp_path)
    topic.play(len(case.data["steps"]) - 1)
    assert topic.log.view is None
    assert topic.reader(compacted=True).has_message_available()
    topic.play(len(case.data["steps"]))
    assert topic.log.view is not None
    assert topic.reader(compacted=True).last_message_id() is None
    assert topic.reader("latest", compacted=True).position == len(case.records)
    assert not topic.round().changed


def test_what_pulsar_keeps_by_event_time_is_beaten() -> None:
    """C10, C11: each record that only Pulsar has has lost to one of its key, by time and then by offset."""
    case = RECORDED["fuzz_event_time_21"]
    for steps, _seen in case.checkpoints():
        beaten = [case.records[offset] for offset in DIFFERENCES[case.name, steps].only_pulsar]
        sent = {n for step in case.data["steps"][:steps] for n in step.get("messages") or ()}
        for loser in beaten:
            rivals = [r for r in case.records if r.key == loser.key and r.offset in sent]
            assert max((r.timestamp, r.offset) for r in rivals) > (loser.timestamp, loser.offset)


def test_no_case_is_left_out() -> None:
    """The seventeen that were recorded, and every compaction of them."""
    assert len(RECORDED) == 17
    compactions = [step for case in CASES.values() for step in case["steps"] if step["do"] == "compact"]
    assert len(compactions) == 23
    assert all(step["status"] == "SUCCESS" for step in compactions)
    seen = {(name, steps) for name, case in RECORDED.items() for steps, _seen in case.checkpoints()}
    assert set(DIFFERENCES) <= seen
    assert sum("starts" in case for case in CASES.values()) == 2


def test_a_case_that_says_otherwise_would_fail() -> None:
    """The comparison is by every field: a value, a timestamp or a header that differs is seen."""
    case = RECORDED["metadata_kept"]
    for field, other in [("payload_b64", "eA=="), ("properties", {"a": "2"}), ("publish_time", 1), ("event_time", 7)]:
        message = {**case.data["compacted_read"][0], field: other}
        assert case.record(message) != case.records[0]
