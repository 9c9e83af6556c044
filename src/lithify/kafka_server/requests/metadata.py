"""Metadata and DescribeCluster: which gateways there are, which topics, and who leads their partitions."""

from __future__ import annotations

from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.logs.served_topic import ServedTopic
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.topics import NO_ID, found, may_read, once, unread

_ALL_IS_NONE_FROM = 1
"""The first version of Metadata in which no list means all topics; before, an empty one did."""
_BROKERS = 1


async def metadata(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The gateways, and the topics that the client names, or all that it may read."""
    nodes = _nodes(context)
    topics = await context.work(lambda: _topics(context, request["topics"]))
    return {
        "brokers": nodes,
        "cluster_id": context.served.cluster.cluster_id,
        "controller_id": nodes[0]["node_id"],
        "topics": topics,
    }


async def describe_cluster(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The gateways."""
    if request.get("endpoint_type", _BROKERS) != _BROKERS:
        return {"error_code": Code.UNSUPPORTED_ENDPOINT_TYPE, "error_message": "there are no controllers"}
    nodes = [{**node, "broker_id": node["node_id"]} for node in _nodes(context)]
    cluster_id = context.served.cluster.cluster_id
    return {"cluster_id": cluster_id, "controller_id": nodes[0]["broker_id"], "brokers": nodes}


def _nodes(context: Context) -> list[dict[str, Any]]:
    nodes = context.served.cluster.gateways()
    return [{"node_id": node.node_id, "host": node.host, "port": node.port} for node in nodes]


def _topics(context: Context, asked: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    if asked is None or (not asked and context.version < _ALL_IS_NONE_FROM):
        names = context.topics.listed()
        asked = [{"name": name} for name, topic in names.items() if may_read(context, topic)]
    asked = once(asked, "name", "topic_id")
    named = [one["name"] for one in asked if one.get("name")]
    hidden = unread(context, named)
    context.topics.load([name for name in named if name not in hidden])
    return [_described(context, one.get("name"), one.get("topic_id", NO_ID)) for one in asked]


def _described(context: Context, name: str | None, topic_id: bytes) -> dict[str, Any]:
    match found(context, name, topic_id):
        case Code() as code:
            # Before version 12 a name is never null, even if the client has sent an id.
            return {"error_code": code, "name": name if name or context.version >= 12 else "", "topic_id": topic_id}
        case topic:
            partitions = [_partition(context, topic, partition) for partition in topic.partitions]
            return {"name": topic.kafka_name, "topic_id": topic.topic_id, "partitions": partitions}


def _partition(context: Context, topic: ServedTopic, partition: int) -> dict[str, Any]:
    leader = context.served.cluster.leader_of(topic.topic_id, partition).node_id
    return {
        "partition_index": partition,
        "leader_id": leader,
        "leader_epoch": topic.log(partition).leader_epoch,
        "replica_nodes": [leader],
        "isr_nodes": [leader],
    }
