"""What ingests, `publish` and `hydrate` change in the metrics of their process."""

from __future__ import annotations

import pytest

from lithify.hydration import hydrate
from lithify.metrics.copy_metrics import IngestMetrics, hydrate_metrics, publish_metrics
from lithify.metrics.registry import Registry
from lithify.model.record import Record
from lithify.model.sources.source import IngestRequest
from lithify.reports.ingest import IngestBatch, IngestedEntries, IngestedLog, IngestNote
from lithify.service.ingest.ingest import ingest
from lithify.service.snapshot.consumer_narration import FollowedLog, KafkaNote
from lithify.testing import memory_lake
from support.scrapes import values_of
from support.topics.listed_source import ListedSource
from support.topics.memory_topic import a_warehouse

P = "lithify_"


class Shown:
    """A registry whose clock the test moves, and what it renders."""

    def __init__(self, topics: int = 0) -> None:
        self.now_ms = 1_000_000
        self.registry = Registry("0", lambda: self.now_ms, topics)

    def all(self) -> dict[str, float]:
        return values_of(self.registry.render()[0].decode())

    def __getitem__(self, name: str) -> float:
        return self.all()[P + name]

    def __contains__(self, name: str) -> bool:
        return P + name in self.all()


def records(count: int, key: bytes | None = b"k") -> dict[int, list[Record]]:
    return {0: [Record(key, b"v", 1_000, partition=0, offset=offset) for offset in range(count)]}


def copied(source: ListedSource, metrics: IngestMetrics, *, looks: int = 9) -> None:
    asked = iter(range(looks))
    request = IngestRequest({}, pattern=".*", continuous=True)
    ingest(source.warehouse, source, request, metrics.batch, lambda: next(asked, None) is None, metrics.note)


class Followed(ListedSource):
    """The streams of topics that do not fail stay active."""

    def stream(self, *given):
        stream = super().stream(*given)
        stream.is_active = stream.failure is None
        return stream


def test_an_ingest_is_counted_with_its_lag_and_what_fails():
    shown = Shown(topics=5)
    metrics = IngestMetrics(shown.registry)
    assert shown["ingest_topics"] == shown["ingest_failed_topics"] == 0 and "ingest_lag" not in shown
    source = Followed(a_warehouse(), {"a": records(3), "b": records(2), "bad": records(1, key=None)})
    copied(source, metrics)
    assert (shown["ingest_records_total{topic=a}"], shown["ingest_records_total{topic=b}"]) == (3, 2)
    assert shown["ingest_batches_total{topic=a}"] == 1
    assert (shown["ingest_topics"], shown["ingest_failed_topics"]) == (3, 1)
    assert shown["errors_total{error_code=InvalidRecord}"] == 1
    assert shown["topic_ingest_lag{topic=a}"] == 0
    metrics.end()
    assert "ingest_lag" not in shown and shown["ingest_records_total{topic=a}"] == 3


def test_the_lag_is_that_of_all_topics_and_says_how_old_it_is():
    shown = Shown()
    metrics = IngestMetrics(shown.registry)
    for topic, lag in (("a", 5), ("b", 7)):
        metrics.note(IngestNote("begins", "", topic, topic, (IngestedLog(0, 0, lag, 0),)))
    assert shown["ingest_lag"] == 12
    metrics.batch(IngestBatch("a", "a", 1, (IngestedLog(0, 5, 5, 5),), 10))
    assert shown["ingest_lag"] == 7
    shown.now_ms += 90_000
    assert shown["ingest_lag_age_seconds"] == 90
    metrics.note(IngestNote("waiting", "", "b", "b", (IngestedLog(0, 7, 7, 0),)))
    assert (shown["ingest_lag"], shown["ingest_lag_age_seconds"]) == (0, 0)


def test_a_lag_that_is_not_known_is_missing_instead_of_too_small():
    """Ids of Pulsar in several ledgers have no difference."""
    shown = Shown(topics=2)
    metrics = IngestMetrics(shown.registry)
    metrics.batch(IngestBatch("a", "a", 1, (IngestedLog(0, 5, 9, 5),), 10))
    metrics.batch(IngestBatch("b", "b", 1, (IngestedEntries(0, 5, "1:0", "2:0", 5, None),), 10))
    assert "ingest_lag" not in shown and shown["topic_ingest_lag{topic=a}"] == 4


def test_a_topic_that_continues_after_a_failure_has_not_failed():
    shown = Shown()
    metrics = IngestMetrics(shown.registry)
    metrics.note(IngestNote("failed", "", "a", "a", error_code="Broker"))
    assert shown["ingest_failed_topics"] == 1
    metrics.batch(IngestBatch("a", "a", 1, (IngestedLog(0, 5, 5, 5),), 10))
    assert shown["ingest_failed_topics"] == 0


def test_notes_of_the_whole_command_are_of_no_topic():
    shown = Shown()
    IngestMetrics(shown.registry).note(IngestNote("outage", "no broker answers"))
    assert shown["ingest_topics"] == 0


@pytest.mark.parametrize(("made", "verb"), [(publish_metrics, "publish"), (hydrate_metrics, "hydrate")])
def test_records_and_lag_of_a_run(made, verb):
    shown = Shown()
    metrics = made(shown.registry, "orders")
    assert shown[f"{verb}_records_total"] == 0 and f"{verb}_lag" not in shown
    metrics.records(3)
    metrics.note(KafkaNote("asking", ""))
    assert f"{verb}_lag" not in shown
    metrics.note(KafkaNote("begins", "", "orders", "t", (FollowedLog(0, 1, 4), FollowedLog(1, 5, 5))))
    assert (shown[f"{verb}_records_total"], shown[f"{verb}_lag"]) == (3, 3)
    metrics.end()
    assert f"{verb}_lag" not in shown


def test_hydrate_tells_of_its_records_and_of_its_lag(tmp_path):
    lake = memory_lake()
    topic = lake.create_topic("orders")
    topic.append([Record(f"k{number}".encode(), b"v") for number in range(5)])
    shown = Shown()
    metrics = hydrate_metrics(shown.registry, "orders")
    hydrate(topic, str(tmp_path / "orders.db"), tell=metrics.records, notes=metrics.note)
    assert shown["hydrate_records_total"] == 5
    assert shown["hydrate_lag"] == 5  # as it was when it began: there was nothing more to say
