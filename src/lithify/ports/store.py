"""The versions of topics, and what stands behind one warehouse.

    service ──► LogStore      versions of topics: load, commit an edit, kept versions, documents
            ──► SegmentFiles  the data files that versions name (`ports/files.py`)
            ──► Clock         time, waiting and new ids (`ports/clock.py`)

The store applies an edit only to the version that it was made on, and raises `StaleVersionError`
otherwise. It raises `CommitUnknownError` when it cannot decide. Only `service/commit.py` calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.model.stored_file import Closing, NamedFiles, OtherCommit, StoredFile
from lithify.model.topic.edit import KeptVersion, TopicEdit
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.clock import Clock
from lithify.ports.documents import Documents
from lithify.ports.files import SegmentFiles
from lithify.ports.groups import GroupPositions, Groups, NoGroups
from lithify.ports.streams import Streams

if TYPE_CHECKING:
    from lithify.ports.engine import RewriteEngine
    from lithify.ports.inspector import Inspector


class StaleVersionError(Exception):
    """The topic has moved on from the version that the edit was made on: load and decide again."""


class CommitUnknownError(Exception):
    """The commit was sent and its answer lost; it may or may not have landed."""


class LogStore(Documents, Streams, Protocol):
    """Topics and their versions, the documents beside them, and the streams that they are in."""

    @property
    def where(self) -> str:
        """The warehouse, as errors name it."""
        ...

    @property
    def at_once(self) -> int:
        """How many calls are worth having under way: several where each of them waits for other machines."""
        ...

    def check_is_there(self) -> None:
        """Raises `WarehouseError` if there is no warehouse yet, or it cannot be reached."""
        ...

    def create_warehouse(self) -> None:
        """Creates the warehouse without topics, if there is none yet. Raises `WarehouseError`."""
        ...

    def create_topic(self, new: NewTopic) -> TopicState:
        """Raises `TopicExistsError`."""
        ...

    def drop_topic(self, name: TopicName) -> tuple[str, ...]:
        """Forgets the topic and deletes its files; returns paths in its folder that are not its own, which remain.

        A topic that is recreated meanwhile keeps its files. Raises `UnknownTopicError`, `RefusedError` where
        `other_commit` finds one, or `ConflictError`.
        """
        ...

    def topics(self) -> tuple[TopicName, ...]: ...

    def change_tokens(self) -> Iterator[tuple[TopicName, str | None]]:
        """Every name under which a topic may be, and a token that every commit changes; None if only `load` can tell.

        For checks of many topics: it opens no topic, so a name may turn out not to be a topic.
        """
        ...

    def load(self, name: TopicName) -> TopicState:
        """The newest version: one metadata read. Raises `UnknownTopicError`."""
        ...

    def load_at(self, name: TopicName, token: str | None) -> TopicState:
        """The newest version, as of its token: what `load` does, with less work, for callers that read many."""
        ...

    def load_version(self, name: TopicName, version: int) -> TopicState:
        """A retained version, or the newest. Raises `UnknownTopicError` or `UnknownVersionError`."""
        ...

    def segments(self, state: TopicState, partitions: Sequence[int] | None = None) -> tuple[Segment, ...]:
        """The segments that this version names, by partition and offset: opens manifests."""
        ...

    def view(self, state: TopicState, partitions: Sequence[int] | None = None) -> tuple[Segment, ...]:
        """The segments of the compacted views of this version, by partition and offset (C33).

        Raises `DamagedError` if a log should have a view and there is none (C8).
        """
        ...

    def commit(self, state: TopicState, edit: TopicEdit) -> TopicState:
        """Applies `edit` to `state`, or raises `StaleVersionError` or `CommitUnknownError`."""
        ...

    def commit_lock(self, name: TopicName) -> AbstractContextManager[None]:
        """An advisory lock that lets committers take turns; for progress only, never for safety."""
        ...

    def versions(self, name: TopicName) -> tuple[KeptVersion, ...]:
        """Retained versions, newest first (`versions.kept`)."""
        ...

    def report_ids(self, name: TopicName) -> tuple[str, ...]:
        """Ids of the reports of committed rounds, newest first, at most `REPORTS_KEPT` (C42)."""
        ...

    def clear_file_cache(self) -> None:
        """What was read before is read again from now on, not from memory: for a proof of what is stored."""
        ...

    def stored_files(self, state: TopicState) -> Iterator[StoredFile]:
        """Every file in the topic's folder, also of other programs."""
        ...

    def named_files(self, name: TopicName) -> NamedFiles:
        """Paths of all files that the metadata names, as it is now: of data, metadata and documents.

        A file counts as named if the newest version or a kept one needs it. Paths are spelled as in
        `stored_files`.
        """
        ...

    def other_commit(self, state: TopicState, stored: Sequence[StoredFile], named: NamedFiles) -> OtherCommit | None:
        """Whether the folder has commits that its catalog does not have: then nothing in it may be deleted (C45).

        `named` was asked for after the folder was listed.
        """
        ...

    def note_named(self, state: TopicState, stored: Sequence[StoredFile], named: NamedFiles, now_ms: int) -> None:
        """Remembers which of the stored files were `named`, where no commit tells when it stops naming them.

        `now_ms` is a time after `named` was asked for, however long ago that is by now.
        """
        ...

    def closings(self, state: TopicState, stored: Sequence[StoredFile], now_ms: int) -> Mapping[str, Closing]:
        """By path of a file that nothing names any more, since when that is so, as far as is known (C6)."""
        ...

    def delete_files(self, state: TopicState, paths: Sequence[str]) -> None:
        """Deletes files of the topic's folder. Only `service/change/sweep.py` calls it."""
        ...


@dataclass(frozen=True, slots=True)
class Doubles:
    """What a warehouse in memory has in the place of Spark and of a database (`lithify.testing`)."""

    engine: RewriteEngine
    inspector: Inspector
    groups: Groups


@dataclass(frozen=True, slots=True)
class Warehouse:
    """What stands behind one warehouse: its topics, their data files, a clock, and how far groups have read."""

    store: LogStore
    files: SegmentFiles
    clock: Clock
    groups: GroupPositions = field(default_factory=NoGroups)
    doubles: Doubles | None = None
