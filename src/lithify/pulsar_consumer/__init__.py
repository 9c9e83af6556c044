"""Consumes a copied topic of a Pulsar cluster: the compacted records from the lake, the rest live from Pulsar.

from lithify.api.pulsar import client_config
from lithify.pulsar_consumer import PulsarSnapshotConsumer

cluster = client_config("pulsar://localhost:6650", "http://localhost:8080")
with PulsarSnapshotConsumer(lake.topic("persistent://shop/eu/orders"), cluster) as consumer:
    table = {}
    consumer.fill(table)
"""

from lithify.pulsar_consumer.snapshot_consumer import PulsarSnapshotConsumer

__all__ = ["PulsarSnapshotConsumer"]
