"""One watch over the topics of a catalog, for cleaners and `status`: it reads as little as it can (C21, C28, C50).

    change token as before, nothing due by the clock  ─► skipped, nothing is read
    another token, or its time has come               ─► the state: one metadata read
    groups that the topic names have read further     ─► the state (C61, C62)
    the state says that a log may be due              ─► the manifests of that log
                                                             │
    watcher  ◄── `AssessedTopic`, or why there is none ──────┘
             ──► `Finding`: the watcher's result for the topic, and when to look again

So a check of an idle catalog reads at most the metadata of each topic. In a catalog in a database it is a
single query, and one more for the positions of groups if topics name any. Topics are read in parallel. An
error with one topic does not stop the check of the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from lithify.errors import LithifyError, UnknownTopicError, UnknownVersionError
from lithify.errors.defects import as_lithify_error
from lithify.model.groups.positions import Position
from lithify.model.groups.reads import groups_of, waiting_for_groups
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.groups import GroupPositions, NoGroups
from lithify.ports.store import LogStore
from lithify.service.group_reads import PositionsOfLook
from lithify.service.look.assessed_topic import AssessedTopic, Segments, SharedTopics, assess_topic
from lithify.waits.parallel import parallel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding(Generic[T]):
    """A watcher's result for a topic."""

    value: T
    look_at_ms: int | None
    """When to look again even without a commit; None is never."""
    despite_commits: bool = False
    """Whether a commit does not make that earlier."""
    topic: AssessedTopic | None = None
    """Set by watchers that keep it in memory: until the next commit it is assessed again without a read."""


