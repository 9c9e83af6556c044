"""A lake that is served to Kafka's clients in this process, as a gateway does it, without its cleaner and its page."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from lithify.api.lake import Lake
from lithify.api.wiring import groups_of
from lithify.api.wiring.shared_place import kafka_gateways_of
from lithify.kafka_server.connections.connection import Connections
from lithify.kafka_server.connections.serving import KafkaServing
from lithify.kafka_server.groups.coordinator import Coordinator
from lithify.kafka_server.groups.ranking import Gateway
from lithify.kafka_server.groups.seat import Shared
from lithify.kafka_server.logs.served_topics import ServedTopics
from lithify.kafka_server.requests.cluster import Alone, Cluster, ThisNode
from lithify.kafka_server.requests.context import Caller, Known, Served
from lithify.kafka_server.requests.dispatch import Dispatch
from lithify.model.access.roles import ALL, Role
from lithify.model.access.scram import Mechanism
from support.kafka.wire import WireClient


@dataclass(frozen=True, slots=True)
class Everyone:
    """A caller who may read all streams but some. Without `roles` it may do all there."""

    name: str = "everyone"
    hidden: frozenset[str] = frozenset()
    roles: frozenset[Role] | None = frozenset({Role.CONSUME})
    token_id: str | None = None

    def may(self, role: Role, stream: str) -> bool:
        return role in Role.CONSUME.includes and stream not in self.hidden

    def streams(self, role: Role) -> frozenset[str]:
        return frozenset({"default", "shop"}) - self.hidden if self.hidden else frozenset({ALL})


@dataclass(slots=True)
class OpenLogins:
    """Callers by their tokens, and by their names; `unnamed` asks without one."""

    unnamed: Caller | None = field(default_factory=Everyone)
    callers: dict[str, Caller] = field(default_factory=dict)
    users: dict[str, Callable[[Mechanism], Known]] = field(default_factory=dict)
    nonce: str = "more"
    failures: int = 0
    failures_at_most: int = 1_000

    def without_token(self) -> Caller | None:
        return self.unnamed

    async def by_token(self, token: str) -> Caller | None:
        return self.callers.get(token)

    async def by_name(self, user: str, mechanism: Mechanism) -> Known | None:
        return self.users[user](mechanism) if user in self.users else None

    def new_nonce(self) -> str:
        return self.nonce

    def failed(self, address: str) -> bool:
        self.failures += 1
        return self.failures > self.failures_at_most

    async def is_valid(self, caller: Caller) -> bool:
        return caller is self.unnamed or caller in self.callers.values()


@dataclass(frozen=True, slots=True)
class ServedLake:
    """`closed` are the reasons for which connections were closed."""

    lake: Lake
    address: tuple[str, int]
    logins: OpenLogins
    closed: list[str]
    connections: set[Any]

    @property
    def bootstrap(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    def client(self) -> WireClient:
        return WireClient(self.address)


@contextmanager
def serving_kafka(
    lake: Lake,
    logins: OpenLogins | None = None,
    *,
    groups: Shared | None = None,
    tell: Callable[[str], None] = print,
) -> Iterator[ServedLake]:
    """Serves until the end of the block, groups too if what gateways share is given."""
    taken = socket.create_server(("127.0.0.1", 0), backlog=512)
    address = taken.getsockname()[:2]
    logins, closed, connections = logins or OpenLogins(), list[str](), set[Any]()
    topics = ServedTopics(lake.warehouse)
    made: Cluster = Alone("lithify", ThisNode(7, *address))
    coordinator: Coordinator | None = None
    if groups is not None:
        made = coordinator = Coordinator("lithify", Gateway(*address), groups, topics, lake.warehouse.clock, tell)
    with ThreadPoolExecutor(8) as executor, ThreadPoolExecutor(2) as large:
        dispatch = Dispatch(Served(topics, made, logins, executor, large, lambda _error: None, coordinator))
        told = Connections(dispatch, lambda _all: (), lambda _client, reason: closed.append(str(reason)), connections)
        serving = KafkaServing(taken, lambda: told, beside=coordinator or nullcontext())
        serving.start()
        try:
            yield ServedLake(lake, address, logins, closed, connections)
        finally:
            serving.close()
            topics.close()


@contextmanager
def serving_groups(lake: Lake) -> Iterator[ServedLake]:
    """With groups, in the database beside the catalog. Each caller may do all."""
    shared = Shared(groups_of(lake.warehouse, None, makes=True), kafka_gateways_of(lake.warehouse, None))
    with serving_kafka(lake, OpenLogins(Everyone(roles=None)), groups=shared) as one:
        yield one
