"""Rounds that rewrite part by part, and release what they replaced in between (C42)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lithify.errors import LithifyError, PolicyError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.engine import RunLimits
from lithify.ports.store import Warehouse
from lithify.rules.compaction import key_pass_shape
from lithify.rules.reading.pieces import Reading
from lithify.service.creation import create_warehouse
from lithify.service.documents import reports_of
from lithify.service.proof.verify import verify
from lithify.service.read.fetch import open_log
from lithify.service.round.compact import RunRequest, compact, plan_compact
from lithify.service.write.append import append
from lithify.store.iceberg import open_store
from lithify.testing.fake_clock import FakeClock
from support.engines.kernel import KernelEngine
from support.engines.phased import PhasedEngine
from support.engines.reading_inspector import ReadingInspector
from support.faults.ports import CrashError, FaultyEngine, Injector, Kind
from support.topics.memory_topic import ORDERS, MemoryTopic

KEYS = 1000
NAME = TopicName("default", "orders")


def records(first: int, count: int, value_bytes: int = 40) -> list[Record]:
    """Half of them replace those of before."""
    return [Record(b"k%03d" % ((first + n) % KEYS), bytes([n]) * value_bytes, 100 + n) for n in range(count)]


def a_topic(mode: str = "in-place", value_bytes: int = 40, **config: object) -> MemoryTopic:
    """Eight segments of 30 records, half of which are dead."""
    given = {"segment_bytes": 50 * value_bytes, "versions_retention_ms": 0, "versions_kept": 1, **config}
    topic = MemoryTopic(compaction_mode=mode, **given)
    for batch in range(8):
        topic.append(records(15 * batch, 30, value_bytes))
    return topic


def in_groups(topic: MemoryTopic, most: int) -> object:
    return compact(topic.warehouse, topic.engine, ORDERS, RunRequest(limits=RunLimits(rewrite_bytes=most)))


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
@pytest.mark.parametrize("most", [1, 900, 3_000, 10**9])
def test_a_log_that_is_rewritten_in_parts_has_what_one_round_leaves(mode: str, most: int) -> None:
    whole, topic = a_topic(mode), a_topic(mode)
    whole.compact()
    report = in_groups(topic, most)
    assert topic.records(compacted=True) == whole.records(compacted=True)
    rounds = list(reports_of(topic.store, topic.state))
    assert (len(rounds) == 1) == (most == 10**9)
    assert all(log.bytes_written <= max(most, 2_000) + 500 for one in rounds for log in one.logs) or most == 10**9
    assert report.version == rounds[0].version <= topic.state.version
    assert report.logs[0].segments_waiting == 0
    assert not topic.compact().changed
    assert verify(topic.warehouse, ReadingInspector(topic.files), ORDERS).findings == ()


def test_the_report_is_of_all_rounds() -> None:
    topic = a_topic()
    report = in_groups(topic, 900)
    first, *_, last = reversed(list(reports_of(topic.store, topic.state)))
    (log,) = report.logs
    assert (log.records_in, log.records_out) == (first.logs[0].records_in, last.logs[0].records_out)
    assert (log.bytes_in, log.bytes_out) == (first.logs[0].bytes_in, last.logs[0].bytes_out)
    assert (log.first_dirty_offset, log.first_dirty_offset_after) == (0, topic.log().first_dirty_offset)
    assert log.losers.total == log.records_in - log.records_out
    assert log.segments_rewritten == sum(r.logs[0].segments_rewritten for r in reports_of(topic.store, topic.state))


class Counting:
    """Files that note the most that was stored at once, and of which only so many bytes are free."""

    def __init__(self, topic: MemoryTopic, room: int) -> None:
        self._files, self._room, self.most = topic.files, room, 0

    def __getattr__(self, name: str) -> object:
        self.most = max(self.most, self.stored)
        return getattr(self._files, name)

    @property
    def stored(self) -> int:
        return sum(len(r.key or b"") + len(r.value or b"") for records in self._files.data.values() for r in records)

    def free_bytes(self, _: TopicState) -> int:
        return self._room - self.stored


def test_a_log_that_does_not_fit_twice_is_compacted() -> None:
    """C42: one round is refused, and rounds in parts never store much more than there was."""
    topic = a_topic(value_bytes=4_000)
    counting = Counting(topic, room := 240 * 4_004 + 350_000)
    topic.warehouse = replace(topic.warehouse, files=counting)
    (refused,) = compact(topic.warehouse, topic.engine, ORDERS, RunRequest()).logs
    assert refused.error_code == "InsufficientSpace"
    assert "or part by part with" in str(refused.error)
    limits = RunLimits(rewrite_bytes=90_000)
    (log,) = compact(topic.warehouse, topic.engine, ORDERS, RunRequest(limits=limits)).logs
    assert log.error is None and not log.segments_waiting
    assert 240 * 4_004 < counting.most <= room


def test_who_was_interrupted_goes_on(tmp_path: Path) -> None:
    """C6, C31: a crash at any call of the engine, and the same request again."""
    whole = a_topic()
    whole.compact()
    for at in range(1, 40):
        topic = a_topic()
        injector = Injector(at, Kind.CRASHES_AFTER)
        real, topic.engine = topic.engine, FaultyEngine(topic.engine, injector)
        with suppress(CrashError, LithifyError):
            in_groups(topic, 900)
        assert injector.struck or at > 6
        topic.engine = real
        in_groups(topic, 900)
        assert topic.records() == whole.records()
        assert not topic.compact().changed
        if not injector.struck:
            return
    raise AssertionError("it never got through")


def test_what_producers_append_meanwhile_does_not_keep_it_busy() -> None:
    topic = a_topic()

    def more() -> None:
        topic.append(records(7, 30))

    busy = PhasedEngine(topic.engine, {"commit": more})
    report = compact(topic.warehouse, busy, ORDERS, RunRequest(limits=RunLimits(rewrite_bytes=1)))
    assert report.changed
    assert len(list(reports_of(topic.store, topic.state))) < 20


def test_the_plan_needs_less_room() -> None:
    topic = a_topic()
    whole = plan_compact(topic.warehouse, 2, ORDERS, RunRequest())
    in_parts = plan_compact(topic.warehouse, 2, ORDERS, RunRequest(limits=RunLimits(rewrite_bytes=1)))
    assert in_parts.extra_bytes_needed < whole.extra_bytes_needed


def test_the_plan_counts_what_each_log_reads_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """C30: logs that are taken one after the other have all slots each, so that each is divided."""
    monkeypatch.setattr(key_pass_shape, "LEAST_RECORDS", 1)
    topic = MemoryTopic(partitions=2)
    for batch in range(8):
        topic.append([r._replace(partition=partition) for partition in (0, 1) for r in records(15 * batch, 30)])

    def read(most: int | None, *partitions: int) -> list[int]:
        request = RunRequest(partitions, limits=RunLimits(rewrite_bytes=most))
        return [log.bytes_read_at_most for log in plan_compact(topic.warehouse, 2, ORDERS, request).logs]

    assert read(1, 0, 1) == [*read(1, 0), *read(1, 1)] > read(None, 0, 1)


def test_topics_without_masks_are_refused() -> None:
    with pytest.raises(PolicyError, match=r"segment\.max\.dead\.ratio=0 allows no masks"):
        in_groups(a_topic(segment_max_dead_ratio=0), 900)


def test_a_warehouse_without_masks_is_refused(tmp_path: Path) -> None:
    warehouse = on_disk(tmp_path, lambda _: None)
    with pytest.raises(PolicyError, match="its warehouse has no masks"):
        compact(warehouse, KernelEngine(), NAME, RunRequest(limits=RunLimits(rewrite_bytes=1)))


def on_disk(folder: Path, create: Callable[[object], None] = create_warehouse) -> Warehouse:
    clock = FakeClock(1_000)
    warehouse = Warehouse(*open_store(str(folder), None, clock.new_id), clock)
    create(warehouse.store)
    settings = settings_of({"segment.bytes": 4_000, "versions.retention.ms": 0, "versions.kept": 1})
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings, 1, 1_000))
    for batch in range(6):
        append(warehouse, NAME, records(15 * batch, 30))
    return warehouse


@pytest.mark.parametrize("most", [1, 5_000])
def test_files_go_as_it_goes_on(tmp_path: Path, most: int) -> None:
    """C6, C42: on Iceberg, with the kernels of the Spark engine."""
    warehouse = on_disk(tmp_path / "parts")
    compact(warehouse, KernelEngine(), NAME, RunRequest(limits=RunLimits(rewrite_bytes=most)))
    whole = on_disk(tmp_path / "whole")
    compact(whole, KernelEngine(), NAME, RunRequest())
    left = [list(open_log(w, w.store.load(NAME), 0, "earliest", Reading())) for w in (warehouse, whole)]
    assert left[0] == left[1]
    state = warehouse.store.load(NAME)
    assert len(list((tmp_path / "parts").rglob("*.parquet"))) <= 2 * len(warehouse.store.segments(state))
