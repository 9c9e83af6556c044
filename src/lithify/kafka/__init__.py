"""Topics of a Kafka cluster, in and out, and tables of them.

    from lithify.kafka import SnapshotConsumer

    with SnapshotConsumer(lake.topic("orders"), {"bootstrap.servers": "localhost:9092"}) as consumer:
        table = {}
        consumer.fill(table)

All but `promote` need the extra `kafka`.
"""

from lithify.hydration.hydrating import HydrateReport
from lithify.kafka.consumer.snapshot_consumer import SnapshotConsumer
from lithify.kafka.kafka_hydration import hydrate
from lithify.kafka.promoting import promote
from lithify.kafka.publisher.group_offsets import GroupOffset, read_positions
from lithify.kafka.publisher.publishing import group_offsets, publish
from lithify.kafka.publisher.reports import PublishReport, TranslatedPosition
from lithify.service.snapshot.consumer_narration import KafkaNote

__all__ = [
    "GroupOffset",
    "HydrateReport",
    "KafkaNote",
    "PublishReport",
    "SnapshotConsumer",
    "TranslatedPosition",
    "group_offsets",
    "hydrate",
    "promote",
    "publish",
    "read_positions",
]
