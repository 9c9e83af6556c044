"""Rounds, their proofs and history, and the state of logs."""

from __future__ import annotations

from lithify.gateway.operations.operation import Operation, Target
from lithify.model.access.roles import Role

_LAKE, _TOPIC = Target.LAKE, Target.TOPIC

OPERATIONS = (
    Operation(
        "status", _LAKE, "status", "GET /status", Role.LOOK, "overview:CatalogOverview", ("now_ms",), by_stream=True
    ),
    Operation(
        "topic_status", _TOPIC, "status", "GET /topics/{topic}/status", Role.LOOK, "status:TopicStatus", ("now_ms",)
    ),
    Operation(
        "plan",
        _TOPIC,
        "plan",
        "GET /topics/{topic}/plan",
        Role.TOPIC,
        "rounds.plan:PlanReport",
        ("now_ms", "partitions", "task_memory", "partial_progress"),
    ),
    Operation(
        "compact",
        _TOPIC,
        "compact",
        "POST /topics/{topic}/rounds",
        Role.TOPIC,
        "rounds.round:RoundReport",
        (
            "now_ms",
            "partitions",
            "task_memory",
            "read_rate",
            "write_rate",
            "partial_progress",
            "allow_clock_jump",
        ),
        is_job=True,
    ),
    Operation(
        "history",
        _TOPIC,
        "history",
        "GET /topics/{topic}/rounds",
        Role.LOOK,
        "rounds.round:RoundReport",
        many=True,
    ),
    Operation(
        "versions",
        _TOPIC,
        "versions",
        "GET /topics/{topic}/versions",
        Role.LOOK,
        "topics:VersionReport",
        many=True,
    ),
    Operation(
        "verify",
        _TOPIC,
        "verify",
        "POST /topics/{topic}/verifications",
        Role.TOPIC,
        "verification:VerifyReport",
        ("against", "read_rate"),
        is_job=True,
    ),
    Operation(
        "throttle_topic",
        _TOPIC,
        "throttle",
        "PUT /topics/{topic}/rates",
        Role.TOPIC,
        "rounds.rate_limits:RatesReport",
        ("read_rate", "write_rate"),
    ),
    Operation(
        "throttle",
        _LAKE,
        "throttle",
        "PUT /rates",
        Role.ADMIN,
        "rounds.rate_limits:RatesReport",
        ("read_rate", "write_rate", "shared"),
    ),
    Operation(
        "quarantine", _LAKE, "quarantine", "GET /quarantine", Role.LOOK, "quarantine:QuarantineReport", by_stream=True
    ),
    Operation(
        "release",
        _TOPIC,
        "release",
        "POST /topics/{topic}/release",
        Role.TOPIC,
        "quarantine:ReleaseReport",
        ("partitions",),
    ),
)
