"""Judges a topic from its manifests and what is known of its failures (C28, C31)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lithify.cleaner.events import Teller
from lithify.cleaner.failures import Failures
from lithify.errors import DamagedError, UnknownTopicError
from lithify.model.failure import LogFailure
from lithify.model.log import TopicState
from lithify.model.names import LogId
from lithify.model.segment import Segment
from lithify.ports.store import Warehouse
from lithify.schedule.backoff import may_run
from lithify.schedule.judging import TopicVerdict, judge_topic


@dataclass(frozen=True, slots=True)
class Judge:
    """Reads what a verdict needs. Several threads may use it."""

    warehouse: Warehouse
    failures: Failures
    teller: Teller

    def verdict(self, state: TopicState, now_ms: int) -> TopicVerdict:
        """What is to be done for a topic. Raises `WarehouseError` where it cannot be asked.

        A log whose manifests are damaged has failed; the others of the topic are judged (C31).
        """
        failures = self.failures.of(state)
        try:
            return judge_topic(state, self.warehouse.store.segments(state), failures, now_ms)
        except DamagedError as error:
            if self.failures.is_gone(state, error):
                raise UnknownTopicError(f"{state.name} was deleted") from error
        readable = self._readable(state, failures, now_ms)
        segments = tuple(segment for found in readable.values() for segment in found)
        return judge_topic(state, segments, self.failures.of(state), now_ms, tuple(readable))

    def _readable(
        self, state: TopicState, failures: Mapping[int, LogFailure], now_ms: int
    ) -> Mapping[int, tuple[Segment, ...]]:
        """By partition, the segments of those logs whose manifests can be read."""
        found: dict[int, tuple[Segment, ...]] = {}
        for partition in state.partitions:
            try:
                found[partition] = self.warehouse.store.segments(state, [partition])
            except DamagedError as error:
                self._failed(state, partition, failures, error, now_ms)
        return found

    def _failed(
        self,
        state: TopicState,
        partition: int,
        failures: Mapping[int, LogFailure],
        error: DamagedError,
        now_ms: int,
    ) -> None:
        if may_run(failures.get(partition), now_ms):
            failure = self.failures.failed(state, partition, error, now_ms)
            self.teller.log_failed(LogId(state.name, partition), error, failure)
