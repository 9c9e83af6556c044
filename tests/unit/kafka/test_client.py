"""Requests about topics (C49, C50)."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Uuid

from lithify.errors import BrokerError
from lithify.kafka.client import Cluster

ID = Uuid(3, 4)


class FakeAdmin:
    """Answers with the failures first."""

    def __init__(self, *failures: int) -> None:
        self.failures = list(failures)

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[Any]]:
        answer: Future[Any] = Future()
        if self.failures:
            answer.set_exception(KafkaException(KafkaError(self.failures.pop(0))))
        else:
            answer.set_result(SimpleNamespace(topic_id=ID))
        return {"orders": answer}


def a_cluster(*failures: int) -> Cluster:
    cluster = Cluster({"bootstrap.servers": "127.0.0.1:1"})
    cluster._asked = FakeAdmin(*failures)
    return cluster


def test_a_topic_is_looked_up_again_where_the_client_has_just_dropped_the_connection():
    """C50: Kafka's client does that itself, when the address of a broker is no longer needed."""
    assert a_cluster().topic_id("orders") == str(ID)
    assert a_cluster(KafkaError._DESTROY_BROKER).topic_id("orders") == str(ID)


@pytest.mark.parametrize("failures", [(KafkaError._DESTROY_BROKER,) * 2, (KafkaError._TRANSPORT,)])
def test_a_cluster_that_does_not_answer_is_an_error(failures):
    with pytest.raises(BrokerError, match=r"Kafka at 127\.0\.0\.1:1 fails"):
        a_cluster(*failures).topic_id("orders")
