"""The state of a topic at one version: its settings and the states of its logs; and what it is created with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lithify.errors import UnknownTopicError
from lithify.model.names import TopicName
from lithify.model.replicas.replica_of import ReplicaOf
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.sources.origin import OWN, Origin
from lithify.model.topic.log import LogState


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic at one version. `version` grows with every commit; a recreated topic has another `identity`."""

    name: TopicName
    original_name: str
    identity: str
    version: int
    location: str
    settings: TopicSettings
    logs: tuple[LogState, ...]
    created_ms: int
    clock_ms: int | None = None
    """The latest trusted time of a commit (C46); None before the first, or in a format without it."""
    abandoned: tuple[str, ...] = ()
    """Runs whose uncommitted files a sweep deletes or has deleted, the latest last: they can no longer commit (C45)."""
    own_settings: frozenset[str] = frozenset()  # the others are inherited from the stream (C56)
    features: tuple[str, ...] = ()
    """What earlier versions of Lithify do not support of it, by name (`model/formats`)."""
    replica: ReplicaOf | None = None
    """What this topic is an exact copy of (C63); None of a topic of its own."""
    origin: Origin = OWN
    """Whether it is a copy of a topic of another system, whose offsets it has, or was one (C70)."""
    format_version: int = field(default=3, compare=False)
    """In which it is stored; of a topic without features the next commit makes it 3."""
    stored_as: object = field(default=None, compare=False, repr=False)
    """By what its store finds the segments of this very version, and no other code uses; None if it has to look."""

    @property
    def round_settings(self) -> TopicSettings:
        """The settings that rounds follow: of a replica that compacts by itself only its source cuts the log (C67)."""
        if self.replica is None or not self.replica.compacts:
            return self.settings
        return replace(self.settings, cleanup_policy="compact", backlog_trim_groups="")

    @property
    def takes_rounds(self) -> bool:
        """Whether rounds may change it: replicas take none, unless they compact by themselves (C64, C67)."""
        return self.replica is None or self.replica.compacts

    def log(self, partition: int) -> LogState:
        return self.logs[partition]

    @property
    def partitions(self) -> range:
        return range(len(self.logs))

    def check_partition(self, partition: int) -> None:
        """Raises `UnknownTopicError` if the topic has no such partition."""
        if partition not in self.partitions:
            hint = f"it has {len(self.logs)}, numbered from 0"
            raise UnknownTopicError(f"{self.name} has no partition {partition}", hint=hint)


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
