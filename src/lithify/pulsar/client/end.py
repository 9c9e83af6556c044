"""Asks for the last message of one partition again and again, over one connection.

The connection is kept between questions. Brokers close it where the topic moves, and if it was unused for so long that
their pings have no response: the next request then makes another.
"""

from __future__ import annotations

from lithify.model.message import MessageId
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar.client.config import ClientConfig
from lithify.pulsar.client.connection import Connection
from lithify.pulsar.client.consumer import LATEST, last_id, reading
from lithify.pulsar.client.names import TopicName


class TopicEnd:
    """Of a topic that is not partitioned, or one partition. For one thread."""

    def __init__(self, config: ClientConfig, topic: str) -> None:
        self._config, self._topic = config, str(TopicName.parsed(topic))
        self._connection: Connection | None = None

    def last_id(self) -> MessageId | None:
        """Of the last message that a reader gets now; None: there is none. Raises as `Cluster.last_id` does."""
        if self._connection is not None:
            try:
                return last_id(self._connection, self._topic)
            except TransientBrokerError:
                self.close()
        self._connection = reading(self._config, self._topic, LATEST, compacted=False)
        try:
            return last_id(self._connection, self._topic)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the connection; the next question makes another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