class Watcher(Protocol[T]):
    """Gets the topics of a look, from several threads at once."""

    def finding(self, topic: AssessedTopic, now_ms: int) -> Finding[T]:
        """The finding for a topic that was read. An exception goes to `failed`."""
        ...

    def failed(self, name: TopicName, error: LithifyError, now_ms: int) -> Finding[T]:
        """The finding for a topic that could not be read."""
        ...


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A topic at its last look. Without a version it could not be read."""

    name: TopicName
    token: str | None
    looked_ms: int
    finding: Finding[T]
    version: int = 0
    history: int = 0
    """Which topic it is, and by which commits: a restored catalog gives the numbers of versions a second time."""
    groups: frozenset[str] = frozenset()
    """The groups that it names."""
    waiting: frozenset[int] = frozenset()
    """The partitions in which these may release something, when they read further."""
    positions: tuple[Position, ...] = ()
    """Theirs in these partitions."""

    def rests(self, now_ms: int) -> bool:
        """Whether nothing is due by the clock yet; False if the clock went back."""
        look_at_ms = self.finding.look_at_ms
        return self.looked_ms <= now_ms and (look_at_ms is None or now_ms < look_at_ms)

    def is_current(self, token: str | None, positions: PositionsOfLook, now_ms: int) -> bool:
        """Whether there is no reason to check the topic."""
        if not self.rests(now_ms) or self.finding.despite_commits:
            return self.rests(now_ms)
        return self.is_at(token) and self.is_read_up_to(positions)

    def is_read_up_to(self, positions: PositionsOfLook) -> bool:
        """Whether no group that it names has committed a position since that may release something."""
        return _of_partitions(positions.of(self.name, self.groups), self.waiting) == self.positions

    def is_at(self, token: str | None) -> bool:
        """Whether there was no commit since the last look."""
        return token is not None and token == self.token


@dataclass(frozen=True, slots=True)
class Reads:
    """The numbers of reads of one look."""

    metadata: int
    """Topics whose metadata was read."""
    manifests: int
    """Topics whose manifests were read."""


@dataclass(slots=True)
class CatalogWatch(Generic[T]):
    """Keeps the finding for each topic. Only one thread may check topics at any time."""

    store: LogStore
    watcher: Watcher[T]
    known: dict[TopicName, Known[T]] = field(default_factory=dict)
    steps: int = 0
    """Topics checked so far, in all rounds of checks; it shows that a long one makes progress."""
    groups: GroupPositions = field(default_factory=NoGroups)
    groups_error: LithifyError | None = None
    """Why the positions of groups could not be read at the last look."""
    shared: SharedTopics | None = None
    """What other watches of this process have read too."""

    def look(self, now_ms: int) -> Reads:
        """Checks every topic. Raises `WarehouseError` if the catalog cannot be reached."""
        tokens = dict(self.store.change_tokens())
        before = {name: known for name, known in self.known.items() if name in tokens}
        positions = PositionsOfLook(self.groups, self.store)
        positions.ask(group for known in before.values() for group in known.groups)
        seen = {name: known for name, known in before.items() if known.is_current(tokens[name], positions, now_ms)}

        def look_at(name: TopicName) -> tuple[TopicName, Known[T] | None, bool]:
            return name, *self._look_at(name, tokens[name], positions, now_ms)

        opened = 0
        others = [name for name in tokens if name not in seen]
        for name, known, was_opened in parallel(look_at, others, self.store.at_once):
            self.steps += 1
            opened += was_opened
            if known is not None:
                seen[name] = known
        self.known, self.groups_error = seen, positions.error
        if self.shared is not None:
            self.shared.keep(tokens.keys())
        return Reads(len(others), opened)

    def replace_finding(self, name: TopicName, finding: Finding[T], now_ms: int) -> None:
        """Replaces the finding for a topic. Not to be called during a look."""
        known = self.known.get(name)
        if known is not None:
            self.known[name] = replace(known, looked_ms=now_ms, finding=finding)

    def _look_at(
        self, name: TopicName, token: str | None, positions: PositionsOfLook, now_ms: int
    ) -> tuple[Known[T] | None, bool]:
        """The topic as it is now, None if it does not exist, and whether manifests were read."""
        before = self.known.get(name)
        try:
            if before is not None and before.finding.topic is not None and before.is_at(token):
                topic = before.finding.topic
                reads = positions.reads(topic.state) if before.groups else topic.reads
                if not topic.stands_at(reads, now_ms):
                    topic = assess_topic(self.store, topic.state, reads, now_ms, topic.segments)
            else:
                found = self._read(name, token, positions, now_ms)
                if found is None:
                    assert before is not None
                    return replace(before, token=token), False
                topic = found
            finding = self.watcher.finding(topic, now_ms)
        except UnknownTopicError:
            return None, False
        except Exception as error:
            return Known(name, token, now_ms, self.watcher.failed(name, as_lithify_error(error, name), now_ms)), False
        if before is not None and finding is before.finding:
            return before, False
        if before is not None and topic is before.finding.topic:
            rest = before.version, before.history, before.groups, before.waiting, before.positions
            return Known(name, token, now_ms, finding, *rest), False
        state, opened = topic.state, bool(topic.segments or topic.damaged)
        named, waiting = groups_of(state), waiting_for_groups(state)
        read = _of_partitions(positions.of(name, named), waiting)
        return Known(name, token, now_ms, finding, state.version, _history(state), named, waiting, read), opened

    def _read(
        self, name: TopicName, token: str | None, positions: PositionsOfLook, now_ms: int
    ) -> AssessedTopic | None:
        """The topic as it is now; None if it is as it was, and rests.

        Who reads a version again opens its manifests again: they may have been damaged since (C31).
        """
        before = self.known.get(name)
        again = before is not None and before.is_at(token)

        def read(shared: AssessedTopic | None) -> AssessedTopic | None:
            state = self._state(name, token) if shared is None else shared.state
            same = before is not None and (before.version, before.history) == (state.version, _history(state))
            if before is not None and same and before.rests(now_ms) and before.is_read_up_to(positions):
                return None
            return self._assessed(state, positions, now_ms, None if shared is None or again else shared.segments)

        return read(None) if self.shared is None else self.shared.read(name, token, read)

    def _state(self, name: TopicName, token: str | None) -> TopicState:
        return self.store.load_at(name, token) if self.shared is None else self.shared.state(self.store, name, token)

    def _assessed(
        self, state: TopicState, positions: PositionsOfLook, now_ms: int, known: Segments | None
    ) -> AssessedTopic:
        try:
            return assess_topic(self.store, state, positions.reads(state), now_ms, known)
        except UnknownVersionError:  # others have committed since, and that version is not kept
            newest = self.store.load(state.name)
            return assess_topic(self.store, newest, positions.reads(newest), now_ms)


def _history(state: TopicState) -> int:
    return hash((state.identity, tuple(log.run_ids for log in state.logs)))


def _of_partitions(positions: Iterable[Position], partitions: frozenset[int]) -> tuple[Position, ...]:
    return tuple(position for position in positions if position.log.partition in partitions)
