"""The failures of logs: stored in a document of the topic, kept in memory while that cannot be written (C31).

stored   7 failures                          what a log has failed since is added to what is stored,
since    failed, failed    ─► 9              whether or not it can be read when the log fails
since    got through, failed   ─► 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from threading import Lock

from lithify.errors import Blame, DamagedError, LithifyError, UnknownTopicError
from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.schedule.backoff import ALONE_AFTER, FAILURES_ALLOWED, after_failure
from lithify.service.documents import failures_of, put_failures

MOST_UNWRITTEN = 2 * FAILURES_ALLOWED
"""Failures of one log that are kept while they cannot be stored; beyond it the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class _Failed:
    """One failure of a log."""

    error: LithifyError
    at_ms: int
    worked_ms: int
    """When a round had last succeeded with what the error blames; -1 is never."""

    def after(self, known: LogFailure | None) -> LogFailure:
        return after_failure(known, self.error, self.at_ms, counts=self._counts(known))

    def is_last_of(self, known: LogFailure | None) -> bool:
        alone = self.after(None)
        return known is not None and (known.last_ms, known.error) == (alone.last_ms, alone.error)

    def _counts(self, known: LogFailure | None) -> bool:
        """Whether it counts towards quarantine. An error of the environment does once a round of another log has
        succeeded with the same means since.

        The second error of the engine always counts: from then on the log, which may have ended Spark, runs alone.
        """
        if self.error.blames is Blame.LOG or known is None:
            return True
        if self.error.blames is Blame.ENGINE and known.failures < ALONE_AFTER:
            return True
        return self.worked_ms > known.last_ms


@dataclass(frozen=True, slots=True)
class _Since:
    """What happened to a log since its failures were stored."""

    got_through: bool = False
    """Whether what is stored no longer counts."""
    failed: tuple[_Failed, ...] = ()

    def after(self, stored: LogFailure | None) -> LogFailure | None:
        known = None if self.got_through else stored
        landed = (n for n, failure in enumerate(self.failed, 1) if failure.is_last_of(known))
        for failure in self.failed[next(landed, 0) :]:  # those before were stored, and the answer was lost
            known = failure.after(known)
        return known

    def plus(self, later: _Since) -> _Since:
        if later.got_through:
            return later
        return _Since(self.got_through, (*self.failed, *later.failed)[-MOST_UNWRITTEN:])

    def without(self, written: _Since) -> _Since:
        """What happened after `written`."""
        goes_on = written.got_through and self.failed[: len(written.failed)] == written.failed
        if self.got_through and not goes_on:  # it got through since
            return self
        return _Since(failed=tuple(f for f in self.failed if not any(f is known for known in written.failed)))


@dataclass(slots=True)
class Failures:
    """Reads and writes the failures of topics; several threads may use it."""

    warehouse: Warehouse
    report_error: Callable[[TopicName | None, LithifyError], None]
    """Called for a damaged document."""
    _unwritten: dict[str, dict[int, _Since]] = field(default_factory=dict)
    """By identity of a topic and by partition, what could not be stored yet."""
    _worked_ms: dict[Blame, int] = field(default_factory=dict)
    """By what an error may blame, when a round that used it last succeeded."""
    _lock: Lock = field(default_factory=Lock)

    def of(self, state: TopicState) -> Mapping[int, LogFailure]:
        """The failures of a topic by partition. Raises `WarehouseError` if they cannot be read.

        A damaged document is reported and counts as empty: its logs are tried again.
        """
        return _after(self._stored(state, self.report_error), self._in_mind(state))

    def is_gone(self, state: TopicState, error: LithifyError) -> bool:
        """Whether files are missing because the topic was deleted, or deleted and recreated, meanwhile."""
        if not isinstance(error, DamagedError):
            return False
        try:
            return self.warehouse.store.load(state.name).identity != state.identity
        except UnknownTopicError:
            return True
        except LithifyError:
            return False

    def note_success(self, means: Iterable[Blame], now_ms: int) -> None:
        """A round succeeded using these `means`: they work, so later failures of a log count against it."""
        with self._lock:
            self._worked_ms |= dict.fromkeys(means, now_ms)

    def forget(self, state: TopicState, partitions: tuple[int, ...]) -> None:
        """Removes the failures of these logs."""
        self._change(state, dict.fromkeys(partitions, _Since(got_through=True)))

    def failed(self, state: TopicState, partition: int, error: LithifyError, now_ms: int) -> LogFailure:
        """Adds a failure of a log; returns all that is known of its failures.

        Where the stored ones cannot be read, those are not in it, but still counted.
        """
        with self._lock:
            failed = _Failed(copy(error), now_ms, self._worked_ms.get(error.blames, -1))  # without the traceback
        known = self._change(state, {partition: _Since(failed=(failed,))})
        return known.get(partition) or failed.after(None)

    def _change(self, state: TopicState, changes: Mapping[int, _Since]) -> Mapping[int, LogFailure]:
        """Stores these changes and earlier unwritten ones; if that fails, keeps them in memory. Returns what is
        known then."""
        with self._lock:
            unwritten = self._unwritten.setdefault(state.identity, {})
            unwritten |= {p: unwritten.get(p, _Since()).plus(change) for p, change in changes.items()}
            known = _after({}, unwritten)
        try:
            with self.warehouse.store.commit_lock(state.name):  # others write the document as well
                stored, written = self._stored(state), self._in_mind(state)
                known = _after(stored, written)
                put_failures(self.warehouse.store, state, known)
        except LithifyError:
            return known
        with self._lock:
            now = self._unwritten.get(state.identity, {})
            since = {p: change.without(written.get(p, _Since())) for p, change in now.items()}
            left = {p: change for p, change in since.items() if change != _Since()}
            if left:
                self._unwritten[state.identity] = left
            else:
                self._unwritten.pop(state.identity, None)
        return known

    def _stored(
        self, state: TopicState, report_error: Callable[[TopicName, DamagedError], None] | None = None
    ) -> Mapping[int, LogFailure]:
        try:
            return failures_of(self.warehouse.store, state)
        except DamagedError as error:
            if report_error is not None:
                report_error(state.name, error)
            return {}

    def _in_mind(self, state: TopicState) -> dict[int, _Since]:
        with self._lock:
            return dict(self._unwritten.get(state.identity, {}))


def _after(stored: Mapping[int, LogFailure], since: Mapping[int, _Since]) -> dict[int, LogFailure]:
    """The failures by partition, with what has happened since they were stored."""
    changed = {partition: change.after(stored.get(partition)) for partition, change in since.items()}
    return {partition: failure for partition, failure in {**stored, **changed}.items() if failure is not None}
