"""Topics of a Kafka cluster, in and out, and tables of them.

    from lithify.kafka import SnapshotConsumer

    with SnapshotConsumer(lake.topic("orders"), {"bootstrap.servers": "localhost:9092"}) as consumer:
        table = {}
        consumer.fill(table)

All but `promote` need the extra `kafka`.
"""

from lithify.hydration.hydrating import HydrateReport
from lithify.kafka.consumer.snapshot_consumer import SnapshotConsumer
from lithify.kafka.hydrating import hydrate
from lithify.kafka.promoting import promote
from lithify.kafka.publisher.publishing import publish
from lithify.kafka.publisher.reports import PublishReport
from lithify.snapshot.narration import KafkaNote

__all__ = ["HydrateReport", "KafkaNote", "PublishReport", "SnapshotConsumer", "hydrate", "promote", "publish"]
