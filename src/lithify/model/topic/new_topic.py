"""What a topic is created with."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.names import TopicName
from lithify.model.replicas.replica_of import ReplicaOf
from lithify.model.settings.topic_settings import TopicSettings


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that is to be created."""

    name: TopicName
    original_name: str
    settings: TopicSettings
    partitions: int
    created_ms: int
    own_settings: frozenset[str] | None = None
    """Those that it has of its own, by name; None are those that differ from the defaults (C56)."""
    replica: ReplicaOf | None = None
    """What it is a replica of from its first version on (C63)."""
