"""Copies that are stopped right before they start a job of Spark, which cancels only those that run by then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from lithify.model.message import MessageId
from lithify.ports.source import CopyKeys, StopAsked
from lithify.pulsar.client import ClientConfig
from lithify.spark import batch_thread
from lithify.spark.kafka.directories import log_tasks
from lithify.spark.kafka.resync_batch import ResyncBatch
from lithify.spark.pulsar.entry_ranges import Limits
from lithify.spark.pulsar.pulsar_stream import EntryStream, Look, StreamPlan

LONG_S = 20.0


@dataclass(slots=True)
class Jobs:
    """A Spark context whose only job starts once it was asked to cancel, which is too early for it."""

    asked: Event = field(default_factory=Event)
    running: Event = field(default_factory=Event)
    cancelled: Event = field(default_factory=Event)

    @property
    def session(self) -> Any:
        return SimpleNamespace(sparkContext=self)

    def cancelJobGroup(self, _job: str) -> None:  # noqa: N802 - Spark's name
        if self.running.is_set():
            self.cancelled.set()
        self.asked.set()

    def addJobTag(self, _tag: str) -> None:  # noqa: N802 - Spark's name
        """Its jobs are all of the test."""

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        self.cancelJobGroup(tag)

    def run(self) -> None:
        assert self.asked.wait(LONG_S)
        self.running.set()
        assert self.cancelled.wait(LONG_S), "nobody cancels it"
        raise RuntimeError("the job was cancelled")


def once_begun() -> Callable[[], bool]:
    """Whether to end: not when it is asked for the first time."""
    before = iter([False])
    return lambda: next(before, True)


def test_a_stream_of_pulsar_ends(monkeypatch):
    monkeypatch.setattr(batch_thread, "InheritableThread", Thread)  # which wants a real Spark
    jobs = Jobs()
    plan = StreamPlan(
        config=ClientConfig("pulsar://127.0.0.1:1"),
        starts={},
        job="copy",
        continuous=True,
        interval_ms=1,
        limits=Limits(None, False),
        look=lambda: Look(0, {0: ("t", MessageId(1, 1))}),
        acknowledge=lambda *_: None,
    )
    copying = EntryStream(jobs.session, plan, lambda _batch: jobs.run())
    copying.start()
    copying.stop()
    assert not copying.is_active
    assert copying.end() is None


def test_a_resync_ends(monkeypatch):
    jobs = Jobs()
    monkeypatch.setattr(ResyncBatch, "_copy", lambda *_: jobs.run())
    batch = ResyncBatch(jobs.session, "orders", {}, {}, {}, CopyKeys({}, {}), once_begun())
    with pytest.raises(StopAsked):
        batch.copy(SimpleNamespace(run_id="1"))
    assert jobs.cancelled.is_set()


def test_a_scan_of_segments_ends(monkeypatch):
    jobs = Jobs()
    monkeypatch.setattr(log_tasks, "_frame", lambda *_: jobs.run())
    large = log_tasks.SegmentFile(Path("0.log"), 2 * log_tasks.LEAST_BYTES)
    with pytest.raises(StopAsked):
        log_tasks.scans_of(jobs.session, [large], once_begun())
    assert jobs.cancelled.is_set()


@pytest.mark.parametrize("size_bytes", [0, 2 * log_tasks.LEAST_BYTES])
def test_a_scan_of_segments_does_not_begin(size_bytes):
    with pytest.raises(StopAsked):
        log_tasks.scans_of(None, [log_tasks.SegmentFile(Path("0.log"), size_bytes)], lambda: True)
