"""Asks a cluster for its topics before anything begins, so that what is wrong is said within seconds.

settings ─► connection, TLS, login ─► topics, rights to describe ─► a fetch of each: rights to read
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lithify.errors import BrokerError, ConnectorError, InvalidSettingError, LithifyError, UnknownSourceError
from lithify.errors.redaction import one_line
from lithify.kafka_client.client import SLICE_S, Cluster, client
from lithify.kafka_client.names import without_unknown
from lithify.model.names import nearest

if TYPE_CHECKING:
    from confluent_kafka import Consumer

ASKED_S, FETCHED_S = 5.0, 3.0
"""Seconds for the cluster's first answer, and then for the first fetches."""
_SHOWN_CHARACTERS = 200


def look_first(
    conf: Mapping[str, Any], topics: Sequence[str], notes: Callable[[str, str], None], stops: Callable[[], bool]
) -> None:
    """Asks for the topics, or for nothing but an answer without any; `notes` gets the kind and text of what it says.

    It cannot without Kafka's client for Python, or with settings that only Java's has. Raises `BrokerError` where
    the cluster does not answer or refuses this client, and the error of the first topic if none can be read; where
    one can, the ingest reports the errors of the others. It ends early once `stops()`, within a second.
    """
    try:
        cluster = Cluster(without_unknown(conf), ASKED_S)
        consumer = cluster.consumer()
    except (ConnectorError, InvalidSettingError) as error:
        notes("not_asked", f"the cluster is not checked before Spark runs: {error}")
        return
    notes("asking", asking(cluster))
    try:
        _look(cluster, consumer, topics, stops)
    finally:
        consumer.close()


def asking(cluster: Cluster) -> str:
    return one_line(f"querying Kafka at {cluster.servers}", _SHOWN_CHARACTERS)


def look_at(cluster: Cluster, topic: str) -> None:
    """Requests one topic. Raises its error, and the cluster's; `StopAsked` once the cluster's `stops()`."""
    with cluster.asking() as consumer:
        _look(cluster, consumer, (topic,), cluster.stops)


def _look(cluster: Cluster, consumer: Consumer, topics: Sequence[str], stops: Callable[[], bool]) -> None:
    failures: list[LithifyError] = []
    known_topics: list[str] = []
    if not topics:
        cluster.wait(lambda slice_s: consumer.list_topics(timeout=slice_s), consumer)
    for topic in topics:
        if stops():
            return
        try:
            cluster.partitions(consumer, topic)
            known_topics.append(topic)
        except BrokerError as error:
            if cluster.last_error is not None:  # of the connection, so for all topics
                raise
            failures.append(error)
        except UnknownSourceError as error:
            known = cluster.wait(lambda slice_s: consumer.list_topics(timeout=slice_s), consumer).topics
            failures.append(UnknownSourceError(error.message, hint=nearest(topic, known, error.hint)))
        except LithifyError as error:
            failures.append(error)
    if known_topics:
        failures += _unreadable(cluster, consumer, known_topics, stops)
    if failures and len(failures) == len(topics):
        raise failures[0]


def _unreadable(
    cluster: Cluster, consumer: Consumer, topics: Sequence[str], stops: Callable[[], bool]
) -> list[LithifyError]:
    """The errors of topics that cannot be fetched from: no rights, or a broker whose own address is wrong."""
    k, failures, waiting = client(), [], set(topics)
    cluster.last_error = None
    consumer.assign([k.TopicPartition(topic, 0, k.OFFSET_END) for topic in topics])
    for _ in range(round(FETCHED_S / SLICE_S)):
        while waiting and not stops() and (fetched := consumer.poll(SLICE_S)) is not None:
            failure, topic = fetched.error(), fetched.topic()
            if failure is None or failure.code() == k.KafkaError._PARTITION_EOF:
                waiting.discard(str(topic))
            elif failure.code() == k.KafkaError.TOPIC_AUTHORIZATION_FAILED and topic in waiting:
                waiting.discard(str(topic))
                failures.append(cluster.named(failure, str(topic)))
    if waiting and cluster.last_error is not None and not stops():
        raise cluster.named(k.KafkaError(k.KafkaError._TIMED_OUT))
    return failures
