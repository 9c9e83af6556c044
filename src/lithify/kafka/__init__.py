"""Topics of a Kafka cluster, in and out.

    from lithify.kafka import SnapshotConsumer

    with SnapshotConsumer(lake.topic("orders"), {"bootstrap.servers": "localhost:9092"}) as consumer:
        table = {}
        consumer.fill(table)

Both need the extra `lithify[kafka]`.
"""

from lithify.kafka.consumer.snapshot_consumer import SnapshotConsumer
from lithify.kafka.publisher.publishing import PublishReport, publish

__all__ = ["PublishReport", "SnapshotConsumer", "publish"]
