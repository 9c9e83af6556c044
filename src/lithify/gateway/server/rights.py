"""What a caller may do: the role of the operation, for the stream that it works on.

of a topic or a stream     the role for that stream
a list over all streams    what is in streams for which the caller has the role
of the whole warehouse     the role for all streams
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lithify.errors import LithifyError, UnknownGroupError, UnknownStreamError, UnknownTopicError
from lithify.gateway.access.callers import Caller, Scope, caller_of, require
from lithify.gateway.operations.operation import Operation
from lithify.gateway.server.live.listed import ListedTopics
from lithify.model.access.roles import ALL, Role
from lithify.model.names import parse_stream, parse_topic
from lithify.reports.overview import CatalogOverview
from lithify.reports.quarantine import QuarantineReport
from lithify.reports.streams import StreamInfo

LISTED = "GET /api/v1/topics lists those that you may see"
MaySee = Callable[[str], bool]
"""Whether a stream, by its stored name, may be seen."""


def check_rights(scope: Scope, operation: Operation, given: Mapping[str, Any]) -> Caller:
    """Who sends the request. Raises `AccessDeniedError` if it lacks a role, or what names that are wrong raise.

    `given` are all arguments, those in the path as well.
    """
    for stream in streams_of(operation, given):
        if stream == ALL and operation.by_stream:
            continue
        require(scope, operation.role, stream)
    return caller_of(scope)


def streams_of(operation: Operation, given: Mapping[str, Any]) -> tuple[str, ...]:
    """The streams that it works on, by their stored names; `*` if it is not about one."""
    streams = [parse_stream(given[name]) for name in operation.streams if given.get(name) is not None]
    topics = [parse_topic(given[name]) for name in operation.topics if given.get(name) is not None]
    return (*streams, *(topic.name.stream for topic in topics)) or (ALL,)


def visible(operation: Operation, result: Any, caller: Caller) -> Any:
    """What the caller may see of what a list over all streams returned."""
    if not operation.by_stream or caller.may(operation.role):
        return result

    def may_see(stream: str) -> bool:
        return caller.may(operation.role, stream)

    if isinstance(result, ListedTopics):
        return result.of_streams(may_see)
    if isinstance(result, CatalogOverview):
        return replace(result, topics=_of_topics(result.topics, may_see), cleaners=None, cleaner_rates=None)
    if isinstance(result, QuarantineReport):
        logs, unreadable = (_of_topics(logs, may_see) for logs in (result.logs, result.unreadable))
        return replace(result, logs=logs, unreadable=unreadable)
    return _of_topics(result, may_see)


def without_names(error: LithifyError, scope: Scope) -> LithifyError:
    """An error for who sends the request, without a hint at others that it may not see."""
    names = isinstance(error, UnknownTopicError | UnknownStreamError | UnknownGroupError)
    if names and not caller_of(scope).may(Role.LOOK):
        error.hint = LISTED
    return error


def _of_topics(items: Any, may_see: MaySee) -> tuple[Any, ...]:
    return tuple(one for one in items if may_see(_stream(one)))


def _stream(item: Any) -> str:
    if isinstance(item, str):
        return topic_stream(item)
    return parse_stream(item.stream) if isinstance(item, StreamInfo) else topic_stream(item.topic)


def topic_stream(topic: str | None) -> str:
    """The stored name of the stream of a topic; `*` for none."""
    return ALL if topic is None else parse_topic(topic).name.stream
