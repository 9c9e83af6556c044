"""Consumer groups and their positions."""

from __future__ import annotations

from lithify.gateway.operations.operation import Operation, Target
from lithify.model.access.roles import Role

_GROUP = Target.GROUP

OPERATIONS = (
    Operation("list_groups", Target.LAKE, "groups", "GET /groups", Role.LOOK, "groups:GroupInfo", many=True),
    Operation(
        "describe_group",
        _GROUP,
        "describe",
        "GET /groups/{group}",
        Role.LOOK,
        "groups:GroupLag",
        ("topic",),
        many=True,
    ),
    Operation(
        "plan_reset_group",
        _GROUP,
        "plan_reset",
        "GET /groups/{group}/reset",
        Role.CONSUME,
        "groups:GroupReset",
        ("topic", "to", "partition"),
    ),
    Operation(
        "reset_group",
        _GROUP,
        "reset",
        "POST /groups/{group}/reset",
        Role.CONSUME,
        "groups:GroupReset",
        ("topic", "to", "partition", "lease_ms"),
        is_job=True,
    ),
    Operation(
        "plan_delete_group",
        _GROUP,
        "plan_delete",
        "GET /groups/{group}/positions",
        Role.CONSUME,
        "groups:GroupReset",
        ("topic",),
        many=True,
    ),
    Operation(
        "delete_group",
        _GROUP,
        "delete",
        "DELETE /groups/{group}",
        Role.CONSUME,
        "groups:GroupReset",
        ("topic", "lease_ms"),
        many=True,
        is_job=True,
    ),
)
