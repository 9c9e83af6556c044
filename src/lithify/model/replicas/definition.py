"""What is to be replicated: a topic, or all topics of a stream, into another warehouse.

    replica/orders-to-backup/default/orders@scope     the lease of one topic of a replica, which one daemon copies

The scope is the source warehouse's (`WarehouseScope`): replicas of several warehouses may share a database.
A name and parts of a topic's name have no '/', so every name of a lease has one meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lithify.errors import InvalidNameError
from lithify.model.names import MAX_NAME_LENGTH, TopicName, original_stream

_NAME = re.compile(r"[A-Za-z0-9._%][A-Za-z0-9._%-]*")
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ReplicaDefinition:
    """One replica as it was requested. `topic` is None for all topics of the stream, later ones included."""

    name: str
    scope: str
    stream: str
    topic: str | None
    target: str
    """The warehouse that gets the copies, as it is opened: an absolute path, or the name of a catalog."""
    target_scope: str
    throttle_bytes: int | None
    """Bytes per second of all its copies together; None is unlimited."""
    paused: bool
    created_ms: int
    sync_groups: bool = False
    """Whether the positions of the source's groups are copied too (C68)."""
    compact: bool = False
    """Whether its topics compact by themselves, where their sources do not (C67)."""

    @property
    def what(self) -> str:
        """The stream or topic, as its own system writes it."""
        if self.topic is None:
            return original_stream(self.stream)
        return str(TopicName(self.stream, self.topic))

    def covers(self, name: TopicName) -> bool:
        """Whether it copies that topic."""
        return self.stream == name.stream and self.topic in (None, name.topic)

    def overlaps(self, other: ReplicaDefinition) -> bool:
        """Whether a topic could be copied by both."""
        return self.stream == other.stream and (None in (self.topic, other.topic) or self.topic == other.topic)

    def is_as(self, other: ReplicaDefinition | None) -> bool:
        """Whether a copy that was begun for this one may continue for the other: it has the same source and target."""
        return other is not None and not other.paused and self._place == other._place

    @property
    def _place(self) -> tuple[object, ...]:
        return self.stream, self.topic, self.target, self.target_scope, self.created_ms

    def lease(self, name: TopicName) -> str:
        """The name of the lease of one of its topics."""
        return f"replica/{self.name}/{name.stream}/{name.topic}@{self.scope}"


def checked_replica(name: str) -> str:
    """`name` if it can be one of a replica. Raises `InvalidNameError`."""
    if len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        raise InvalidNameError(
            f"{name!r} is not a replica: it must be 1 to {MAX_NAME_LENGTH} letters, digits, '.', '_', '%' or '-', "
            "and must not begin with '-', like an option"
        )
    return name


def default_name(stream: str, topic: str | None, target: str) -> str:
    """`orders-to-backup`: the topic or stream, and the last part of the target."""
    where = target.rstrip("/").rpartition("/")[2]
    what = stream if topic is None else topic
    return _OTHER.sub("-", f"{what}-to-{where}").lstrip("-")[:MAX_NAME_LENGTH]
