"""Requests of administrators: DescribeGroups, ListGroups, DeleteGroups. They need a role for all streams."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.classic.group import CONSUMERS, Group, Phase
from lithify.kafka_server.groups.modern.assignor import Parts
from lithify.kafka_server.groups.modern.group import ConsumerGroup
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.topics import found
from lithify.model.access.roles import ALL, Role


def _kind(group: Group | ConsumerGroup) -> str:
    return "consumer" if isinstance(group, ConsumerGroup) else "classic"


async def describe_groups(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Each group with its members. One that nobody knows is dead, and from version 6 on not found."""
    found = await _found(context, request["groups"])
    return {"groups": await context.work(lambda: [_described(context, *one) for one in found.items()])}


async def list_groups(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The groups that this gateway coordinates."""
    if context.coordinator is None:
        return {"error_code": Code.COORDINATOR_NOT_AVAILABLE}
    if not context.caller.may(Role.LOOK, ALL):
        return {"error_code": Code.GROUP_AUTHORIZATION_FAILED}
    groups = await context.coordinator.listed()
    if isinstance(groups, Code):
        return {"error_code": groups}
    states = {state.lower() for state in request.get("states_filter", ())}
    types = {kind.lower() for kind in request.get("types_filter", ())}
    listed = (
        {
            "group_id": name,
            "protocol_type": CONSUMERS if isinstance(group, ConsumerGroup) else group.protocol_type or "",
            "group_state": group.phase,
            "group_type": _kind(group),
        }
        for name, group in sorted(groups.items())
        if (not states or group.phase.lower() in states) and (not types or _kind(group) in types)
    )
    return {"error_code": Code.NONE, "groups": list(listed)}


async def delete_groups(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The offsets of groups without members."""
    names = dict.fromkeys(request["groups_names"])
    if context.coordinator is None:
        codes = dict.fromkeys(names, Code.COORDINATOR_NOT_AVAILABLE)
    elif not context.caller.may(Role.CONSUME, ALL):
        codes = dict.fromkeys(names, Code.GROUP_AUTHORIZATION_FAILED)
    else:
        codes = await context.coordinator.delete_groups(names, context.caller.token_id)
    return {"results": [{"group_id": group, "error_code": code} for group, code in codes.items()]}


async def consumer_group_describe(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The same for groups of the newer protocol. Of others clients ask DescribeGroups then."""
    groups = await _found(context, request["group_ids"])

    def told() -> list[dict[str, Any]]:
        names = _names(context, groups.values())
        return [_consumers(name, group, names) for name, group in groups.items()]

    return {"groups": await context.work(told)}


def _consumers(name: str, group: Group | ConsumerGroup | Code, names: Mapping[bytes, str]) -> dict[str, Any]:
    if isinstance(group, Group):
        group = Code.GROUP_ID_NOT_FOUND
    if isinstance(group, Code):
        return {"error_code": group, "group_id": name}

    def shown(parts: Parts) -> dict[str, Any]:
        by_topic = groupby(sorted(parts), key=lambda part: part[0])
        topics = ((topic_id, [number for _, number in some]) for topic_id, some in by_topic)
        return {
            "topic_partitions": [
                {"topic_id": topic_id, "topic_name": names.get(topic_id, ""), "partitions": numbers}
                for topic_id, numbers in topics
            ]
        }

    return {
        "group_id": name,
        "group_state": group.phase,
        "group_epoch": group.epoch,
        "assignment_epoch": group.epoch,
        "assignor_name": "uniform",
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.instance_id,
                "rack_id": member.rack_id,
                "member_epoch": member.epoch,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "subscribed_topic_names": sorted(member.topics),
                "subscribed_topic_regex": member.pattern,
                "assignment": shown(member.assigned),
                "target_assignment": shown(group.target[member.member_id]),
                "member_type": 1,
            }
            for member in group.members.values()
        ],
    }


def _names(context: Context, groups: Iterable[Group | ConsumerGroup | Code]) -> dict[bytes, str]:
    """By id, the topics that members are assigned, as far as the caller may read them."""
    of_consumers = [group for group in groups if isinstance(group, ConsumerGroup)]
    assigned = {part for group in of_consumers for member in group.members.values() for part in member.assigned}
    assigned |= {part for group in of_consumers for parts in group.target.values() for part in parts}
    topics = {topic_id: found(context, None, topic_id) for topic_id in {topic_id for topic_id, _ in assigned}}
    return {topic_id: topic.kafka_name for topic_id, topic in topics.items() if not isinstance(topic, Code)}


async def _found(context: Context, groups: Collection[str]) -> Mapping[str, Group | ConsumerGroup | Code]:
    names = dict.fromkeys(groups)
    if not context.caller.may(Role.LOOK, ALL):
        return dict.fromkeys(names, Code.GROUP_AUTHORIZATION_FAILED)
    if context.coordinator is None:
        return dict.fromkeys(names, Code.COORDINATOR_NOT_AVAILABLE)
    return await context.coordinator.described(names)


def _described(context: Context, name: str, group: Group | ConsumerGroup | Code) -> dict[str, Any]:
    if isinstance(group, Code):
        return {"error_code": group, "group_id": name}
    if isinstance(group, ConsumerGroup):  # which the other API describes; clients ask for both
        group = Group(Phase.DEAD)
    unknown = context.version >= 6 and group.phase is Phase.DEAD
    is_stable = group.phase is Phase.STABLE
    return {
        "error_code": Code.GROUP_ID_NOT_FOUND if unknown else Code.NONE,
        "error_message": f"there is no group {name}" if unknown else None,
        "group_id": name,
        "group_state": group.phase,
        "protocol_type": group.protocol_type or "",
        "protocol_data": (group.protocol or "") if is_stable else "",
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.metadata(group.protocol) if is_stable else b"",
                "member_assignment": member.assignment if is_stable else b"",
            }
            for member in group.members.values()
        ],
    }
