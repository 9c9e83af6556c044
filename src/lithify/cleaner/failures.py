"""The failures of logs: stored in a document of the topic, kept in memory while that cannot be written (C31)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from lithify.errors import Blame, DamagedError, LithifyError, UnknownTopicError, WarehouseError
from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.schedule.backoff import ALONE_AFTER, after_failure
from lithify.service.documents import failures_of, put_failures


@dataclass(slots=True)
class Failures:
    """Reads and writes the failures of topics; several threads may use it."""

    warehouse: Warehouse
    trouble: Callable[[TopicName | None, LithifyError], None]
    """Called for a damaged document."""
    _unwritten: dict[str, dict[int, LogFailure | None]] = field(default_factory=dict)
    """By identity of a topic and by partition, failures that could not be stored yet; None removes the stored one."""
    _worked_ms: dict[Blame, int] = field(default_factory=dict)
    """By what an error may blame, when a round that used it last succeeded."""
    _lock: Lock = field(default_factory=Lock)

    def of(self, state: TopicState) -> Mapping[int, LogFailure]:
        """The failures of a topic by partition. Raises `WarehouseError` where they cannot be read.

        A damaged document is reported and counts as empty: its logs are tried again.
        """
        return self._known(state, self.trouble)

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
        self._change(state, dict.fromkeys(partitions))

    def failed(self, state: TopicState, partition: int, error: LithifyError, now_ms: int) -> LogFailure:
        """Adds a failure of a log; returns all that is known of its failures."""
        try:
            known = self._known(state).get(partition)
        except WarehouseError:
            known = self._in_mind(state).get(partition)
        failure = after_failure(known, error, now_ms, counts=self._counts(error, known))
        self._change(state, {partition: failure})
        return failure

    def _counts(self, error: LithifyError, known: LogFailure | None) -> bool:
        """Whether an error counts towards quarantine. One of the environment does once a round of another log has
        succeeded with the same means since.

        The second error of the engine always counts: from then on the log, which may have ended Spark, runs alone.
        """
        if error.blames is Blame.LOG or known is None:
            return True
        if error.blames is Blame.ENGINE and known.failures < ALONE_AFTER:
            return True
        with self._lock:
            return self._worked_ms.get(error.blames, -1) > known.last_ms

    def _change(self, state: TopicState, changes: Mapping[int, LogFailure | None]) -> None:
        """Stores these changes and earlier unwritten ones; if that fails, keeps them in memory."""
        with self._lock:
            self._unwritten.setdefault(state.identity, {}).update(changes)
        try:
            with self.warehouse.store.commit_lock(state.name):  # others write the document as well
                written = self._in_mind(state)
                put_failures(self.warehouse.store, state, self._known(state))
        except LithifyError:
            return
        with self._lock:
            now = self._unwritten.get(state.identity, {})
            left = {p: failure for p, failure in now.items() if p not in written or failure is not written[p]}
            if left:  # changed since
                self._unwritten[state.identity] = left
            else:
                self._unwritten.pop(state.identity, None)

    def _known(
        self, state: TopicState, trouble: Callable[[TopicName, DamagedError], None] | None = None
    ) -> dict[int, LogFailure]:
        stored: Mapping[int, LogFailure] = {}
        try:
            stored = failures_of(self.warehouse.store, state)
        except DamagedError as error:
            if trouble is not None:
                trouble(state.name, error)
        known = {**stored, **self._in_mind(state)}
        return {partition: failure for partition, failure in known.items() if failure is not None}

    def _in_mind(self, state: TopicState) -> dict[int, LogFailure | None]:
        with self._lock:
            return dict(self._unwritten.get(state.identity, {}))
