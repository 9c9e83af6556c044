"""ListOffsets: where a log begins and ends, and from where records are as new as a time."""

from __future__ import annotations

from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.logs.served_log import ServedLog
from lithify.kafka_server.logs.served_topic import ServedTopic
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.topics import found, partitions_once, read_from

_LATEST, _MAX_TIME = -1, -3
_EARLIEST = (-2, -4)
"""-4 is the earliest that is not in another tier: there are no tiers."""
_NOTHING = (-1, -1)
"""No offset, no timestamp."""


async def list_offsets(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """An offset for each partition that is asked for, and the timestamp of the record there if it was found by time."""
    asked = partitions_once(request["topics"], "name", "partition_index")
    return {"topics": await context.work(lambda: [_topic(context, *one) for one in asked.items()])}


def _topic(context: Context, name: str, asked: list[dict[str, Any]]) -> dict[str, Any]:
    topic = found(context, name)
    return {"name": name, "partitions": [_listed(context, topic, one) for one in asked]}


def _listed(context: Context, topic: ServedTopic | Code, asked: dict[str, Any]) -> dict[str, Any]:
    def read(log: ServedLog) -> dict[str, Any]:
        offset, timestamp = _offset(log, asked["timestamp"])
        return {"offset": offset, "timestamp": timestamp, "leader_epoch": -1 if offset < 0 else log.leader_epoch}

    partition = asked["partition_index"]
    outcome = read_from(context, topic, partition, asked.get("current_leader_epoch", -1), read)
    return {"partition_index": partition, **({"error_code": outcome} if isinstance(outcome, Code) else outcome)}


def _offset(log: ServedLog, timestamp: int) -> tuple[int, int]:
    """The offset for a timestamp, or for what a number below zero asks for."""
    if timestamp >= 0:
        return log.offset_at(timestamp) or _NOTHING
    if timestamp == _LATEST:
        return log.end, -1
    if timestamp in _EARLIEST:
        return log.start, -1
    return (log.max_time() or _NOTHING) if timestamp == _MAX_TIME else _NOTHING
