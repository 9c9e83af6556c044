"""ListOffsets: where a log begins and ends, and from where records are as new as a time."""

from __future__ import annotations

from typing import Any

from lithify.errors import LithifyError
from lithify.kafka_server.logs.served_log import ServedLog
from lithify.kafka_server.requests.codes import Code
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.topics import found, log_of

_LATEST, _MAX_TIME = -1, -3
_EARLIEST = (-2, -4)
"""-4 is the earliest that is not in another tier: there are no tiers."""
_NOTHING = (-1, -1)
"""No offset, no timestamp."""


async def list_offsets(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """An offset for each partition that is asked for, and the timestamp of the record there if it was found by time."""
    return {"topics": await context.work(lambda: [_topic(context, one) for one in request["topics"]])}


def _topic(context: Context, asked: dict[str, Any]) -> dict[str, Any]:
    topic = found(context, asked["name"])
    partitions = []
    for one in asked["partitions"]:
        log = log_of(context, topic, one["partition_index"], one.get("current_leader_epoch", -1))
        partitions.append({"partition_index": one["partition_index"], **_listed(context, log, one["timestamp"])})
    return {"name": asked["name"], "partitions": partitions}


def _listed(context: Context, log: ServedLog | Code, timestamp: int) -> dict[str, Any]:
    if isinstance(log, Code):
        return {"error_code": log}
    try:
        offset, found_timestamp = _offset(log, timestamp)
    except LithifyError as error:
        context.served.failed(error)
        return {"error_code": Code.KAFKA_STORAGE_ERROR}
    epoch = -1 if offset < 0 else log.leader_epoch
    return {"offset": offset, "timestamp": found_timestamp, "leader_epoch": epoch}


def _offset(log: ServedLog, timestamp: int) -> tuple[int, int]:
    """The offset for a timestamp, or for what a number below zero asks for."""
    if timestamp >= 0:
        return log.offset_at(timestamp) or _NOTHING
    if timestamp == _LATEST:
        return log.end, -1
    if timestamp in _EARLIEST:
        return log.start, -1
    return (log.max_time() or _NOTHING) if timestamp == _MAX_TIME else _NOTHING
