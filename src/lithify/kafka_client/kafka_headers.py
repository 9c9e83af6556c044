"""The headers of messages that Kafka's client for Python has fetched.

Kafka stores any bytes as the name of a header. Java's clients, and so Spark, put U+FFFD in place of what is not UTF-8;
the client for Python gives none of the message's headers then. Without an error that names the record, its producer
would stop every reader for ever, and the cause would not be visible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lithify.errors import InvalidRecordError

if TYPE_CHECKING:
    from confluent_kafka import Message


def headers_of(message: Message, hint: str) -> tuple[tuple[str, bytes | None], ...]:
    """Raises `InvalidRecordError`, with that hint, for a name that is not UTF-8."""
    try:
        headers: Any = message.headers()
        if not headers:  # as for most records, in half the time
            return ()
        return tuple((name, value) for name, value in headers)  # it may raise only when its list is used
    except (UnicodeDecodeError, SystemError):  # the latter where Python itself notices that the client has failed
        raise InvalidRecordError(
            f"{message.topic()}-{message.partition()}: the record at offset {message.offset()} has a header whose "
            "name is not UTF-8, which Kafka's client for Python cannot read",
            hint=hint,
        ) from None
