"""Judges a topic from its manifests and what is known of its failures (C28, C31)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lithify.cleaner.events import Teller
from lithify.cleaner.failures import Failures
from lithify.errors import DamagedError, UnknownTopicError
from lithify.model.failure import LogFailure
from lithify.model.log import TopicState, segments_of
from lithify.model.names import LogId
from lithify.model.segment import Segment
from lithify.ports.store import Warehouse
from lithify.schedule.assessment import assess
from lithify.schedule.backoff import may_run
from lithify.schedule.required_work import RequiredWork, required_work


@dataclass(frozen=True, slots=True)
class Judge:
    """Reads what a verdict needs. Several threads may use it."""

    warehouse: Warehouse
    failures: Failures
    teller: Teller

    def required(self, state: TopicState, now_ms: int) -> RequiredWork:
        """What is to be done for a topic. Raises `WarehouseError` where it cannot be asked.

        A log whose manifests are damaged has failed; the others of the topic are judged (C31).
        """
        failures = self.failures.of(state)
        try:
            segments = self.warehouse.store.segments(state)
        except DamagedError as error:
            if self.failures.is_gone(state, error):
                raise UnknownTopicError(f"{state.name} was deleted") from error
            by_partition = self._readable(state, failures, now_ms)
            failures = self.failures.of(state)
        else:
            by_partition = {partition: segments_of(segments, partition) for partition in state.partitions}
        assessments = {p: assess(state.log(p), mine, state.settings, now_ms) for p, mine in by_partition.items()}
        return required_work(state, assessments, failures, now_ms)

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
