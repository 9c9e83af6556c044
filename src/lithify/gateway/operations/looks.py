"""What a person is shown: the layout of logs, records, keys, cleaners, replicas."""

from __future__ import annotations

from lithify.gateway.operations.operation import Operation, Target
from lithify.model.access.roles import Role

_LAKE, _TOPIC = Target.LAKE, Target.TOPIC

OPERATIONS = (
    Operation(
        "layout",
        _TOPIC,
        "layout",
        "GET /topics/{topic}/layout",
        Role.LOOK,
        "looks.layout:TopicLayout",
        ("partitions",),
    ),
    Operation(
        "browse",
        _TOPIC,
        "browse",
        "GET /topics/{topic}/browse",
        Role.CONSUME,
        "looks.records:RecordsReport",
        ("partition", "start", "limit"),
    ),
    Operation(
        "key_history",
        _TOPIC,
        "key_history",
        "GET /topics/{topic}/key",
        Role.CONSUME,
        "looks.records:KeyReport",
        ("key",),
    ),
    Operation(
        "running_cleaners",
        _LAKE,
        "running_cleaners",
        "GET /cleaners",
        Role.LOOK,
        "looks.cleaners:RunningCleaner",
        many=True,
    ),
    Operation(
        "replica_status",
        Target.REPLICAS,
        "status",
        "GET /replicas",
        Role.LOOK,
        "replicas.status:ReplicaStatus",
        ("name",),
        many=True,
    ),
)
