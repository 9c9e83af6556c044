"""Looks at all topics of a catalog, and reads as little as it can.

    mark as before, nothing due by the clock    ─► passed over, nothing is read
    mark is another, or time has come           ─► its state: one metadata read
    the state says it may be due                ─► its manifests, and what is known of failures

so a look at a catalog in which nothing happens reads at most the metadata of each topic, and where
the catalog is a database nothing but one query. What is remembered is one small entry for each topic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock

from lithify.cleaner.judge import Judge
from lithify.defects import as_lithify_error
from lithify.errors import Blame, LithifyError, UnknownTopicError, UnknownVersionError
from lithify.model.failure import LogFailure
from lithify.model.log import TopicState
from lithify.model.names import TopicName
from lithify.ports.store import Warehouse
from lithify.schedule.agenda import TopicWork
from lithify.schedule.backoff import after_failure
from lithify.schedule.idle import may_be_due_at_ms
from lithify.waits.parallel import parallel

JUDGED_FOR_MS = 60_000
"""So long what was found of a topic is good while it waits for its turn and nobody commits."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the last look at a topic has found."""

    mark: str | None
    looked_ms: int
    look_at_ms: int | None
    """When to look again even if nobody commits; None is never."""
    identity: str = ""
    version: int = 0
    work: TopicWork | None = None
    failure: LogFailure | None = None
    """Why it could not be read or worked on as a whole."""

    def rests(self, now_ms: int) -> bool:
        """Whether the clock makes nothing due yet; one that went back says nothing."""
        return self.looked_ms <= now_ms and (self.look_at_ms is None or now_ms < self.look_at_ms)


@dataclass(frozen=True, slots=True)
class Look:
    """What one look has found."""

    topics: int
    read: int
    """Topics whose metadata was read."""
    opened: int
    """Topics whose manifests were read."""
    work: tuple[TopicWork, ...]
    """Topics with a log that is due for a round, or for retention."""


@dataclass(slots=True)
class Looker:
    """Remembers what it has seen. One thread looks at a time; several may report what they found."""

    warehouse: Warehouse
    judge: Judge
    trouble: Callable[[TopicName | None, LithifyError], None]
    """Is told of a topic that cannot be read, each time that it is tried."""
    known: dict[TopicName, Known] = field(default_factory=dict)
    steps: int = 0
    """Topics looked at, in all looks: whether a look that takes long gets on."""
    _resting: dict[TopicName, tuple[int, LogFailure | None]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def look(self, now_ms: int) -> Look:
        """Looks at every topic. Raises `WarehouseError` where the catalog cannot be reached."""
        read = opened = 0
        seen: dict[TopicName, Known] = {}
        self._put_to_rest(now_ms)
        store = self.warehouse.store
        marks = dict(store.change_tokens())
        for name, mark in marks.items():
            before = self.known.get(name)
            if before is not None and before.rests(now_ms) and (before.failure or _unchanged(mark, before)):
                seen[name] = before

        def look_at(name: TopicName) -> tuple[TopicName, Known | None, bool]:
            return name, *self._look_at(name, marks[name], now_ms)

        unknown = [name for name in marks if name not in seen]
        for name, found, was_opened in parallel(look_at, unknown, store.at_once):
            self.steps += 1
            read += 1
            opened += was_opened
            if found is not None:
                seen[name] = found
        self.known = seen
        return Look(len(seen), read, opened, tuple(known.work for known in seen.values() if known.work is not None))

    def let_rest(self, name: TopicName, until_ms: int) -> None:
        """A topic that was due and had nothing to do is not looked at again for long, unless it changes."""
        with self._lock:
            self._resting[name] = (until_ms, None)

    def look_again(self, name: TopicName) -> None:
        """Somebody has worked on a topic: what was found of it is not good any more."""
        with self._lock:
            self._resting.setdefault(name, (0, None))

    def failed(self, name: TopicName, error: LithifyError, now_ms: int) -> None:
        """Something about a topic as a whole failed: it is left alone for a while, each time for longer."""
        failure = self._failure(name, error, now_ms)
        with self._lock:
            self._resting[name] = (failure.retry_ms, failure)

    def _failure(self, name: TopicName, error: LithifyError, now_ms: int) -> LogFailure:
        """Tells of an error of a topic as a whole; returns what is known of it now."""
        self.trouble(name, error)
        known = self.known.get(name)
        return after_failure(
            None if known is None else known.failure, str(error), now_ms, counts=error.blames is Blame.LOG
        )

    def _put_to_rest(self, now_ms: int) -> None:
        with self._lock:
            resting, self._resting = self._resting, {}
        for name, (until_ms, failure) in resting.items():
            known = self.known.get(name)
            if known is not None:
                self.known[name] = replace(known, looked_ms=now_ms, look_at_ms=until_ms, work=None, failure=failure)

    def _look_at(self, name: TopicName, mark: str | None, now_ms: int) -> tuple[Known | None, bool]:
        """What is known of a topic now, None if it is none, and whether manifests were read.

        Whatever fails with it is its own failure: the others are looked at (C50).
        """
        before = self.known.get(name)
        try:
            state = self.warehouse.store.load_at(name, mark)
            if before is not None and _same(before, state) and before.rests(now_ms):
                return replace(before, mark=mark), False
            known = _known(mark, state, now_ms)
            if known.rests(now_ms):
                return known, False
            try:
                required = self.judge.required(state, now_ms)
            except UnknownVersionError:  # others have committed since, and that version is not kept
                state = self.warehouse.store.load(name)
                known, required = _known(mark, state, now_ms), self.judge.required(state, now_ms)
        except UnknownTopicError:
            return None, False
        except UnknownVersionError:  # somebody has committed meanwhile: the next look finds it
            return Known(None, now_ms, now_ms), False
        except Exception as error:
            failure = self._failure(name, as_lithify_error(error, name), now_ms)
            return Known(mark, now_ms, failure.retry_ms, failure=failure), False
        if not required.rounds and not required.retains:
            return replace(known, look_at_ms=required.look_at_ms), True
        work = TopicWork(name, state.identity, state.version, required)
        return replace(known, look_at_ms=now_ms + JUDGED_FOR_MS, work=work), True


def _known(mark: str | None, state: TopicState, now_ms: int) -> Known:
    """As far as the states of its logs tell."""
    times = (may_be_due_at_ms(log, state.settings, now_ms) for log in state.logs)
    look_at_ms = min((time for time in times if time is not None), default=None)
    return Known(mark, now_ms, look_at_ms, state.identity, state.version)


def _unchanged(mark: str | None, known: Known) -> bool:
    return mark is not None and mark == known.mark


def _same(known: Known, state: TopicState) -> bool:
    return (known.identity, known.version) == (state.identity, state.version)
