"""A stream of a Pulsar topic, and what its looks tell (C52)."""

from __future__ import annotations

from threading import Thread
from types import SimpleNamespace

from lithify.errors import SourceWentBackError
from lithify.model.message import MessageId
from lithify.pulsar.client import ClientConfig
from lithify.spark import batch_thread
from lithify.spark.pulsar.entry_ranges import Limits
from lithify.spark.pulsar.pulsar_stream import EntryBatch, EntryStream, Look, StreamPlan


def test_a_topic_that_is_set_back_while_nothing_comes_ends_its_stream(monkeypatch):
    """C52: it has nothing behind the copy, so no batch would find it out."""
    monkeypatch.setattr(batch_thread, "InheritableThread", Thread)  # which wants a real Spark
    lasts = iter([MessageId(7, 41), MessageId(7, 41), MessageId(7, 40, 3)])
    asked = []
    plan = StreamPlan(
        config=ClientConfig("pulsar://127.0.0.1:1"),
        starts={0: MessageId(7, 40)},
        job="copy",
        continuous=True,
        interval_ms=1,
        limits=Limits(None, False),
        look=lambda: Look(0, {0: ("t", next(lasts))}),
        acknowledge=lambda *given: asked.append(given),
    )

    def take(batch: EntryBatch) -> None:
        batch.reached = {0: batch.ranges[0].end}

    copying = EntryStream(SimpleNamespace(), plan, take)
    copying._run()
    error = copying.end()
    assert isinstance(error, SourceWentBackError)
    assert "t ends at 7:40:3 now, before 7:41" in error.message
    assert len(asked) == 2
