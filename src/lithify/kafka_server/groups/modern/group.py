"""What the coordinator knows of a group that it assigns itself (KIP-848): frozen values, without waiting requests.

    epoch     one higher when a member comes or goes, or what they subscribe to changes: a new assignment is the target
    member    gives up what is not in its target, says so, gets what is free, and then has the epoch of the group

A partition is in at most one member's `assigned` and `revoking`: so nobody gets what another one may still read. Times
are ms of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lithify.kafka_server.groups.classic.group import Phase
from lithify.kafka_server.groups.modern.assignor import NOTHING, Parts
from lithify.kafka_server.groups.shares import (
    MATCHED_BYTES,
    MEMBER_BYTES,
    PARTITION_BYTES,
    TOPIC_BYTES,
    Token,
    text_bytes,
)

Layout = Mapping[str, tuple[bytes, int]]
"""Of the topics that are served, by the name that clients know: id, and number of partitions."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A member, as of its last heartbeat."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_ms: int
    topics: frozenset[str]
    pattern: str | None
    matched: frozenset[str]
    """The topics that its pattern matches."""
    expires_ms: int
    epoch: int = 0
    before: int = -1
    """The epoch before: a client that has not got an answer still has that one."""
    assigned: Parts = NOTHING
    revoking: Parts = NOTHING
    """What it has to give up, and has not said that it has."""
    revoke_by_ms: int | None = None
    is_away: bool = False
    """Whether it is static, and has said that it comes back."""
    token: Token = None
    """With which it has come."""

    @property
    def size(self) -> int:
        """In bytes of memory, about, without what the members of a group have in common."""
        names = self.member_id, self.instance_id, self.rack_id, self.client_id, self.client_host, self.pattern
        return MEMBER_BYTES + text_bytes(*names, *self.topics) + MATCHED_BYTES * len(self.topics)

    @property
    def subscribed(self) -> frozenset[str]:
        return self.topics | self.matched


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A group. `target` is by member, and of the epoch."""

    epoch: int = 0
    members: Mapping[str, Consumer] = field(default_factory=dict)
    target: Mapping[str, Parts] = field(default_factory=dict)

    @property
    def phase(self) -> str:
        """As DescribeGroups and ListGroups name it."""
        if not self.members:
            return Phase.EMPTY
        settled = all(m.epoch == self.epoch and m.assigned == self.target[m.member_id] for m in self.members.values())
        return Phase.STABLE if settled else "Reconciling"

    @property
    def is_unused(self) -> bool:
        return not self.members

    @property
    def subscribed(self) -> frozenset[str]:
        return frozenset().union(*(member.subscribed for member in self.members.values()))

    def member_of(self, instance_id: str | None) -> Consumer | None:
        """The static member of that name."""
        if instance_id is None:
            return None
        return next((member for member in self.members.values() if member.instance_id == instance_id), None)

    def with_member(self, member: Consumer) -> ConsumerGroup:
        return replace(self, members={**self.members, member.member_id: member})

    def without(self, member_ids: Iterable[str]) -> ConsumerGroup:
        gone = frozenset(member_ids)
        members = {name: member for name, member in self.members.items() if name not in gone}
        target = {name: parts for name, parts in self.target.items() if name not in gone}
        return replace(self, members=members, target=target)

    def taken(self, member_id: str) -> Parts:
        """What other members have, or have not given up yet."""
        others = (m for m in self.members.values() if m.member_id != member_id)
        return frozenset().union(*(member.assigned | member.revoking for member in others))


def layout_bytes(layout: Layout) -> int:
    """The memory of a group's topics, about. Each partition is one member's."""
    return sum(TOPIC_BYTES + PARTITION_BYTES * count for _, count in layout.values())


def pattern_bytes(group: ConsumerGroup) -> int:
    """The memory of what the patterns of its members match, about."""
    return MATCHED_BYTES * sum({m.pattern: len(m.matched) for m in group.members.values() if m.pattern}.values())
