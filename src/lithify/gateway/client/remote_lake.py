"""A lake behind a gateway, with the methods of `lithify.api.Lake` and its topics, streams and groups.

    topic.truncate(0, 900)  ─►  BY_CALL[(TOPIC, "truncate")]  ─►  a request  ─►  report

A method that the table of operations does not have is refused. What is written out here are the methods that return
topics, streams and groups, and the few that need no request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lithify.errors import AccessDeniedError, RefusedError
from lithify.gateway.client.address import NO_MORE, Trust, address_of
from lithify.gateway.client.calls import Gateway, Listener, plain, refusal
from lithify.gateway.client.connection import ANSWER_S, Connection
from lithify.gateway.operations.operation import Target
from lithify.gateway.operations.table import BY_CALL
from lithify.model.names import checked_group, original_stream, parse_stream, parse_topic
from lithify.model.settings.topic_settings import TopicSettings, settings_of

if TYPE_CHECKING:
    from lithify.gateway.client.appending import Appender
    from lithify.gateway.client.reading import Lines


def remote_lake(url: str, trust: Trust = NO_MORE, *, within_s: float = ANSWER_S) -> RemoteLake:
    """The lake of the gateway at a URL, which answers in time. Sends nothing. Raises `RefusedError`."""
    return RemoteLake(Gateway(Connection(address_of(url, trust), within_s)), Target.LAKE, {})


@dataclass(frozen=True, slots=True, repr=False)
class _Remote:
    """An object of the Python API; `place` are its names in paths."""

    _gateway: Gateway
    _of: Target
    _place: Mapping[str, str]

    def __getattr__(self, call: str) -> Any:
        """The method of that name. Raises `RefusedError` where a gateway has none."""
        if call.startswith("_"):
            raise AttributeError(call)
        operation = BY_CALL.get((self._of, call))
        if operation is None:
            raise refusal(f"`{call}` of a {self._of.name.lower().replace('_', ' ')}")
        return partial(self._gateway.call, operation, self._place)

    def _call(self, call: str, *args: Any, **more: Any) -> Any:
        return self._gateway.call(BY_CALL[self._of, call], self._place, *args, **more)


class RemoteLake(_Remote):
    """A lake. Whether a topic, stream or group exists is found out by its first request."""

    __slots__ = ()

    def close(self) -> None:
        """Closes the connection that is kept."""
        self._gateway.connection.close()

    @property
    def where(self) -> str:
        """The place of its warehouse, as the gateway has it; its URL for those who may not see the whole warehouse."""
        try:
            return str(self.info().warehouse)
        except AccessDeniedError:
            return self._gateway.connection.address.url

    def check_is_there(self) -> None:
        """A gateway creates its warehouse when it begins."""

    def topic(self, name: str) -> RemoteTopic:
        return RemoteTopic(self._gateway, Target.TOPIC, {"topic": str(parse_topic(name).name)})

    def topics(self) -> tuple[RemoteTopic, ...]:
        return tuple(map(self.topic, self._call("topics")))

    def topic_infos(self, failed: Listener | None = None) -> Any:
        return self._call("topic_infos", failed=failed)

    def create_topic(self, name: str, *args: Any, **more: Any) -> RemoteTopic:
        self._call("create_topic", name, *args, **more)
        return self.topic(name)

    def stream(self, name: str) -> RemoteStream:
        return RemoteStream(self._gateway, Target.STREAM, {"stream": original_stream(parse_stream(name))})

    def create_stream(self, name: str, *args: Any, **more: Any) -> RemoteStream:
        self._call("create_stream", name, *args, **more)
        return self.stream(name)

    def group(self, name: str, *, coordination_url: str | None = None) -> RemoteGroup:
        _check_own_database(coordination_url)
        return RemoteGroup(self._gateway, Target.GROUP, {"group": checked_group(name)})

    def groups(self, *, coordination_url: str | None = None) -> Any:
        _check_own_database(coordination_url)
        return self._call("groups")

    def replicas(self, *, coordination_url: str | None = None) -> _Remote:
        _check_own_database(coordination_url)
        return _Remote(self._gateway, Target.REPLICAS, {})

    def standing_jobs(self, *, coordination_url: str | None = None) -> _Remote:
        _check_own_database(coordination_url)
        return _Remote(self._gateway, Target.STANDING_JOBS, {})

    def watch(self) -> _Watch:
        return _Watch(self)


@dataclass(frozen=True, slots=True)
class _Watch:
    """Asks for the status again and again."""

    lake: RemoteLake

    def overview(self, *, now_ms: int | None = None) -> Any:
        return self.lake.status(now_ms=now_ms)


@dataclass(frozen=True, slots=True)
class RemoteState:
    """What a topic's information tells of its newest version."""

    name: str
    version: int
    partitions: range
    location: str
    settings: TopicSettings


class RemoteTopic(_Remote):
    """A topic."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self._place["topic"]

    def load_or_create(self) -> RemoteState:
        """Its state, after what an append does first: it may create the topic, and is refused for a copy."""
        from lithify.gateway.client.appending import Sent
        from lithify.gateway.operations.records import LINES

        self.appender().append(Sent(b"", LINES))
        return self.state()

    def appender(self) -> Appender:
        from lithify.gateway.client.appending import Appender

        return Appender(self._gateway.connection, self._place)

    def lines(self, **given: Any) -> Lines:
        """Its records or its table as lines, by the parameters of HTTP."""
        from lithify.gateway.client.reading import Lines

        return Lines(self._gateway, self._place, {name: plain(one) for name, one in given.items() if one is not None})

    def state(self) -> RemoteState:
        info = self.info()
        return RemoteState(self.name, info.version, range(info.partitions), info.location, settings_of(info.config))


class RemoteStream(_Remote):
    """A stream."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self._place["stream"]

    def topics(self) -> tuple[RemoteTopic, ...]:
        lake = RemoteLake(self._gateway, Target.LAKE, {})
        return tuple(map(lake.topic, self._call("topics")))


class RemoteGroup(_Remote):
    """A consumer group."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self._place["group"]


def _check_own_database(coordination_url: str | None) -> None:
    if coordination_url is not None:
        raise RefusedError(
            "a gateway has its own database of leases and groups",
            hint="omit --coordination-url, and unset $LITHIFY_COORDINATION_URL",
        )
