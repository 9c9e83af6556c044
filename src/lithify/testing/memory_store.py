"""The memory store: the executable specification of `LogStore`.

    topic ──► versions: 1, 2, 3, ...   each a whole state and its list of segments
              kept: those that a commit closed by removing segments, the newest `versions.kept`
              documents: by path, as text, so that only what JSON can say comes back

One lock guards everything, so a commit checks that its version is still the newest and adds the next one.
The store removes only what the port says is removed; everything is lost with the process. Both stores
pass one suite (tests/store).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.model.settings.inheritance import own_names
from lithify.model.stored_file import Closing, NamedFiles, StoredFile
from lithify.model.topic.edit import KeptVersion, TopicEdit
from lithify.model.topic.log import LogState
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.clock import Clock
from lithify.ports.documents import REPORTS_KEPT, DocumentKind
from lithify.ports.store import StaleVersionError, Warehouse
from lithify.rules.lifecycle.expiring import unexpired
from lithify.store.errors import check_removed, topic_exists, unknown_topic, unknown_version
from lithify.testing.memory_files import MemoryFiles
from lithify.testing.memory_streams import MemoryStreams
from lithify.testing.memory_versions import Version, edited, kept_after


@dataclass(slots=True)
class _Topic:
    versions: list[Version]
    kept: list[KeptVersion] = field(default_factory=list)
    report_ids: list[str] = field(default_factory=list)
    closings: dict[str, int] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)
    """By path."""

    @property
    def newest(self) -> Version:
        return self.versions[-1]


class MemoryStore(MemoryStreams):
    """`LogStore` in memory. `new_id` gives a topic its identity."""

    def __init__(self, new_id: Callable[[], str], files: MemoryFiles) -> None:
        super().__init__()
        self._new_id = new_id
        self._files = files
        self._topics: dict[TopicName, _Topic] = {}
        self._common_documents: dict[str, str] = {}
        self._all_versions: dict[tuple[str, int], Version] = {}

    @property
    def where(self) -> str:
        return "memory"

    @property
    def at_once(self) -> int:
        return 1

    def check_is_there(self) -> None:
        """None: it is there."""

    def create_warehouse(self) -> None:
        """None: it is there."""

    def create_topic(self, new: NewTopic) -> TopicState:
        """Raises `TopicExistsError`."""
        identity = self._new_id()
        state = TopicState(
            name=new.name,
            original_name=new.original_name,
            identity=identity,
            version=1,
            location=f"memory://{identity}",
            settings=new.settings,
            logs=tuple(LogState(partition) for partition in range(new.partitions)),
            created_ms=new.created_ms,
            own_settings=own_names(new.own_settings, new.settings),
            replica=new.replica,
        )
        with self._lock:
            if new.name in self._topics:
                raise topic_exists(new.name)
            self._topics[new.name] = _Topic([self._remembered(Version(state, ()))])
        return state

    def drop_topic(self, name: TopicName) -> tuple[str, ...]:
        """Raises `UnknownTopicError`."""
        with self._lock:
            location = self._topic(name).newest.state.location
            del self._topics[name]
        self._files.drop(location)
        return ()

    def topics(self) -> tuple[TopicName, ...]:
        with self._lock:
            return tuple(sorted(self._topics))

    def change_tokens(self) -> Iterator[tuple[TopicName, str | None]]:
        with self._lock:
            states = [topic.newest.state for topic in self._topics.values()]
        yield from ((state.name, f"{state.identity}/{state.version}") for state in states)

    def load(self, name: TopicName) -> TopicState:
        """Raises `UnknownTopicError`."""
        with self._lock:
            return self._topic(name).newest.state

    def load_at(self, name: TopicName, token: str | None) -> TopicState:
        """Raises what `load` raises."""
        return self.load(name)

    def load_version(self, name: TopicName, version: int) -> TopicState:
        """Raises `UnknownTopicError` or `UnknownVersionError`."""
        with self._lock:
            topic = self._topic(name)
            state = topic.newest.state
            if version == state.version:
                return state
            if version not in [kept.version for kept in topic.kept]:
                raise unknown_version(name, version, topic.kept, state.version)
            return self._all_versions[state.identity, version].state

    def segments(self, state: TopicState, partitions: Sequence[int] | None = None) -> tuple[Segment, ...]:
        """The segments of a state that came from this store, however old it is."""
        with self._lock:
            segments = self._all_versions[state.identity, state.version].segments
        return tuple(s for s in segments if partitions is None or s.partition in partitions)

    def view(self, state: TopicState, partitions: Sequence[int] | None = None) -> tuple[Segment, ...]:
        """The segments of the compacted views of a state that came from this store."""
        with self._lock:
            segments = self._all_versions[state.identity, state.version].view
        return tuple(s for s in segments if partitions is None or s.partition in partitions)

    def commit(self, state: TopicState, edit: TopicEdit) -> TopicState:
        """Raises `StaleVersionError`."""
        with self._lock:
            topic = self._topics.get(state.name)
            if topic is None or topic.newest.state.identity != state.identity:
                raise StaleVersionError(f"{state.name} was deleted")
            before = topic.newest
            if before.state != state:
                raise StaleVersionError(f"{state.name}: version {state.version} is not the newest")
            check_removed(edit, edit.remove, before.segments)
            check_removed(edit, edit.view_remove, before.view)
            after = edited(before, edit)
            topic.closings |= dict.fromkeys(before.sizes.keys() - after.sizes, edit.closed_at_ms)
            topic.closings = {path: edit.closing_time(ms) for path, ms in topic.closings.items()}
            dated = [replace(version, closed_ms=edit.closing_time(version.closed_ms)) for version in topic.kept]
            topic.kept = list(unexpired(dated, edit.expire_closed_before_ms))
            if edit.closes:
                topic.kept = kept_after(topic.kept, before, after, edit)[: after.state.settings.versions_kept]
            if edit.report_id is not None:
                topic.report_ids = [edit.report_id, *topic.report_ids][:REPORTS_KEPT]
            topic.versions.append(self._remembered(after))
            return after.state

    def commit_lock(self, name: TopicName) -> AbstractContextManager[None]:
        return nullcontext()

    def versions(self, name: TopicName) -> tuple[KeptVersion, ...]:
        """Newest first. Raises `UnknownTopicError`."""
        with self._lock:
            return tuple(self._topic(name).kept)

    def report_ids(self, name: TopicName) -> tuple[str, ...]:
        """Newest first. Raises `UnknownTopicError`."""
        with self._lock:
            return tuple(self._topic(name).report_ids)

    def get_document(self, topic: TopicState | None, kind: DocumentKind, key: str = "") -> Mapping[str, Any] | None:
        with self._lock:
            text = self._documents(topic).get(self.document_path(topic, kind, key))
        return None if text is None else json.loads(text)

    def put_document(
        self, topic: TopicState | None, kind: DocumentKind, content: Mapping[str, Any], key: str = ""
    ) -> None:
        """Raises `UnknownTopicError`."""
        with self._lock:
            self._documents(topic)[self.document_path(topic, kind, key)] = json.dumps(content)
        if topic is not None and kind is DocumentKind.HEARTBEAT:
            self._files.heartbeat(topic.location, key)

    def document_path(self, topic: TopicState | None, kind: DocumentKind, key: str = "") -> str:
        return "/".join(("memory:/" if topic is None else topic.location, kind, key)).rstrip("/")

    def clear_file_cache(self) -> None:
        """None: this store is in memory."""

    def stored_files(self, state: TopicState) -> Iterator[StoredFile]:
        """The data files of the topic, and heartbeats of runs; nothing else is a file here."""
        yield from self._files.stored(state.location)

    def named_files(self, name: TopicName) -> NamedFiles:
        """Data files of the newest version and of kept ones. Raises `UnknownTopicError`."""
        with self._lock:
            topic = self._topic(name)
            identity = topic.newest.state.identity
            kept = (self._all_versions[identity, version.version] for version in topic.kept)
            return NamedFiles(frozenset(topic.newest.sizes).union(*(version.sizes for version in kept)))

    def other_commit(self, state: TopicState, stored: Sequence[StoredFile], named: NamedFiles) -> None:
        """No commit is anywhere else."""

    def note_named(self, state: TopicState, stored: Sequence[StoredFile], named: NamedFiles, now_ms: int) -> None:
        """Nothing to note: in this store only commits close files."""

    def closings(self, state: TopicState, stored: Sequence[StoredFile], now_ms: int) -> Mapping[str, Closing]:
        with self._lock:
            return {path: Closing(closed_ms) for path, closed_ms in self._topic(state.name).closings.items()}

    def delete_files(self, state: TopicState, paths: Sequence[str]) -> None:
        self._files.delete(paths)

    def _documents(self, topic: TopicState | None) -> dict[str, str]:
        return self._common_documents if topic is None else self._topic(topic.name).documents

    def _topic(self, name: TopicName) -> _Topic:
        topic = self._topics.get(name)
        if topic is None:
            raise unknown_topic(name, self.where)
        return topic

    def _remembered(self, version: Version) -> Version:
        self._all_versions[version.state.identity, version.state.version] = version
        return version


class MemoryWarehouse:
    """A store and its files, new and empty. `now_ms` gives the time at which files are written."""

    def __init__(self, new_id: Callable[[], str], now_ms: Callable[[], int] = lambda: 0) -> None:
        self.files = MemoryFiles(now_ms)
        self.store = MemoryStore(new_id, self.files)

    def with_clock(self, clock: Clock) -> Warehouse:
        return Warehouse(self.store, self.files, clock)
