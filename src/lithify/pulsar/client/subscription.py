"""An exclusive durable subscription, held on one connection until it is closed or the connection is lost.

A thread of its own listens, since the broker ends connections whose pings have no response, and a program that
holds a subscription works for hours on something else. It never reconnects: another consumer may have had
the subscription in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Final, Self

from lithify.errors import BrokerError, LithifyError
from lithify.model.message import MessageId
from lithify.pulsar.client.broker_refusals import SealedEndError, TransientBrokerError
from lithify.pulsar.client.commands_pb2 import KeyLongValue, MessageIdData
from lithify.pulsar.client.connection import Connection, command
from lithify.pulsar.client.consumer import CLOSE_CONSUMER, CONSUMER, last_id
from lithify.waits.deadline import Deadline

CUMULATIVE: Final = 1
SLICE_S: Final = 0.5
"""How long after `close` the thread may still be there."""
LISTEN_S: Final = 90.0
"""Brokers ping every 30 s, so one that says nothing for so long is gone."""


class Subscription:
    """Held from the start. Safe to use from any thread."""

    def __init__(self, connection: Connection, topic: str, name: str) -> None:
        self._connection, self.topic, self.name = connection, topic, name
        self._turn = Lock()
        """Of the connection."""
        self._ended = Event()
        self._lost: str = ""
        Thread(target=self._listen, name=f"{name} of {topic}", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether the broker has not said, or shown, that the subscription is lost."""
        return not self._ended.is_set()

    def acknowledge(self, at: MessageId, properties: Mapping[str, int]) -> None:
        """Everything up to an entry, -1 for the start of its ledger, with properties for the cursor.

        Raises `BrokerError`.

        The broker's answer says that it has begun with it. Of `__compaction` it does not say how it ended: the
        topic's internal statistics show the properties once they are in force.
        """
        asked = command("ack")
        asked.ack.consumer_id = CONSUMER
        asked.ack.ack_type = CUMULATIVE
        asked.ack.message_id.append(MessageIdData(ledger_id=at.ledger, entry_id=at.entry % 2**64))
        asked.ack.properties.extend(KeyLongValue(key=name, value=value % 2**64) for name, value in properties.items())
        with self._turn:
            if not self.is_open:
                raise BrokerError(
                    f"{self.topic}: the subscription {self.name} is lost: {self._lost or 'it was closed'}"
                )
            try:
                asked.ack.request_id = self._connection.new_request()
                self._connection.request(asked, f"{self.topic}, subscription {self.name}")
            except TransientBrokerError as error:
                self._end(error.message)
                raise

    def is_confirmed(self) -> bool:
        """Whether the broker answers this consumer, so that no other one has had the subscription so far."""
        with self._turn:
            if not self.is_open:
                return False
            try:
                last_id(self._connection, self.topic)
            except SealedEndError:  # it knows the consumer, and could not open an entry for it
                return True
            except LithifyError as error:
                self._end(error.message)
            return self.is_open

    def close(self) -> None:
        """Releases it at once for others. The cursor remains where it is."""
        with self._turn:
            if self.is_open:
                asked = command("close_consumer")
                asked.close_consumer.consumer_id = CONSUMER
                asked.close_consumer.request_id = self._connection.new_request()
                with suppress(LithifyError):
                    self._connection.request(asked, self.topic)
                self._end("")

    def _listen(self) -> None:
        silence = Deadline(LISTEN_S)
        while self.is_open:
            is_there = self._connection.wait_for_bytes(SLICE_S)
            with self._turn:
                if not self.is_open:
                    return
                try:
                    frames = self._connection.arrived(0) if is_there else None
                    if frames is None:
                        silence.left_s()
                        continue
                except (LithifyError, TimeoutError) as error:
                    self._end(str(error))
                    return
                silence = Deadline(LISTEN_S)
                if any(frame.type == CLOSE_CONSUMER for frame, _ in frames):
                    self._end("the broker closed it, as when it moves a topic")

    def _end(self, reason: str) -> None:
        self._lost = reason
        self._ended.set()
        self._connection.close()
