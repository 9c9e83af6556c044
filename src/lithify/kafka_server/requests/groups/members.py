"""Requests of members of classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.classic.group import CONSUMERS, Joined
from lithify.kafka_server.groups.classic.joining import MOST_MEMBERS, Join
from lithify.kafka_server.groups.classic.sessions import Sync
from lithify.kafka_server.groups.consumer_protocol import subscribed
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.topics import may_name, may_read, unread
from lithify.model.access.roles import ALL, Role
from lithify.model.names import MAX_NAME_LENGTH

SESSION_MS = range(6_000, 1_800_001)
"""As Kafka's `group.min.session.timeout.ms` and `group.max.session.timeout.ms`."""
REBALANCE_MS = range(1_000, 3_600_001)
"""Others than these are taken for the nearest: so no rebalance waits for ever."""
METADATA_BYTES, MOST_PROTOCOLS = 131_072, 100
"""Of one member: names and metadata of all protocols, and how many they are."""
MOST_LEAVING = 2 * MOST_MEMBERS
"""At once: no group has more members, and ids that were given out."""


async def join_group(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """A member comes, comes back, or asks for a new assignment. The answer may wait for other members."""
    protocols = tuple((one["name"], bytes(one["metadata"])) for one in request["protocols"])
    member_id, session_ms = request["member_id"], request["session_timeout_ms"]
    error, reads = Code.NONE, frozenset[str]()
    if context.coordinator is None:
        error = Code.COORDINATOR_NOT_AVAILABLE
    elif session_ms not in SESSION_MS:
        error = Code.INVALID_SESSION_TIMEOUT
    elif (
        is_long(context.client_id, request.get("group_instance_id"), request["protocol_type"])
        or len(protocols) > MOST_PROTOCOLS
        or sum(len(n) + len(m) for n, m in protocols) > METADATA_BYTES
    ):
        error = Code.INVALID_REQUEST
    else:
        if request["protocol_type"] == CONSUMERS:
            error, reads = await context.work(lambda: _subscription(context, protocols))
        if error is Code.NONE:
            error = await refused_in(context, request["group_id"])
    if error is not Code.NONE or context.coordinator is None:
        return {"error_code": error, "member_id": member_id}
    rebalance_ms = request.get("rebalance_timeout_ms", session_ms)
    join = Join(
        member_id=member_id,
        instance_id=request.get("group_instance_id"),
        client_id=context.client_id or "",
        client_host=f"/{context.client_host}",
        session_ms=session_ms,
        rebalance_ms=min(max(rebalance_ms, REBALANCE_MS[0]), REBALANCE_MS[-1]),
        protocol_type=request["protocol_type"],
        protocols=protocols,
        knows_ids=context.version >= 4,
        skips=context.version >= 9,
        token=context.caller.token_id,
        reads=reads,
    )
    joined = await context.coordinator.join(request["group_id"], join)
    if joined.error is Code.NONE:  # while it waited others may have come who read more: a leader is told what
        error = await refused_in(context, request["group_id"])
    if error is not Code.NONE:
        await context.coordinator.leave(request["group_id"], [(joined.member_id, join.instance_id)])
        return {"error_code": error, "member_id": joined.member_id}
    return _joined(joined, none=None if context.version >= 7 else "")


def _joined(joined: Joined, *, none: str | None) -> dict[str, Any]:
    return {
        "error_code": joined.error,
        "generation_id": joined.generation,
        "protocol_type": joined.protocol_type,
        "protocol_name": none if joined.protocol is None else joined.protocol,
        "leader": joined.leader,
        "skip_assignment": joined.skip_assignment,
        "member_id": joined.member_id,
        "members": [
            {"member_id": member_id, "group_instance_id": instance_id, "metadata": metadata}
            for member_id, instance_id, metadata in joined.members
        ],
    }


async def sync_group(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """A member asks for its assignment, or the leader brings those of all."""
    if context.coordinator is None:
        return {"error_code": Code.COORDINATOR_NOT_AVAILABLE}
    sync = Sync(
        member_id=request["member_id"],
        instance_id=request.get("group_instance_id"),
        generation=request["generation_id"],
        protocol_type=request.get("protocol_type"),
        protocol=request.get("protocol_name"),
        assignments={one["member_id"]: bytes(one["assignment"]) for one in request["assignments"]},
    )
    synced = await context.coordinator.sync(request["group_id"], sync)
    return {
        "error_code": synced.error,
        "protocol_type": synced.protocol_type,
        "protocol_name": synced.protocol,
        "assignment": synced.assignment,
    }


async def heartbeat(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """A member is there."""
    if context.coordinator is None:
        return {"error_code": Code.COORDINATOR_NOT_AVAILABLE}
    member = request["member_id"], request.get("group_instance_id"), request["generation_id"]
    return {"error_code": await context.coordinator.heartbeat(request["group_id"], *member)}


async def leave_group(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Members leave. Before version 3 there is one, and the result is its own."""
    if context.coordinator is None:
        return {"error_code": Code.COORDINATOR_NOT_AVAILABLE}
    given = request["members"] if context.version >= 3 else [{"member_id": request["member_id"]}]
    if len(given) > MOST_LEAVING:
        return {"error_code": Code.INVALID_REQUEST}
    members = [(one["member_id"], one.get("group_instance_id")) for one in given]
    if any(name is not None for _, name in members):  # which is no secret, unlike an id
        error = await refused_in(context, request["group_id"])
        if error is not Code.NONE:
            return {"error_code": error}
    codes = await context.coordinator.leave(request["group_id"], members)
    if context.version < 3:
        return {"error_code": codes[0]}
    whole = {Code.NOT_COORDINATOR, Code.COORDINATOR_NOT_AVAILABLE, Code.INVALID_GROUP_ID} & {*codes}
    results = (
        {"member_id": member_id, "group_instance_id": instance_id, "error_code": code}
        for (member_id, instance_id), code in zip(members, codes, strict=True)
    )
    return {"error_code": min(whole, default=Code.NONE), "members": list(results)}


def is_long(*names: str | None) -> bool:
    """Whether one of these is longer than names of Kafka: ids of members are made of them, and have to fit too."""
    return any(name is not None and len(name) > MAX_NAME_LENGTH for name in names)


async def refused_in(context: Context, group: str) -> Code:
    """Why the caller may not act in a group: its members read topics, or it has offsets in some, that it may not."""
    if context.coordinator is None or context.caller.may(Role.CONSUME, ALL):
        return Code.NONE
    topics = await context.coordinator.topics(group)
    if isinstance(topics, Code):
        return topics
    names = await context.work(context.topics.names)
    may = all(may_read(context, names[name]) for name in topics if name in names)
    return Code.NONE if may else Code.GROUP_AUTHORIZATION_FAILED


def _subscription(context: Context, protocols: tuple[tuple[str, bytes], ...]) -> tuple[Code, frozenset[str]]:
    """Whether the caller may read all topics that it names, or could if there were such topics; and those there are."""
    wanted = frozenset(name for _, metadata in protocols for name in subscribed(metadata))
    if not may_name(context, wanted):
        return Code.GROUP_AUTHORIZATION_FAILED, frozenset()
    return Code.NONE, wanted - unread(context, wanted).keys()
