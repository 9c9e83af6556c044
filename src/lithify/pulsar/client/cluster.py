"""A Pulsar cluster as Lithify sees it: what topics have, and who may compact them.

Cluster ──► partitions, last id           over connections that are closed at once
       └──► Subscription                  held until it is closed
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.message import MessageId
from lithify.pulsar.client.config import ClientConfig
from lithify.pulsar.client.consumer import LATEST, holding, last_id, reading
from lithify.pulsar.client.lookup import partitions_of
from lithify.pulsar.client.names import TopicName
from lithify.pulsar.client.subscription import Subscription


@dataclass(frozen=True, slots=True)
class Cluster:
    """Calls raise `InvalidNameError`, `UnknownSourceError` or `BrokerError`, and no topic is ever created."""

    config: ClientConfig

    def partitions(self, topic: str) -> int:
        """How many the topic has; 0: it is not partitioned."""
        return partitions_of(self.config, str(TopicName.parsed(topic)))

    def last_id(self, topic: str, *, compacted: bool = False) -> MessageId | None:
        """The id of the last message that a reader of the topic, or one partition, gets now; None: there is none.

        Markers and aborted transactions do not count. With `compacted` it is the last one of a compacted read.
        """
        name = str(TopicName.parsed(topic))
        with reading(self.config, name, LATEST, compacted=compacted) as connection:
            return last_id(connection, name)

    def subscribe(self, topic: str, subscription: str, *, compacted: bool = False) -> Subscription:
        """The exclusive durable subscription of a topic, or one partition, from the earliest entry on if it is new.

        Raises `SubscriptionBusyError` while another consumer has it.
        """
        name = str(TopicName.parsed(topic))
        return Subscription(holding(self.config, name, subscription, compacted=compacted), name, subscription)
