"""When the positions of the source's groups are copied, and what becomes of it (C68).

    every SYNC_MS     tokens of all topics in which a group has a position: one query at the source, one at the target
                      another token of either ─► a pass is due
    pass              positions read ─► the copy ─► positions stored (`service/replica/replica_positions.py`)

They come with every copy of a topic that names groups, as its rounds drop what these have read (C61, C62).

What fails neither delays nor fails a copy: it is reported, noted, and tried again with the next tokens. If a database
of the target is away, the wait for it happens once for each check of the tokens, not for every topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from lithify.daemons.outages import GROUPS
from lithify.daemons.replicas.context import OpenGroups, Place
from lithify.daemons.replicas.notes import Key
from lithify.daemons.replicas.reporter import ReplicaReporter
from lithify.errors import LithifyError, RefusedError, UnusableEnvironmentError
from lithify.errors.defects import as_lithify_error
from lithify.model.groups.copies import at_replica
from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.topic.state import TopicState
from lithify.ports.groups import PositionToken
from lithify.ports.store import LogStore
from lithify.reports.replicas.status import ReplicaStatus
from lithify.service.replica.replica_positions import ReadPositions, load_between, read_positions, store_positions

SYNC_MS = 30_000
"""Between two checks of the tokens of positions, while a definition wants them copied."""


BothTokens = tuple[PositionToken | None, PositionToken | None]
"""Of a topic at the source, and at its replica."""


@dataclass(frozen=True, slots=True)
class PositionTokens:
    """The tokens of the source, and of a target, as of one look; a later look has a higher number."""

    number: int
    of: Mapping[TopicName, PositionToken]
    there: Mapping[TopicName, PositionToken] = field(default_factory=dict)

    def both(self, name: TopicName) -> BothTokens:
        return self.of.get(name), self.there.get(name)


class TokensOfSource:
    """What a daemon knows of the positions at the source. For the thread that looks."""

    def __init__(self, open_groups: OpenGroups, monotonic_ms: Callable[[], int], reporter: ReplicaReporter) -> None:
        self._open_groups, self._monotonic_ms, self._reporter = open_groups, monotonic_ms, reporter
        self._tokens: PositionTokens | None = None
        self._tried_ms: int | None = None
        self.failed = False
        """Whether the last look could not read them."""

    def look(self, definitions: Iterable[ReplicaDefinition], *, now: bool) -> PositionTokens | None:
        """The tokens, read again after `SYNC_MS` or `now`; None if no definition wants them, or none are known."""
        if not any(definition.sync_groups for definition in definitions):
            return None
        now_ms, known = self._monotonic_ms(), self._tokens
        if not now and self._tried_ms is not None and now_ms - self._tried_ms < SYNC_MS:
            return known
        self._tried_ms = now_ms
        try:
            self._tokens = PositionTokens(1 if known is None else known.number + 1, self._open_groups().tokens())
            self.failed = False
            self._reporter.well(GROUPS)
        except Exception as error:
            self.failed = True
            self._reporter.outage(GROUPS, as_lithify_error(error, "the committed positions"))
        return self._tokens


@dataclass(slots=True)
class TargetGroups:
    """What a worker knows of the positions at its target. For several threads."""

    _done: dict[Key, tuple[int, BothTokens, bool]] = field(default_factory=dict)
    """By topic, the tokens with which its last pass began, and whether nothing was left for a later one."""
    _looked: PositionTokens | None = None
    """The tokens of the last check, with the target's."""
    _failed: tuple[int, LithifyError] | None = None
    """With which tokens the database failed."""
    _lock: Lock = field(default_factory=Lock)

    def look(self, tokens: PositionTokens, place: Place) -> PositionTokens:
        """The source's tokens with the target's, which are read once for each check. For one thread.

        If they cannot be read they count as unchanged, and no pass of this check sends another request to the database.
        """
        looked = self._looked
        if looked is not None and looked.number == tokens.number:
            return looked
        try:
            there = place.groups().tokens() if place.exists() else {}
        except Exception as error:
            there = {} if looked is None else looked.there
            self.failed(tokens, as_lithify_error(error, "the committed positions"))
        self._looked = replace(tokens, there=there)
        return self._looked

    def is_due(self, key: Key, tokens: PositionTokens) -> bool:
        """Whether the positions of a topic are to be copied."""
        with self._lock:
            done = self._done.get(key)
        if done is None:
            return True
        number, both, is_complete = done
        return number < tokens.number and not (is_complete and both == tokens.both(key[1]))

    def note(self, key: Key, tokens: PositionTokens, *, is_complete: bool) -> None:
        with self._lock:
            self._done[key] = tokens.number, tokens.both(key[1]), is_complete

    def failed(self, tokens: PositionTokens, error: LithifyError) -> None:
        """What it said to one pass, or to the look, it says to the others; an error of one topic is its own."""
        if isinstance(error, UnusableEnvironmentError | RefusedError):
            with self._lock:
                self._failed = tokens.number, error

    def check(self, tokens: PositionTokens) -> None:
        """Raises the error that another topic had with these tokens."""
        with self._lock:
            failed = self._failed
        if failed is not None and failed[0] == tokens.number:
            raise failed[1]

    def keep(self, wanted: Iterable[Key]) -> None:
        """Forgets the topics that no replica has any more."""
        with self._lock:
            self._done = {key: self._done[key] for key in wanted if key in self._done}


