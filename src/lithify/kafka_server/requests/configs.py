"""DescribeConfigs: the settings of topics, by their own names, which are Kafka's where Kafka has them.

Tools that copy topics into a cluster, such as MirrorMaker, give the new topic each setting that can be written and is
not a default. So a topic that is compacted here is compacted there, and keeps its records as long. All others are told
as read-only: a broker refuses a setting that it does not know, and with it the topic.
"""

from __future__ import annotations

from typing import Any, Final

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.topics import found, once
from lithify.model.settings.topic_settings import TopicSettings, to_config

_TOPIC = 2
_OF_TOPIC, _DEFAULT = 1, 5
"""Where a value comes from, as Kafka numbers it."""
_COPIED: Final = frozenset(
    {
        "cleanup.policy",
        "delete.retention.ms",
        "max.message.bytes",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "retention.bytes",
        "retention.ms",
    }
)
"""Settings that mean the same in a cluster, with the same values."""
_POLICY_OF_KAFKA: Final = {"cleanup.policy": "delete"}
"""The only one of them whose default is another in Kafka. It is told as a setting of the topic where it differs."""


async def describe_configs(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The settings of each topic. A gateway has none, so that tools which ask find an empty list."""
    asked = once(request["resources"], "resource_type", "resource_name")
    return {"results": await context.work(lambda: [_result(context, one) for one in asked])}


def _result(context: Context, asked: dict[str, Any]) -> dict[str, Any]:
    same = {name: asked[name] for name in ("resource_type", "resource_name")}
    if asked["resource_type"] != _TOPIC:
        return same
    topic = found(context, asked["resource_name"])
    if isinstance(topic, Code):
        return {**same, "error_code": topic}
    defaults = {**to_config(TopicSettings()), **_POLICY_OF_KAFKA}
    keys = asked["configuration_keys"]
    rows = [
        {
            "name": name,
            "value": value,
            "read_only": name not in _COPIED,
            "config_source": _DEFAULT if value == defaults[name] else _OF_TOPIC,
        }
        for name, value in to_config(topic.state.settings).items()
        if keys is None or name in keys
    ]
    return {**same, "configs": rows}
