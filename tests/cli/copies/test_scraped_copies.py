"""What ingests, `kafka publish` and `kafka hydrate` do is in their metrics while they do it, and after none of them."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from lithify.api.lake import Lake
from lithify.hydration.hydrating import HydrateReport
from lithify.kafka.publisher.reports import PublishReport
from lithify.model.record import Record
from lithify.model.sources.source import IngestRequest
from lithify.service.ingest.ingest import ingest
from lithify.service.snapshot.consumer_narration import FollowedLog, KafkaNote
from support.scrapes import Values, scraped
from support.servers.tcp_proxy import free_port
from support.topics.listed_source import ListedSource

P = "lithify_"
ORDERS = {0: [Record(b"k", b"v", 1_000, partition=0, offset=offset) for offset in range(5)]}
KAFKA = ("--bootstrap-servers", "127.0.0.1:1")


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.mark.parametrize(
    ("arguments", "method"),
    [
        (("kafka", "ingest", *KAFKA, "--topic", "orders"), "ingest"),
        (
            ("pulsar", "ingest", "persistent://public/default/orders", "--service-url", "pulsar://127.0.0.1:1"),
            "ingest_pulsar",
        ),
    ],
)
def test_an_ingest_is_scraped(lithify, monkeypatch, port, arguments, method):
    shown: list[Values] = []

    def copied(lake: Lake, *_given: Any, tell: Any, notes: Any, stops: Any, **_how: Any) -> Any:
        source = ListedSource(lake.warehouse, {"orders": ORDERS})
        reports = ingest(lake.warehouse, source, IngestRequest({}, ("orders",)), tell, stops, notes)
        shown.append(scraped(port))
        return reports

    monkeypatch.setattr(Lake, method, copied)
    lithify(*arguments, "--metrics-port", port, "--metrics-per-topic", 3)
    (during,) = shown
    assert during[f"{P}ingest_records_total{{topic=orders}}"] == 5
    assert (during[f"{P}ingest_lag"], during[f"{P}topic_ingest_lag{{topic=orders}}"]) == (0, 0)
    with pytest.raises(OSError):
        scraped(port)


def followed(topic: str, tell: Any, notes: Any) -> None:
    """As a run tells of it."""
    logs = (FollowedLog(0, 5, 9),)
    notes(KafkaNote("begins", "", topic, "to", logs))
    tell(5)


def test_publish_is_scraped(lithify, monkeypatch, port):
    shown: list[Values] = []

    def published(topic: Any, _conf: Any, to: str, *, tell: Any, notes: Any, **_how: Any) -> PublishReport:
        followed(topic.name, tell, notes)
        shown.append(scraped(port))
        return PublishReport(topic.name, 1, to, False, {}, False, (), 1)

    monkeypatch.setattr("lithify.kafka.publish", published)
    lithify("topic", "create", "orders")
    lithify("kafka", "publish", "orders", *KAFKA, "--to", "latest", "--metrics-port", port)
    assert (shown[0][f"{P}publish_records_total"], shown[0][f"{P}publish_lag"]) == (5, 4)


def test_kafka_hydrate_is_scraped(lithify, monkeypatch, port):
    shown: list[Values] = []

    def hydrated(topic: Any, _conf: Any, to: str, *, tell: Any, notes: Any, **_how: Any) -> HydrateReport:
        followed(topic.name, tell, notes)
        shown.append(scraped(port))
        return HydrateReport(topic.name, topic.name, to, False, True, 5, (), 1)

    monkeypatch.setattr("lithify.kafka.hydrate", hydrated)
    lithify("topic", "create", "orders")
    lithify("kafka", "hydrate", "orders", *KAFKA, "--to", "orders.db", "--metrics-port", port)
    assert (shown[0][f"{P}hydrate_records_total"], shown[0][f"{P}hydrate_lag"]) == (5, 4)


@pytest.mark.parametrize(
    "arguments",
    [
        ("cleaner", "run", "--once"),
        ("replica", "run", "--once"),
        ("hydrate", "orders", "--to", "orders.db"),
        ("kafka", "ingest", *KAFKA, "--topic", "orders"),
        ("kafka", "publish", "orders", *KAFKA, "--to", "latest"),
        ("kafka", "hydrate", "orders", *KAFKA, "--to", "orders.db"),
        ("pulsar", "ingest", "persistent://a/b/c", "--service-url", "pulsar://127.0.0.1:1"),
    ],
)
def test_none_begins_where_its_metrics_cannot_be_served(lithify, port, arguments):
    with socket.create_server(("127.0.0.1", port)):
        said = lithify.error(*arguments, "--metrics-port", port, code=1)
    assert said.startswith(f"metrics cannot be served at 127.0.0.1:{port}: Address already in use (")
    assert not lithify.warehouse.exists()
