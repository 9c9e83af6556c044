"""ConsumerGroupHeartbeat: all that members of the newer protocol ask for (KIP-848)."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.modern.beats import HEARTBEAT_MS, JOINS, Beat
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.groups.members import METADATA_BYTES, is_long, refused_in
from lithify.kafka_server.requests.topics import may_name, may_read, unread

_NO_NAME = "/"
"""No topic has it in its name: so a member gets no partition, as if the topic were not there."""

PATTERN_CHARACTERS = 4_096


async def consumer_group_heartbeat(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """A member comes, goes on or leaves, and is told which partitions are its own."""
    topics, pattern, owned = (
        request.get(name) for name in ("subscribed_topic_names", "subscribed_topic_regex", "topic_partitions")
    )
    if context.coordinator is None:
        return {"error_code": Code.COORDINATOR_NOT_AVAILABLE}
    names = (context.client_id, *(request[name] for name in ("member_id", "instance_id", "rack_id")))
    if is_long(*names) or sum(map(len, topics or ())) > METADATA_BYTES or len(pattern or "") > PATTERN_CHARACTERS:
        return {"error_code": Code.INVALID_REQUEST}
    hidden = await context.work(lambda: _hidden(context, topics or (), pattern))
    if hidden is None:
        return {"error_code": Code.GROUP_AUTHORIZATION_FAILED}
    if request["member_epoch"] == JOINS:
        error = await refused_in(context, request["group_id"])
        if error is not Code.NONE:
            return {"error_code": error}
    beat = Beat(
        member_id=request["member_id"],
        epoch=request["member_epoch"],
        instance_id=request["instance_id"],
        rack_id=request["rack_id"],
        client_id=context.client_id or "",
        client_host=f"/{context.client_host}",
        rebalance_ms=request["rebalance_timeout_ms"],
        topics=None if topics is None else frozenset(f"{n}{_NO_NAME}" if n in hidden else n for n in topics),
        pattern=pattern,
        matched=frozenset(),
        assignor=request["server_assignor"],
        owned=None if owned is None else frozenset((t["topic_id"], n) for t in owned for n in t["partitions"]),
        token=context.caller.token_id,
    )
    told = await context.coordinator.consumer_heartbeat(request["group_id"], beat)
    parts = groupby(sorted(told.assigned or ()), key=lambda part: part[0])
    shown = [{"topic_id": topic_id, "partitions": [number for _, number in some]} for topic_id, some in parts]
    return {
        "error_code": told.error,
        "error_message": None if told.error is Code.NONE else told.error.name,
        "member_id": told.member_id,
        "member_epoch": told.epoch,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "assignment": None if told.assigned is None else {"topic_partitions": shown},
    }


def _hidden(context: Context, topics: list[str] | tuple[str, ...], pattern: str | None) -> frozenset[str] | None:
    """Topics that the caller names, but may not read, where it cannot know that; None if it is refused.

    With a pattern it has to be able to read all topics there are.
    """
    names = context.topics.names()
    if pattern and not all(may_read(context, name) for name in names.values()):
        return None
    return frozenset(unread(context, topics)) & names.keys() if may_name(context, topics) else None
