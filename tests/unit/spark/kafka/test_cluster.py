"""What a cluster tells of its topics, by answers of Java's client that no broker of today gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lithify.spark.kafka.kafka_cluster import KafkaCluster


class FakeId(SimpleNamespace):
    """As Kafka's `Uuid` in Java."""

    def getMostSignificantBits(self) -> int:  # noqa: N802
        return int(self.most)

    def getLeastSignificantBits(self) -> int:  # noqa: N802
        return int(self.least)


def a_cluster_with_a_topic_of(topic_id: FakeId) -> KafkaCluster:
    described = SimpleNamespace(topicId=lambda: topic_id, partitions=lambda: [SimpleNamespace(partition=lambda: 0)])
    answer: Any = SimpleNamespace(get=lambda *_timeout: {"orders": described})
    units = SimpleNamespace(TimeUnit=SimpleNamespace(MILLISECONDS=0))
    util = SimpleNamespace(ArrayList=lambda items=(): list(items), concurrent=units)
    session: Any = SimpleNamespace(_jvm=SimpleNamespace(java=SimpleNamespace(util=util)))
    cluster = KafkaCluster(session, {})
    cluster._admin = SimpleNamespace(
        describeTopics=lambda _names: SimpleNamespace(allTopicNames=lambda: answer),
        describeCluster=lambda: SimpleNamespace(clusterId=lambda: SimpleNamespace(get=lambda *_timeout: "of ours")),
    )
    return cluster


@pytest.mark.parametrize(
    ("most", "least", "written"), [(0, 0, ""), (0x0134A2B934D30C60, 0x6AF834FDC477E44E, "ATSiuTTTDGBq-DT9xHfkTg")]
)
def test_the_id_of_a_topic_is_empty_where_the_brokers_give_none(most, least, written):
    """Java's client has 0 for that: brokers below Kafka 2.8. Stored, it would be another id than after an upgrade."""
    topic = a_cluster_with_a_topic_of(FakeId(most=most, least=least)).topic("orders")
    assert (topic.topic_id, topic.partitions, topic.cluster_id) == (written, (0,), "of ours")
