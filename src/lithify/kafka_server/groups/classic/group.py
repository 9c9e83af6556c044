"""What the coordinator knows of one group of the classic protocol: frozen values, changed by the modules beside.

    Empty ──join──► PreparingRebalance ──all have joined──► CompletingRebalance ──the leader syncs──► Stable
      ▲                │  ▲    ▲                                 │                                      │
      └─ nobody left ──┘  │    └── one joins, leaves or is lost ─┘                                      │
                          └────────────── one joins anew, leaves or is lost ────────────────────────────┘

A request that has to wait is in its member, as a ticket of the caller's: a later step answers it. Times are ms of a
monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.shares import ID_BYTES, MEMBER_BYTES, Token, text_bytes

CONSUMERS = "consumer"
"""The protocol type of consumers; its metadata and assignments can be read."""


class Phase(StrEnum):
    """As DescribeGroups and ListGroups name them."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class Member:
    """A member. It is lost at `expires_ms` unless it is heard of, or waits for an answer and has waited before."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Names with metadata, the preferred one first."""
    expires_ms: int
    join: int | None = None
    """The ticket of its JoinGroup that waits."""
    sync: int | None = None
    """The ticket of its SyncGroup that waits."""
    assignment: bytes = b""
    is_new: bool = True
    """Whether no JoinGroup of it was answered: a client that gives up then cannot be told from one that waits."""
    token: Token = None
    """With which it has joined last."""
    reads: frozenset[str] = frozenset()
    """The topics of its subscription that there were then, and that its token may read."""

    @property
    def size(self) -> int:
        """In bytes of memory, about."""
        names = self.member_id, self.instance_id, self.client_id, self.client_host, *self.reads
        texts = (text for protocol in self.protocols for text in protocol)
        return MEMBER_BYTES + text_bytes(*names, *texts, self.assignment)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def is_lost(self, now_ms: int) -> bool:
        waits = self.join is not None or self.sync is not None
        return now_ms >= self.expires_ms and (self.is_new or not waits)

    def heard(self, now_ms: int) -> Member:
        return replace(self, expires_ms=now_ms + self.session_ms)


@dataclass(frozen=True, slots=True)
class Pending:
    """An id that was given out with a token, and not used yet."""

    member_id: str
    expires_ms: int
    token: Token = None

    @property
    def size(self) -> int:
        """In bytes of memory, about."""
        return ID_BYTES + text_bytes(self.member_id)


@dataclass(frozen=True, slots=True)
class Initial:
    """The first rebalance of an empty group waits a little, and again if others join meanwhile."""

    until_ms: int
    left_ms: int
    """How much longer it may be put off."""
    joined: bool = False
    """Whether others have joined since it began, or was put off."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group. `pending` are ids that were given out and not used yet."""

    phase: Phase = Phase.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: Mapping[str, Member] = field(default_factory=dict)
    pending: Mapping[str, Pending] = field(default_factory=dict)
    unsynced: frozenset[str] = frozenset()
    """Members of this generation that have not asked for their assignment yet."""
    initial: Initial | None = None
    until_ms: int | None = None
    """When the rebalance goes on without those who are missing: who have not joined, or have not synced."""

    @property
    def rebalance_ms(self) -> int:
        return max((member.rebalance_ms for member in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        return not self.pending and all(member.join is not None for member in self.members.values())

    @property
    def is_unused(self) -> bool:
        """Whether nothing is lost if it is forgotten."""
        return not self.members and not self.pending and self.phase in (Phase.EMPTY, Phase.DEAD)

    def member_of(self, instance_id: str | None) -> Member | None:
        """The static member of that name."""
        if instance_id is None:
            return None
        return next((member for member in self.members.values() if member.instance_id == instance_id), None)

    def with_members(self, changed: Iterable[Member]) -> Group:
        return replace(self, members={**self.members, **{member.member_id: member for member in changed}})

    def without(self, member_ids: Iterable[str]) -> Group:
        """Without these members and pending ids; the first of the others leads if the leader is gone."""
        gone = frozenset(member_ids)
        members = {name: member for name, member in self.members.items() if name not in gone}
        pending = {name: one for name, one in self.pending.items() if name not in gone}
        leader = next(iter(members), None) if self.leader in gone else self.leader
        return replace(self, members=members, pending=pending, leader=leader, unsynced=self.unsynced - gone)

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols can be among the others."""
        if self.phase is Phase.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        if self.protocol_type != protocol_type:
            return False
        return any(all(name in member.names for member in self.members.values()) for name in names)

    def chosen_protocol(self) -> str:
        """The one that most members prefer among those that all support."""
        common = frozenset.intersection(*(frozenset(member.names) for member in self.members.values()))
        votes: dict[str, int] = {}
        for member in self.members.values():
            vote = next(name for name in member.names if name in common)
            votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def check_member(self, member_id: str, instance_id: str | None) -> Code:
        """`NONE` for a member, which no later one of its name has replaced."""
        if instance_id is not None:
            known = self.member_of(instance_id)
            if known is None:
                return Code.UNKNOWN_MEMBER_ID
            if known.member_id != member_id:
                return Code.FENCED_INSTANCE_ID
        return Code.NONE if member_id in self.members else Code.UNKNOWN_MEMBER_ID


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to a JoinGroup. `members` is for the leader: ids, names of static ones, metadata."""

    error: Code
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class Synced:
    """The answer to a SyncGroup."""

    error: Code
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


Answers = tuple[tuple[int, Joined | Synced], ...]
"""By ticket. Every ticket gets one answer."""


@dataclass(frozen=True, slots=True)
class Step:
    """A group after something has happened, and which of the requests that wait are answered by that."""

    group: Group
    answers: Answers = ()

    def then(self, later: Step) -> Step:
        return Step(later.group, self.answers + later.answers)
