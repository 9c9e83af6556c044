"""What a handler knows beside its request: who asks, from where, and what is served."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from lithify.errors import LithifyError
from lithify.kafka_server.connections.answering import Address
from lithify.kafka_server.groups.coordinator import Coordinator
from lithify.kafka_server.logins.scram import Challenge
from lithify.kafka_server.logs.served_topics import ServedTopics
from lithify.kafka_server.requests.cluster import Cluster
from lithify.model.access.roles import Role
from lithify.model.access.scram import KeyPair, Mechanism

T = TypeVar("T")


class Caller(Protocol):
    """Who asks."""

    @property
    def name(self) -> str: ...

    @property
    def token_id(self) -> str | None:
        """None for who asks without a token."""
        ...

    def may(self, role: Role, stream: str) -> bool:
        """Whether it has the role for a stream, by its stored name."""
        ...

    def streams(self, role: Role) -> frozenset[str]:
        """The streams for which it has the role, by their stored names; with `*` all."""
        ...


@dataclass(frozen=True, slots=True)
class Known:
    """Who has a token, and what checks a proof by SCRAM; None for a token of a version without it."""

    caller: Caller
    keys: KeyPair | None


class Logins(Protocol):
    """Who may ask, by tokens. For one event loop."""

    def without_token(self) -> Caller | None:
        """Who asks without a login; None if all need one."""
        ...

    async def by_token(self, token: str) -> Caller | None:
        """Who has the token; None if it is not valid. Raises `CoordinationError` if that cannot be known."""
        ...

    async def by_name(self, user: str, mechanism: Mechanism) -> Known | None:
        """The valid token of that id; None if there is none. Raises `CoordinationError` if that cannot be known."""
        ...

    def new_nonce(self) -> str:
        """New and random, of printable characters without a comma."""
        ...

    def failed(self, address: str) -> bool:
        """Takes that a client has failed to say who it is. Whether that is too often for its address."""
        ...

    async def is_valid(self, caller: Caller) -> bool:
        """Whether its token is still valid. Raises `CoordinationError` if that cannot be known."""
        ...


@dataclass(slots=True)
class ClientSession:
    """One connection. `checked_s` is when its token was checked."""

    client: Address
    local: Address
    caller: Caller | None
    login: Challenge | str | None = None
    """How far a login is: the mechanism of SASL that it has named, then what it was sent."""
    has_logged_in: bool = False
    checked_s: float = 0.0

    @property
    def is_known(self) -> bool:
        return self.caller is not None

    @property
    def token_id(self) -> str | None:
        return None if self.caller is None else self.caller.token_id


@dataclass(frozen=True, slots=True)
class Served:
    """What a listener serves.

    `executor` has the threads in which files and databases are waited for. `large` has those for large requests and
    large answers; they are few, as each of them keeps all others from their work in Python.
    """

    topics: ServedTopics
    cluster: Cluster
    logins: Logins
    executor: Executor
    large: Executor
    failed: Callable[[LithifyError], None]
    """Gets why a topic or a log cannot be read, whose clients get an error code. Threads call it."""
    groups: Coordinator | None = None
    """None where there is no database for positions of groups."""


@dataclass(frozen=True, slots=True)
class Context:
    """Of one request. Only a client that is known gets to a handler that asks for `caller`."""

    served: Served
    session: ClientSession
    version: int
    client_id: str | None
    executor: Executor
    looks: int
    """So many checks of the catalog had begun before it. One that it causes serves all of its topics."""

    @property
    def topics(self) -> ServedTopics:
        return self.served.topics

    @property
    def coordinator(self) -> Coordinator | None:
        return self.served.groups

    @property
    def caller(self) -> Caller:
        assert self.session.caller is not None
        return self.session.caller

    @property
    def client_host(self) -> str:
        return self.session.client[0]

    async def work(self, function: Callable[[], T]) -> T:
        """Runs what may wait on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, function)


Handler = Callable[[Context, dict[str, Any]], Awaitable[dict[str, Any] | None]]
"""With None nothing is sent, as the client expects no answer."""


class LastAnswerError(Exception):
    """The connection is to be closed, for that reason, after this answer."""

    def __init__(self, reason: str, answer: dict[str, Any]) -> None:
        super().__init__(reason)
        self.answer = answer
