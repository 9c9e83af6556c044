"""What is left of a topic whose catalog entry or metadata is lost: the input of `repair`.

><folder>/metadata/00007-….metadata.json    a version, if it can be read and no other program changed it
<folder>/data/…parquet                     segments, named by such a version or by none
><folder>/lithify/versions/….json           a closed version: its state, and segments no longer named
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lithify.model.names import TopicName
from lithify.model.replicas.replica_of import ReplicaOf
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.sources.origin import OWN, Origin
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState


class Entry(StrEnum):
    """What the catalog has under the topic's name."""

    GONE = "gone"
    DAMAGED = "damaged"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """One metadata file of the table. `number` counts the commits, by the file's name."""

    path: str
    number: int
    state: TopicState | None = None
    problem: str = ""
    """Why it is not a version that Lithify wrote. It may have a state nevertheless, if the manifests are lost."""
    claims: int | None = None
    """The version that it says its state is of, whatever else is wrong with it."""
    foreign: tuple[str, ...] = ()
    """Commits of other programs in it."""
    unkept: bool = False
    """Its problem is only that a retained version cannot be read any more: the newest one is whole."""

    @property
    def whole(self) -> bool:
        return self.state is not None and not self.problem


@dataclass(frozen=True, slots=True)
class ClosedState:
    """The topic by the newest record of a closed version, or by metadata whose manifests are lost."""

    version: int
    settings: TopicSettings
    logs: tuple[LogState, ...]
    own_settings: frozenset[str] = frozenset()
    origin: Origin = OWN
    replica: ReplicaOf | None = None


@dataclass(frozen=True, slots=True)
class Remains:
    """A topic's folder, as found. `files` are the newest first, down to the newest that is intact."""

    location: str
    name: TopicName | None
    entry: Entry = Entry.GONE
    entry_problem: str = ""
    """What is wrong with the catalog's entry."""
    current: str = ""
    """The metadata file that the catalog names, if it has an entry."""
    deleted: bool = False
    """A deletion was running."""
    files: tuple[MetadataFile, ...] = ()
    identities: tuple[str, ...] = ()
    """Identities of all tables that had the folder, by their metadata."""
    named: tuple[Segment, ...] = ()
    """The segments of the newest intact version."""
    view: tuple[Segment, ...] = ()
    """The segments of its compacted views."""
    missing: tuple[str, ...] = ()
    """Files of them that are missing."""
    missing_masks: frozenset[str] = frozenset()
    """Missing files that are masks: their segments have all records again."""
    unnamed: tuple[Segment, ...] = ()
    """Segments in the folder that it does not name, as far as they may matter."""
    masked: tuple[Segment, ...] = ()
    """Segments with masks that it does not name either: one for each mask."""
    certain: frozenset[str] = frozenset()
    """The masks that a version certainly had, and that no later commit may have dropped, by such records."""
    unreadable: tuple[str, ...] = ()
    """Data files and masks that are damaged."""
    closed: frozenset[str] = frozenset()
    """Data files and masks that a commit has certainly stopped naming, by records of closed versions."""
    last_closed: ClosedState | None = None

    @property
    def newest(self) -> MetadataFile | None:
        """The newest intact version."""
        return next((file for file in self.files if file.whole), None)
