"""Requests about offsets that name topics by their ids (version 10), for handlers that know names only.

A topic of an id that nobody knows gets a name that no topic has, and is answered as such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.logs.served_topic import ServedTopic
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.topics import NO_ID, found, found_anew

FROM = 10
"""The first version that does."""
_NOWHERE = "\0"

Topics = Sequence[dict[str, Any]]


def named(context: Context, topics: Topics) -> tuple[Topics, Mapping[str, bytes]]:
    """The topics with their names, and by name, the ids. May wait for the catalog."""
    if context.version < FROM:
        return topics, {}
    asked = sorted({topic["topic_id"] for topic in topics})
    served = {topic_id: found(context, None, topic_id) for topic_id in asked if topic_id != NO_ID}
    unknown = [topic_id for topic_id, topic in served.items() if topic is Code.UNKNOWN_TOPIC_ID]
    for topic_id in unknown:  # another gateway may know it
        served[topic_id] = found_anew(context, topic_id)
    names = {topic_id: _name(topic_id, served.get(topic_id)) for topic_id in asked}
    ids = {name: topic_id for topic_id, name in names.items()}
    return [{**topic, "name": names[topic["topic_id"]]} for topic in topics], ids


def answered(context: Context, topics: Topics, ids: Mapping[str, bytes]) -> Topics:
    """The answers for these topics, with their ids; others have names that clients know. May wait for the catalog."""
    if context.version < FROM:
        return topics
    known = {name: ids[name] if name in ids else _id(context, name) for name in (topic["name"] for topic in topics)}
    told = ({**topic, "topic_id": known[topic["name"]]} for topic in topics if known[topic["name"]] is not None)
    return [_unknown(topic) if topic["name"].startswith(_NOWHERE) else topic for topic in told]


def _unknown(topic: dict[str, Any]) -> dict[str, Any]:
    return {**topic, "partitions": [{**one, "error_code": Code.UNKNOWN_TOPIC_ID} for one in topic["partitions"]]}


def _name(topic_id: bytes, topic: ServedTopic | Code | None) -> str:
    return topic.kafka_name if isinstance(topic, ServedTopic) else f"{_NOWHERE}{topic_id.hex()}"


def _id(context: Context, name: str) -> bytes | None:
    topic = found(context, name)
    return topic.topic_id if isinstance(topic, ServedTopic) else None
