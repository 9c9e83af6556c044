"""The failures of logs, as a cleaner keeps them: beside the topic, and in mind while that cannot be written (C31)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from lithify.compaction.backoff import ALONE_AFTER, after_failure
from lithify.errors import Blame, DamagedError, LithifyError, UnknownTopicError
from lithify.model.failure import LogFailure
from lithify.model.log import TopicState
from lithify.ports import Warehouse


@dataclass(slots=True)
class Failures:
    """Reads and writes what is stored; several threads may use it."""

    warehouse: Warehouse
    _unwritten: dict[str, dict[int, LogFailure]] = field(default_factory=dict)
    """By identity of a topic, what could not be stored."""
    _worked_ms: dict[Blame, int] = field(default_factory=dict)
    """When a round last got through that needed it."""
    _lock: Lock = field(default_factory=Lock)

    def of(self, state: TopicState) -> Mapping[int, LogFailure]:
        """By partition. One that cannot be read is not known: its logs are tried, and fail again if they do."""
        with self._lock:
            unwritten = self._unwritten.get(state.identity)
        if unwritten is not None:
            return dict(unwritten)
        try:
            return self.warehouse.store.failures(state)
        except LithifyError:
            return {}

    def is_gone(self, state: TopicState, error: LithifyError) -> bool:
        """Whether files are missing because the topic was deleted meanwhile, or deleted and made again."""
        if not isinstance(error, DamagedError):
            return False
        try:
            return self.warehouse.store.load(state.name).identity != state.identity
        except UnknownTopicError:
            return True
        except LithifyError:
            return False

    def note_success(self, means: Iterable[Blame], now_ms: int) -> None:
        """A round got through with these means: they work, and are not to blame for what fails again."""
        with self._lock:
            self._worked_ms |= dict.fromkeys(means, now_ms)

    def forget(self, state: TopicState, partitions: tuple[int, ...]) -> None:
        """What was known of these logs counts no more."""
        with self.warehouse.store.commit_lock(state.name):  # others write the document as well
            before = self.of(state)
            after = {partition: failure for partition, failure in before.items() if partition not in partitions}
            if after != before:
                self._store(state, after)

    def failed(self, state: TopicState, partition: int, error: LithifyError, now_ms: int) -> LogFailure:
        """Remembers that a log failed; returns what is known of it now."""
        with self.warehouse.store.commit_lock(state.name):
            before = self.of(state)
            known = before.get(partition)
            failure = after_failure(known, str(error), now_ms, counts=self._counts(error, known))
            self._store(state, {**before, partition: failure})
        return failure

    def _counts(self, error: LithifyError, known: LogFailure | None) -> bool:
        """An error of the environment counts once others have got through since, with the same means.

        The second one of the engine does in any case: what may have ended Spark is tried alone from then on.
        """
        if error.blames is Blame.LOG or known is None:
            return True
        if error.blames is Blame.ENGINE and known.failures < ALONE_AFTER:
            return True
        with self._lock:
            return self._worked_ms.get(error.blames, -1) > known.last_ms

    def _store(self, state: TopicState, failures: Mapping[int, LogFailure]) -> None:
        try:
            self.warehouse.store.put_failures(state, failures)
        except LithifyError:
            with self._lock:
                self._unwritten[state.identity] = dict(failures)
        else:
            with self._lock:
                self._unwritten.pop(state.identity, None)
