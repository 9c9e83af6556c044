"""Topics, streams and the whole warehouse."""

from __future__ import annotations

from lithify.gateway.operations.operation import Operation, Target
from lithify.model.access.roles import Role

_LAKE, _TOPIC, _STREAM = Target.LAKE, Target.TOPIC, Target.STREAM

OPERATIONS = (
    Operation(
        "list_topics", _LAKE, "topic_infos", "GET /topics", Role.LOOK, "topics:TopicInfo", many=True, by_stream=True
    ),
    Operation("topic_names", _LAKE, "topics", "GET /topic-names", Role.LOOK, "", many=True, by_stream=True),
    Operation(
        "create_topic",
        _LAKE,
        "create_topic",
        "POST /topics",
        Role.TOPIC,
        "topics:TopicInfo",
        ("name", "partitions", "like", "config"),
        topics=("name",),
    ),
    Operation("topic_info", _TOPIC, "info", "GET /topics/{topic}", Role.LOOK, "topics:TopicInfo"),
    Operation(
        "alter_topic",
        _TOPIC,
        "alter",
        "PATCH /topics/{topic}",
        Role.TOPIC,
        "changed_settings:AlterReport",
        ("config", "unset", "partitions"),
    ),
    Operation("delete_topic", _LAKE, "delete_topic", "DELETE /topics/{name}", Role.TOPIC, "", topics=("name",)),
    Operation(
        "list_streams", _LAKE, "streams", "GET /streams", Role.LOOK, "streams:StreamInfo", many=True, by_stream=True
    ),
    Operation(
        "create_stream",
        _LAKE,
        "create_stream",
        "POST /streams",
        Role.TOPIC,
        "streams:StreamInfo",
        ("name", "config"),
        streams=("name",),
    ),
    Operation("stream_info", _STREAM, "info", "GET /streams/{stream}", Role.LOOK, "streams:StreamInfo"),
    Operation("stream_topics", _STREAM, "topics", "GET /streams/{stream}/topics", Role.LOOK, "", many=True),
    Operation(
        "edit_stream",
        _STREAM,
        "edit",
        "PATCH /streams/{stream}",
        Role.TOPIC,
        "streams:StreamEditReport",
        ("config", "unset"),
    ),
    Operation(
        "delete_stream",
        _STREAM,
        "delete",
        "DELETE /streams/{stream}",
        Role.TOPIC,
        "streams:StreamDeleteReport",
        ("topics",),
    ),
    Operation("warehouse_info", _LAKE, "info", "GET /warehouse", Role.LOOK, "warehouse:WarehouseInfo"),
    Operation("upgrade", _LAKE, "upgrade", "POST /warehouse/upgrade", Role.ADMIN, "warehouse:UpgradeReport"),
)
