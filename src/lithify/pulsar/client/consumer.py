"""A consumer on a connection of its own: not durable, for a reader, or of an exclusive durable subscription.

CONNECT ─► SUBSCRIBE ─► GET_LAST_MESSAGE_ID, FLOW, ACK ─► CLOSE_CONSUMER, by either side
"""

from __future__ import annotations

import os
import socket
from typing import Final

from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.pulsar.client.commands_pb2 import BaseCommand, MessageIdData
from lithify.pulsar.client.config import ClientConfig
from lithify.pulsar.client.connection import Connection, command
from lithify.pulsar.client.lookup import owner_of

CONSUMER: Final = 1
"""The id of the one consumer of a connection."""
CLOSE_CONSUMER: Final = BaseCommand.DESCRIPTOR.fields_by_name["close_consumer"].number
EXCLUSIVE: Final = 0
EARLIEST_POSITION: Final = 1
NOWHERE: Final = (1 << 64) - 1
"""-1 as Pulsar has it in ids: before all ledgers, or before all entries of one."""
LARGEST: Final = (1 << 63) - 1
"""Of the numbers in an id."""
LATEST: Final = MessageId(LARGEST, LARGEST)


def reading(config: ClientConfig, topic: str, start: MessageId | None, *, compacted: bool) -> Connection:
    """A connection with a consumer that gets what is from `start` on; None: from the earliest entry on."""
    asked = command("subscribe")
    asked.subscribe.durable = False
    asked.subscribe.read_compacted = compacted
    begin = start or MessageId(NOWHERE, NOWHERE)
    asked.subscribe.start_message_id.CopyFrom(MessageIdData(ledger_id=begin.ledger, entry_id=begin.entry))
    return _subscribed(config, topic, asked)


def holding(config: ClientConfig, topic: str, subscription: str, *, compacted: bool) -> Connection:
    """A connection with the only consumer of a durable subscription; a new one begins at the earliest entry.

    Raises `SubscriptionBusyError` if there is one already.
    """
    asked = command("subscribe")
    asked.subscribe.subscription = subscription
    asked.subscribe.durable = True
    asked.subscribe.read_compacted = compacted
    asked.subscribe.initial_position = EARLIEST_POSITION
    return _subscribed(config, topic, asked)


def last_id(connection: Connection, topic: str) -> MessageId | None:
    """Of the last message that the consumer can get; None: there is none."""
    asked = command("get_last_message_id")
    asked.get_last_message_id.consumer_id = CONSUMER
    asked.get_last_message_id.request_id = connection.new_request()
    last = connection.request(asked, topic).get_last_message_id_response.last_message_id
    if NOWHERE in (last.ledger_id, last.entry_id):
        return None
    if max(last.ledger_id, last.entry_id) > LARGEST:
        raise BrokerError(f"{topic}: the broker reports an invalid last id: {last.ledger_id}:{last.entry_id}")
    return MessageId(last.ledger_id, last.entry_id, last.batch_index)


def allow(connection: Connection, messages: int) -> None:
    """Lets the broker send this number of further messages."""
    asked = command("flow")
    asked.flow.consumer_id = CONSUMER
    asked.flow.message_permits = messages
    connection.send(asked)


def _subscribed(config: ClientConfig, topic: str, asked: BaseCommand) -> Connection:
    connection = owner_of(config, topic)
    try:
        name = f"lithify-{socket.gethostname()}-{os.getpid()}-{connection.local_port}"
        asked.subscribe.topic = topic
        asked.subscribe.subscription = asked.subscribe.subscription or name
        asked.subscribe.consumer_name = name
        asked.subscribe.sub_type = EXCLUSIVE
        asked.subscribe.consumer_id = CONSUMER
        asked.subscribe.request_id = connection.new_request()
        asked.subscribe.force_topic_creation = False
        connection.request(asked, topic)
    except BaseException:
        connection.close()
        raise
    return connection
