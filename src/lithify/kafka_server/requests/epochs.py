"""OffsetForLeaderEpoch: up to where a log is still what it was in an earlier epoch.

A client that has read further has read records that are gone: it goes back by itself, or tells its program.

The end of the latest epoch is the log end. A client may have read up to a later one than the last look has seen, by
another gateway that led the partition before. It would take that for a truncation. So the catalog is checked now.
"""

from __future__ import annotations

from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.logs.served_log import ServedLog
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.topics import found, log_of, partitions_once


async def offset_for_leader_epoch(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The end of an epoch for each partition that is asked for."""
    asked = partitions_once(request["topics"], "topic", "partition")
    return {"topics": await context.work(lambda: [_topic(context, *one) for one in asked.items()])}


def _topic(context: Context, name: str, asked: list[dict[str, Any]]) -> dict[str, Any]:
    topic = found(context, name, after=context.looks)
    partitions = [
        {
            "partition": one["partition"],
            **_end(log_of(context, topic, one["partition"], one["current_leader_epoch"]), one),
        }
        for one in asked
    ]
    return {"topic": name, "partitions": partitions}


def _end(log: ServedLog | Code, asked: dict[str, Any]) -> dict[str, Any]:
    if isinstance(log, Code):
        return {"error_code": log}
    epoch, end = log.epoch_end(asked["leader_epoch"])
    return {"leader_epoch": epoch, "end_offset": end}
