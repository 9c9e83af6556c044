"""Requests about committed offsets: OffsetCommit, OffsetFetch, OffsetDelete."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.committed import Commit, Committed, Place
from lithify.kafka_server.groups.coordinator import Wanted
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.groups.by_id import Topics, answered, named
from lithify.kafka_server.requests.topics import found, once, unread

NO_OFFSET = Committed(-1, -1)


async def offset_commit(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Offsets of a member, or of anyone while the group has no members."""
    member = (
        request.get("member_id", ""),
        request.get("group_instance_id"),
        request.get("generation_id_or_member_epoch", -1),
    )
    topics, ids = await context.work(lambda: named(context, request["topics"]))
    allowed, refused = await context.work(lambda: _to_commit(context, topics, ids))
    codes: dict[Place, Code] = dict.fromkeys(allowed, Code.COORDINATOR_NOT_AVAILABLE)
    if context.coordinator is not None:
        codes = await context.coordinator.commit(request["group_id"], member, allowed, context.caller.token_id)
    return {"topics": await context.work(lambda: answered(context, _by_topic({**codes, **refused}), ids))}


async def offset_fetch(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Where members go on. Before version 8 there is one group."""
    if context.version >= 8:
        return {"groups": await _fetched(context, request["groups"])}
    (answer,) = await _fetched(context, [request])
    if answer["error_code"] is not Code.NONE and context.version < 2:  # which has no place for it but at partitions
        asked = {(topic["name"], number) for topic in request["topics"] for number in topic["partition_indexes"]}
        return {"topics": _offsets({}, dict.fromkeys(asked, answer["error_code"]))}
    return answer


async def offset_delete(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Offsets of topics that no member reads."""
    places = [(topic["name"], one["partition_index"]) for topic in request["topics"] for one in topic["partitions"]]
    refused = await context.work(lambda: _not_to_delete(context, places))
    allowed = [place for place in places if place not in refused]
    if context.coordinator is None:
        return {"error_code": Code.COORDINATOR_NOT_AVAILABLE}
    result = await context.coordinator.delete(request["group_id"], allowed, context.caller.token_id)
    if isinstance(result, Code):
        return {"error_code": result}
    return {"topics": _by_topic({**result, **refused})}


def _to_commit(
    context: Context, topics: Topics, ids: Mapping[str, bytes]
) -> tuple[dict[Place, Commit], dict[Place, Code]]:
    """The offsets that are asked for, and which of them are refused."""
    commits = {
        (topic["name"], one["partition_index"]): Commit(
            one["committed_offset"],
            one.get("committed_leader_epoch", -1),
            one["committed_metadata"] or "",
            ids.get(topic["name"]),
        )
        for topic in topics
        for one in topic["partitions"]
    }
    known, refused = context.topics.names(), _refused(context, commits)
    # A topic that is not known here yet may be known to the coordinator, which then has the catalog checked.
    refused = {p: code for p, code in refused.items() if p[0] in known or code is Code.TOPIC_AUTHORIZATION_FAILED}
    return {place: commit for place, commit in commits.items() if place not in refused}, refused


async def _fetched(context: Context, groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    asked, ids = await context.work(lambda: _asked(context, groups))
    if context.coordinator is None:
        found: Mapping[str, dict[Place, Committed] | Code] = dict.fromkeys(asked, Code.COORDINATOR_NOT_AVAILABLE)
    else:
        found = await context.coordinator.fetch(asked)

    def shown() -> list[dict[str, Any]]:
        groups = [_shown(context, name, asked[name].places, found[name]) for name in asked]
        return [{**group, "topics": answered(context, group["topics"], ids)} for group in groups]

    return await context.work(shown)


def _asked(context: Context, groups: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Wanted], Mapping[str, bytes]]:
    """By group, what is asked for, and the ids of topics by their names. May wait for the catalog."""
    groups = once(groups, "group_id")
    _, ids = named(context, [topic for group in groups for topic in group["topics"] or ()])
    names = {topic_id: name for name, topic_id in ids.items()}
    return {group["group_id"]: _wanted(group, names) for group in groups}, ids


def _wanted(group: Mapping[str, Any], names: Mapping[bytes, str]) -> Wanted:
    topics, member_id, epoch = group["topics"], group.get("member_id"), group.get("member_epoch", -1)
    places = None
    if topics is not None:
        places = {(names[t["topic_id"]] if names else t["name"], n) for t in topics for n in t["partition_indexes"]}
    return Wanted(places, (member_id, epoch) if member_id is not None and epoch >= 0 else None)


def _shown(
    context: Context, group: str, places: Collection[Place] | None, result: dict[Place, Committed] | Code
) -> dict[str, Any]:
    """The offsets of a group, of topics that the caller may read. May wait for the catalog."""
    if isinstance(result, Code):
        return {"group_id": group, "topics": [], "error_code": result}
    refused = _refused(context, result if places is None else places)
    found = {place: offset for place, offset in result.items() if place not in refused}
    if places is None:  # who asks for all gets what it may see
        return {"group_id": group, "topics": _offsets(found, {}), "error_code": Code.NONE}
    denied = {place: code for place, code in refused.items() if code is Code.TOPIC_AUTHORIZATION_FAILED}
    none = {place: NO_OFFSET for place in places if place not in denied}
    return {"group_id": group, "topics": _offsets(none | found, denied), "error_code": Code.NONE}


def _refused(context: Context, places: Collection[Place]) -> dict[Place, Code]:
    """The places in topics that the caller cannot read, with the answer to each. May wait for the catalog."""
    codes = unread(context, {name for name, _ in places})
    return {place: codes[place[0]] for place in places if place[0] in codes}


def _not_to_delete(context: Context, places: Collection[Place]) -> dict[Place, Code]:
    """Those, and places in views that there are not: else the offset would go that a group has in the log."""
    refused, listed = _refused(context, places), context.topics.listed()
    views = {name for name, _ in places} - {name for name, _ in refused} - listed.keys()
    topics = {name: found(context, name) for name in sorted(views)}
    absent = {name: topic for name, topic in topics.items() if isinstance(topic, Code)}
    return refused | {place: absent[place[0]] for place in places if place[0] in absent}


def _by_topic(codes: Mapping[Place, Code]) -> list[dict[str, Any]]:
    return [
        {"name": name, "partitions": [{"partition_index": place[1], "error_code": codes[place]} for place in places]}
        for name, places in groupby(sorted(codes), key=lambda place: place[0])
    ]


def _offsets(offsets: Mapping[Place, Committed], refused: Mapping[Place, Code]) -> list[dict[str, Any]]:
    def partition(place: Place) -> dict[str, Any]:
        committed = offsets.get(place, NO_OFFSET)
        return {
            "partition_index": place[1],
            "committed_offset": committed.offset,
            "committed_leader_epoch": committed.leader_epoch,
            "metadata": "",
            "error_code": refused.get(place, Code.NONE),
        }

    by_topic = groupby(sorted({*offsets, *refused}), key=lambda place: place[0])
    return [{"name": name, "partitions": [partition(place) for place in places]} for name, places in by_topic]
