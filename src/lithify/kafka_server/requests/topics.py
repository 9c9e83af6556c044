"""Topics and logs by the names and ids that clients send, or why they get none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from lithify.errors import LithifyError, OffsetOutOfRangeError, VersionSweptError
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.logs.kafka_names import may_be_of
from lithify.kafka_server.logs.served_log import ServedLog
from lithify.kafka_server.logs.served_topic import ServedTopic
from lithify.kafka_server.requests.context import Context
from lithify.model.access.roles import ALL, Role
from lithify.model.names import TopicName

T = TypeVar("T")
Row = TypeVar("Row", bound=Mapping[str, Any])

NO_ID = bytes(16)
_FOR_NOW = (Code.OFFSET_OUT_OF_RANGE, Code.OFFSET_NOT_AVAILABLE)
"""A later version may have it: another gateway may have told the client of it, or files of this one are gone."""


def may_read(context: Context, name: TopicName) -> bool:
    return context.caller.may(Role.CONSUME, name.stream)


def untold(context: Context, name: str) -> Code:
    """What is answered to a name that the caller cannot read.

    It does not tell whether there is such a topic: else names could be tried by a token without rights. A broker
    answers by the name alone, too.
    """
    streams = context.caller.streams(Role.CONSUME)
    may_have = ALL in streams or any(may_be_of(name, stream) for stream in streams)
    return Code.UNKNOWN_TOPIC_OR_PARTITION if may_have else Code.TOPIC_AUTHORIZATION_FAILED


def unread(context: Context, names: Iterable[str]) -> dict[str, Code]:
    """The names that the caller cannot read, with the answer to each. May wait for the catalog."""
    known = context.topics.names()
    others = (name for name in names if name not in known or not may_read(context, known[name]))
    return {name: untold(context, name) for name in others}


def may_name(context: Context, names: Iterable[str]) -> bool:
    """Whether the caller may read all topics of these names, or could if there were such topics."""
    return Code.TOPIC_AUTHORIZATION_FAILED not in unread(context, names).values()


def once(rows: Sequence[Row], *names: str) -> list[Row]:
    """The rows of a request, without those that repeat an earlier one in these fields: no answer grows by that."""
    first: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        first.setdefault(tuple(row.get(name) for name in names), row)
    return [*first.values()]


def partitions_once(topics: Sequence[dict[str, Any]], name: str, number: str) -> dict[str, list[dict[str, Any]]]:
    """By topic, the partitions that a request asks for, each once."""
    asked: dict[str, list[dict[str, Any]]] = {}
    for topic in topics:
        asked.setdefault(topic[name], []).extend(topic["partitions"])
    return {topic: once(partitions, number) for topic, partitions in asked.items()}


def found_anew(context: Context, topic_id: bytes) -> ServedTopic | Code:
    """The topic by a check that began after the request came.

    For a client that knows more than this gateway, as another one has told it, and where files are gone.
    """
    return found(context, None, topic_id, after=context.looks)


def found(context: Context, name: str | None, topic_id: bytes = NO_ID, *, after: int = -1) -> ServedTopic | Code:
    """The topic of that id, or of that name if there is no id. May wait until the catalog is checked."""
    by_id, name = topic_id != NO_ID, name or ""
    other = Code.UNKNOWN_TOPIC_ID if by_id else untold(context, name)
    try:
        if not by_id and (known := context.topics.names().get(name)) is not None and not may_read(context, known):
            return other  # it is not even loaded
        topic = context.topics.topic(topic_id if by_id else name, after=after)
    except LithifyError as error:
        context.served.failed(error)
        return Code.KAFKA_STORAGE_ERROR
    return other if topic is None or not may_read(context, topic.name) else topic


def log_of(context: Context, topic: ServedTopic | Code, partition: int, known_epoch: int) -> ServedLog | Code:
    """The log of a partition, for a client that knows it in an epoch; -1 is one that does not say which.

    A client of an earlier epoch has to ask what was truncated. One of a later epoch has heard of it from another
    gateway.
    """
    log = _log_at(topic, partition, known_epoch)
    if log is not Code.UNKNOWN_LEADER_EPOCH or isinstance(topic, Code):
        return log
    return _log_at(found_anew(context, topic.topic_id), partition, known_epoch)


def read_from(
    context: Context, topic: ServedTopic | Code, partition: int, known_epoch: int, read: Callable[[ServedLog], T]
) -> T | Code:
    """What `read` returns for the log of a partition, as `log_of` finds it, or why there is nothing.

    If it may be that only this version of the log does not have it, the newest one is read.
    """
    found_log = _read(context, log_of(context, topic, partition, known_epoch), read)
    if found_log not in _FOR_NOW or isinstance(topic, Code):
        return found_log
    newest = found_anew(context, topic.topic_id)
    return _read(context, log_of(context, newest, partition, known_epoch), read)


def _read(context: Context, log: ServedLog | Code, read: Callable[[ServedLog], T]) -> T | Code:
    if isinstance(log, Code):
        return log
    try:
        return read(log)
    except OffsetOutOfRangeError:
        return Code.OFFSET_OUT_OF_RANGE
    except VersionSweptError:
        return Code.OFFSET_NOT_AVAILABLE
    except LithifyError as error:
        context.served.failed(error)
        return Code.KAFKA_STORAGE_ERROR


def _log_at(topic: ServedTopic | Code, partition: int, known_epoch: int) -> ServedLog | Code:
    if isinstance(topic, Code):
        return topic
    if partition not in topic.partitions:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    log = topic.log(partition)
    if known_epoch in (-1, log.leader_epoch):
        return log
    return Code.FENCED_LEADER_EPOCH if known_epoch < log.leader_epoch else Code.UNKNOWN_LEADER_EPOCH
