"""The failures of logs, as a cleaner keeps them: beside the topic, and in mind what cannot be written there (C31)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from lithify.errors import Blame, DamagedError, LithifyError, UnknownTopicError, WarehouseError
from lithify.model.failure import LogFailure
from lithify.model.log import TopicState
from lithify.model.names import TopicName
from lithify.ports.store import Warehouse
from lithify.schedule.backoff import ALONE_AFTER, after_failure
from lithify.service.documents import failures_of, put_failures


@dataclass(slots=True)
class Failures:
    """Reads and writes what is stored; several threads may use it."""

    warehouse: Warehouse
    trouble: Callable[[TopicName | None, LithifyError], None]
    """Is called with what is stored and damaged."""
    _unwritten: dict[str, dict[int, LogFailure | None]] = field(default_factory=dict)
    """By identity of a topic and by partition, what could not be stored; None is forgotten."""
    _worked_ms: dict[Blame, int] = field(default_factory=dict)
    """When a round last got through that needed it."""
    _lock: Lock = field(default_factory=Lock)

    def of(self, state: TopicState) -> Mapping[int, LogFailure]:
        """By partition. Raises `WarehouseError` where they cannot be asked for.

        Damaged ones are reported and not known: their logs are tried, and fail again if they do.
        """
        return self._known(state, self.trouble)

    def is_gone(self, state: TopicState, error: LithifyError) -> bool:
        """Whether files are missing because the topic was deleted meanwhile, or deleted and recreated."""
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
        self._change(state, dict.fromkeys(partitions))

    def failed(self, state: TopicState, partition: int, error: LithifyError, now_ms: int) -> LogFailure:
        """Remembers that a log failed; returns what is known of it now."""
        try:
            known = self._known(state).get(partition)
        except WarehouseError:
            known = self._in_mind(state).get(partition)
        failure = after_failure(known, str(error), now_ms, counts=self._counts(error, known))
        self._change(state, {partition: failure})
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

    def _change(self, state: TopicState, changes: Mapping[int, LogFailure | None]) -> None:
        """Stores these and what could not be stored before, or keeps them in mind."""
        with self._lock:
            unwritten = self._unwritten.setdefault(state.identity, {})
            unwritten |= changes
        try:
            with self.warehouse.store.commit_lock(state.name):  # others write the document as well
                written = self._in_mind(state)
                put_failures(self.warehouse.store, state, self._known(state))
        except LithifyError:
            return
        with self._lock:
            for partition, failure in written.items():
                if unwritten.get(partition) is failure:  # else it has changed since
                    unwritten.pop(partition, None)

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
