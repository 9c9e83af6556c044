"""The brokers that clients are told of: this gateway, and others of the same lake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Node(Protocol):
    """A gateway as clients know one: a broker with an id, and where it listens."""

    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class Cluster(Protocol):
    """The gateways that live, in memory: the same for all of them."""

    @property
    def cluster_id(self) -> str: ...

    def gateways(self) -> tuple[Node, ...]:
        """All, in the order of their addresses."""
        ...

    def leader_of(self, topic_id: bytes, partition: int) -> Node: ...

    def coordinator_of(self, group: str) -> Node | None:
        """Who coordinates a group; None where there is no database for its positions."""
        ...


@dataclass(frozen=True, slots=True)
class ThisNode:
    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Alone:
    """A gateway without a database that it shares with others."""

    cluster_id: str
    node: ThisNode

    def gateways(self) -> tuple[Node, ...]:
        return (self.node,)

    def leader_of(self, topic_id: bytes, partition: int) -> Node:
        return self.node

    def coordinator_of(self, group: str) -> Node | None:
        return None
