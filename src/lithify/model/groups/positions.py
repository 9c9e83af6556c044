"""Consumer groups: how far each has read the logs of a topic, and the names of what its members hold (C58).

    group/stream/topic/0@scope                 the lease of a partition, which one member reads
    group/stream/topic/member:ID@scope         a member's lease, which shows that it is there

The scope is a warehouse's (`WarehouseScope`): groups of several warehouses may share a database. A group
and parts of a topic's name have no '/', a partition and a member's id no '@', so every name has one meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lithify.model.cursor import Cursor
from lithify.model.names import LogId, TopicName

_PARTITION = re.compile(r"[0-9]{1,9}")
_MEMBER = "member:"


@dataclass(frozen=True, slots=True)
class Position:
    """A group has processed all of a log below the cursor's offset. `compacted` is which data it read (C33)."""

    group: str
    log: LogId
    cursor: Cursor
    compacted: bool
    committed_ms: int


@dataclass(frozen=True, slots=True, order=True)
class GroupTopic:
    """What one group reads: a topic of a warehouse."""

    scope: str
    group: str
    topic: TopicName

    @property
    def prefix(self) -> str:
        """What the names of all its leases begin with, and no lease of another group or topic."""
        return f"{self.group}/{self.topic.stream}/{self.topic.topic}/"

    def partition(self, number: int) -> str:
        """The name of the lease of a partition."""
        return f"{self.prefix}{number}@{self.scope}"

    def member(self, member_id: str) -> str:
        """The name of the lease of a member."""
        return f"{self.prefix}{_MEMBER}{member_id}@{self.scope}"

    def read(self, name: str) -> int | str | None:
        """The partition or the member's id in such a name; None for another topic, group or scope, or a later kind."""
        what, _, scope = name.removeprefix(self.prefix).partition("@")
        if not name.startswith(self.prefix) or scope != self.scope:
            return None
        if what.startswith(_MEMBER):
            return what.removeprefix(_MEMBER)
        return int(what) if _PARTITION.fullmatch(what) else None
