"""Requests about topics (C49, C50)."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Uuid

from lithify.errors import BrokerError, SourceWentBackError
from lithify.kafka.consumer.live_topic import KafkaTopic
from lithify.kafka_client.client import Cluster, as_kafka_writes
from lithify.model.sources.copied_topic import CopiedTopic

ID = Uuid(0x0134A2B934D30C60, 0x6AF834FDC477E44E)
WRITTEN = "ATSiuTTTDGBq-DT9xHfkTg"
"""As Kafka's programs write it, `toString()` of its `Uuid`: not as `str()` does, with a `+`."""


class FakeAdmin:
    """Answers with the failures first."""

    def __init__(self, *failures: int, given: Uuid = ID) -> None:
        self.failures, self.given = list(failures), given

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[Any]]:
        answer: Future[Any] = Future()
        if self.failures:
            answer.set_exception(KafkaException(KafkaError(self.failures.pop(0))))
        else:
            answer.set_result(SimpleNamespace(topic_id=self.given))
        return {"orders": answer}


def a_cluster(*failures: int, given: Uuid = ID) -> Cluster:
    cluster = Cluster({"bootstrap.servers": "127.0.0.1:1"})
    cluster._asked = FakeAdmin(*failures, given=given)
    return cluster


def test_a_topic_is_looked_up_again_where_the_client_has_just_dropped_the_connection():
    """C50: Kafka's client does that itself, when the address of a broker is no longer needed."""
    assert a_cluster().topic_id("orders") == WRITTEN
    assert a_cluster(KafkaError._DESTROY_BROKER).topic_id("orders") == WRITTEN


@pytest.mark.parametrize("failures", [(KafkaError._DESTROY_BROKER,) * 2, (KafkaError._TRANSPORT,)])
def test_a_cluster_that_does_not_answer_is_an_error(failures):
    with pytest.raises(BrokerError, match=r"Kafka at 127\.0\.0\.1:1 fails"):
        a_cluster(*failures).topic_id("orders")


@pytest.mark.parametrize(("most", "written"), [(0, ""), (-1, "__________8AAAAAAAAAAA"), (3, "AAAAAAAAAAMAAAAAAAAAAA")])
def test_ids_of_topics_are_written_as_kafka_does(most, written):
    assert as_kafka_writes(most, 0) == written


@pytest.mark.parametrize("known", [WRITTEN, str(ID), ""])
def test_a_topic_is_the_same_however_its_id_was_stored(known):
    """A copy has the id from Spark, a position of an earlier version from the client for Python."""
    topic = KafkaTopic.__new__(KafkaTopic)
    topic._cluster, topic.topic = a_cluster(), "orders"
    topic.check_same(known)
    with pytest.raises(SourceWentBackError):
        topic.check_same(str(Uuid(3, 4)))


NONE = Uuid(0, 0)


@pytest.mark.parametrize(("known", "given"), [(str(NONE), ID), (str(NONE), NONE), ("", NONE), (WRITTEN, NONE)])
def test_a_topic_without_an_id_is_no_other_one(known, given):
    """Brokers below Kafka 2.8 give none, and earlier versions stored that as an id: an upgrade recreates nothing."""
    topic = KafkaTopic.__new__(KafkaTopic)
    topic._cluster, topic.topic = a_cluster(given=given), "orders"
    topic.check_same(known)
    assert CopiedTopic.from_json(CopiedTopic("orders", known).to_json()).topic_id == (known if known == WRITTEN else "")


@pytest.mark.parametrize("more", [{}, {"max.request.size": "10000000"}])
def test_fetches_may_be_smaller_than_what_a_producer_sends(more):
    """As with Java's client, for which `fetch.max.bytes` is a limit of consumers alone."""
    cluster = Cluster({"bootstrap.servers": "127.0.0.1:1", "fetch.max.bytes": "500000", **more})
    with cluster.asking():
        cluster.producer()
