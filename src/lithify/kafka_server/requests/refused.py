"""Produce: it is refused, as topics of the lake are only read here.

It is there because librdkafka fetches records of version 2 only from a server that says it takes them.
"""

from __future__ import annotations

from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.connections.answering import ClosingError
from lithify.kafka_server.requests.context import Context


async def produce(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Refuses each partition. Raises `ClosingError` to a client that expects no answer, as a broker does."""
    if request["acks"] == 0:
        raise ClosingError("it produces without waiting for an answer, and nothing is taken here")
    return {"responses": await context.work(lambda: _refused(request))}


def _refused(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            **{name: topic[name] for name in ("name", "topic_id") if name in topic},
            "partition_responses": [
                {"index": one["index"], "error_code": Code.TOPIC_AUTHORIZATION_FAILED, "base_offset": -1}
                for one in topic["partition_data"]
            ],
        }
        for topic in request["topic_data"]
    ]
