"""What an ingest that may have missed deletes says should be done: it depends on how far its first copy is (C71)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from lithify.errors import LithifyError
from lithify.model.names import TopicName
from lithify.model.sources.source import IngestRequest
from lithify.ports.source import OnBatch
from lithify.service.ingest.ingest import ingest
from lithify.service.ingest.source_watch import SourceWatch
from support.topics.cleaned_source import CleanedBatch, CleanedLog, CleanedSource
from support.topics.listed_source import ListedStream
from support.topics.memory_topic import a_warehouse

RETENTION_MS = 100_000
ALREADY = 4
"""Records that the source has when the ingest begins."""


def grow(log: CleanedLog, end: int) -> None:
    while log.end < end:
        log.append(b"%d" % log.end, b"v")


@dataclass(slots=True)
class LivingSource(CleanedSource):
    """One stream reads a batch up to each of these offsets as the log grows, and the last after a long outage."""

    batch_ends: tuple[int, ...] = ()

    def stream(self, topic: str, starts: Mapping[int, int], run_id: str, on_batch: OnBatch) -> ListedStream:
        stream, at = ListedStream(), starts[0]
        try:
            for end in self.batch_ends:
                if end == self.batch_ends[-1]:
                    self.warehouse.clock.advance(2 * RETENTION_MS)  # type: ignore[attr-defined]
                grow(self.log, end)
                on_batch(CleanedBatch(self, at, end))
                at = end
        except LithifyError as error:
            stream.failure = error
        return stream


@pytest.mark.parametrize(
    ("batch_ends", "slow"),
    [
        ((ALREADY,), True),
        ((2, ALREADY), True),
        ((ALREADY, 6), False),
        ((2, ALREADY, 6, 8), False),
        ((2, 5, 6), False),
    ],
)
def test_a_copy_that_had_caught_up_is_not_called_too_slow(batch_ends: tuple[int, ...], slow: bool) -> None:
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS)
    grow(log, ALREADY)
    source = LivingSource(warehouse, log, batch_ends=batch_ends)
    (report,) = ingest(warehouse, source, IngestRequest({}, ("orders",)), lambda _batch: None, lambda: False)
    assert report.error is not None and "deletes from offset" in report.error
    assert ("the copy takes longer than that" in report.error) is slow
    assert ("resync" in report.error) is not slow
    assert report.batches == len(batch_ends) - 1


@pytest.mark.parametrize(("policy", "may"), [("compact", True), (None, True), ("compact,delete", False)])
def test_a_resync_that_would_be_refused_is_not_advised(policy: str | None, may: bool) -> None:
    warehouse, log = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS, policy=policy)
    grow(log, ALREADY)
    source = LivingSource(warehouse, log, batch_ends=(ALREADY, 6))
    (report,) = ingest(warehouse, source, IngestRequest({}, ("orders",)), lambda _batch: None, lambda: False)
    assert report.error is not None and "deletes from offset" in report.error
    assert ("with resyncs=True" in report.error) is may
    assert "accepts_loss=True" in report.error


def test_a_source_that_does_not_answer_is_not_asked_for_its_ends() -> None:
    """An answer that it waits for would keep the ingest from telling that the source is away."""
    warehouse, log, asked = a_warehouse(now_ms=1_000_000), CleanedLog(RETENTION_MS), []
    source = CleanedSource(warehouse, log)
    grow(log, ALREADY)
    (report,) = ingest(warehouse, source, IngestRequest({}, ("orders",)), lambda _batch: None, lambda: False)
    assert report.error is None
    state = warehouse.store.load(TopicName("default", "orders"))
    watch = SourceWatch(warehouse, source, source.topic("orders"), state, accepts=False, resyncs=False)
    watch.begin(warehouse.clock.now_ms(), {0: ALREADY}, lambda _note: None)
    source.meanwhile = lambda: asked.append(source.is_silent)
    for source.is_silent in (True, False):
        warehouse.clock.advance(RETENTION_MS // 2)  # type: ignore[attr-defined]
        watch.look()
    assert asked and not any(asked)