class PositionsPass:
    """The positions of one topic, in one pass over it. Raises nothing of its own: `error` is what failed."""

    def __init__(
        self, source: OpenGroups, place: Place, key: Key, tokens: PositionTokens, target: TargetGroups
    ) -> None:
        self._source, self._place, self._key = source, place, key
        self._tokens, self._target = tokens, target
        self._read: ReadPositions | None = None
        self.is_due = target.is_due(key, tokens)
        """Whether they are to be copied even if the topic is as it was."""
        self.error: LithifyError | None = None

    @property
    def is_copied(self) -> bool:
        """Whether this pass copies them."""
        return self._read is not None or self.error is not None

    def load(self, store: LogStore, name: TopicName) -> TopicState:
        """The version of the source to copy, read with the positions that belong to it, if they are to be copied."""
        self._read = self.error = None
        state = store.load(name)
        if not (self.is_due or state.settings.named_groups):
            return state
        try:
            self._target.check(self._tokens)
            state, self._read = load_between(store, state, self._do_read)
        except Exception as error:
            self._failed(error)
            return store.load(name)
        return state

    def store(self) -> None:
        """After the copy."""
        if self._read is None:
            return
        try:
            done = store_positions(self._read, self._place.warehouse, self._place.groups())
            # What it has written gives the target another token: a pass that finds all of it there says which.
            self._target.note(self._key, self._tokens, is_complete=done.is_complete and not done.changed)
        except Exception as error:
            self._failed(error)

    def _do_read(self) -> ReadPositions:
        there = self._place.groups() if self._place.exists() else None
        return read_positions(self._source(), there, self._key[1])

    def _failed(self, error: Exception) -> None:
        self.error = as_lithify_error(error, f"the committed positions in {self._key[1]}")
        self._target.failed(self._tokens, self.error)
        self._target.note(self._key, self._tokens, is_complete=False)


def with_positions(
    status: ReplicaStatus, source: OpenGroups, target: OpenGroups, theirs: TopicState, ours: TopicState
) -> ReplicaStatus:
    """The status of a topic with how many positions the replica has as its source does, as they are now."""
    try:
        wanted = {(p.group, p.log): p for p in source().positions(topic=theirs.name)}
        stored = {(p.group, p.log): p for p in target().positions(topic=ours.name)}
    except Exception as error:
        failed = as_lithify_error(error, f"the committed positions in {theirs.name}")
        return status if status.positions_error is not None else replace(status, positions_error=str(failed))
    behind = sum(at_replica(p, theirs.identity, ours) != stored.get(key) for key, p in wanted.items())
    return replace(status, positions=len(wanted), positions_behind=behind)
