"""Consumes a topic from its start: the compacted records from the lake, the rest live from Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from lithify.kafka.consumer.live_topic import KafkaTopic
from lithify.kafka_client.client import Cluster
from lithify.ports.topic import OpenTopic
from lithify.service.snapshot.lake_and_live import LakeAndLive
from lithify.service.snapshot.position_file import PositionFile


class SnapshotConsumer(LakeAndLive):
    """Iterate over it for the records of `topic`, endlessly: the lake's, then Kafka's, `read_committed`.

    `conf` is by Java's names, or librdkafka's, with `bootstrap.servers` at least. `kafka_topic` is the topic's name
    in Kafka, by default its name in the lake. It reads `partitions`, by default all. `position` is the path of
    a file: the consumer stores the cursors of its user there and continues at them the next time. `timeout_s`
    bounds every wait for a cluster that does not answer. For one thread.

    Raises `UnknownSourceError`, `SourceWentBackError`, or

    - `SourceLostError`, which names the missing range of offsets, or from where deletes may be missing,
    - `BrokerError` for a cluster that does not answer or refuses the client,
    - `LogTruncatedError` if it cannot continue at a stored cursor,
    - `ConnectorError` without Kafka's client.
    """

    def __init__(
        self,
        topic: OpenTopic,
        conf: Mapping[str, Any],
        *,
        kafka_topic: str | None = None,
        partitions: Sequence[int] | None = None,
        position: str | PathLike[str] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        name = kafka_topic or topic.topic_name.topic
        file = None if position is None else PositionFile(Path(position), topic.topic_name.stored, name)
        live = KafkaTopic(Cluster(conf, timeout_s), name, topic.warehouse, topic.topic_name)
        super().__init__(topic.warehouse, topic.topic_name, live, partitions, file)
