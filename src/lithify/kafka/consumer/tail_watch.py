"""Sees to it that a consumer that continues in Kafka misses no delete that Kafka's cleaner drops, or raises an error
(C71).

    copy: when it was read to which end ─┐
    position of the consumer: the same ──┴► known ends ─► too long ago for what was fetched? ─► error
                                                 ▲
                            a look at the ends now and then

What one reader has seen of Kafka's ends is true for every other reader of the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from lithify.errors import BrokerError, LithifyError, SourceLostError
from lithify.kafka_client.client import Cluster
from lithify.model.names import LogId, TopicName
from lithify.model.sources.ends import DEFAULT_MS, Ends, KnownEnds, StableEnds, delete_retention_ms
from lithify.model.topic.log import LogState
from lithify.ports.clock import Clock
from lithify.rules.lifecycle.copies.missed_deletes import (
    all_learned,
    begun,
    begun_at,
    look_interval_ms,
    lost_error,
    missed_deletes,
    of_reader,
    together,
)

HINT = "run `lithify kafka ingest --resync` to bring the copy up to date, then start again from the beginning"


class TailWatch:
    """What one consumer knows of the ends of Kafka's logs. `stable_end` requests a partition's from Kafka."""

    def __init__(
        self, cluster: Cluster, source: str, name: TopicName, clock: Clock, stable_end: Callable[[int], int]
    ) -> None:
        self._cluster, self._source, self._name, self._clock = cluster, source, name, clock
        self._stable_end = stable_end
        self._retention_ms: int | None = None
        self._asked_ms: int | None = None
        self._looked_ms = clock.monotonic_ms()
        self.known: Ends = {}
        self._own: set[int] = set()
        """Partitions of which this consumer has read something, since it got their ends."""

    def learn(self, ends: Ends) -> None:
        """Takes what others have seen."""
        every = {*self.known, *ends}
        self.known = {p: together(self.known.get(p, KnownEnds()), ends.get(p, KnownEnds())) for p in every}

    def goes_on(self, ends: Ends) -> None:
        """Takes what this consumer itself has stored."""
        self._own |= {*ends}
        self.learn(ends)

    def enter(self, partition: int, start: int, log: LogState) -> None:
        """Before it reads the copy from `start` on. Raises `SourceLostError` if deletes may be missing there.

        A copy that began at or behind `start` has all of them from there on, and its begin is the consumer's. A copy
        that began before `start`, as a resync does, may have them below `start`: there only what the consumer has
        learned since, or read in time, counts.
        """
        if log.source_begun is None:
            return
        now_ms = self._clock.now_ms()
        self._ask(now_ms)
        known, began = self.known.get(partition, KnownEnds()), log.source_begun
        if partition not in self._own or start <= began[0]:
            self.known = {**self.known, partition: of_reader(begun_at(known, began))}
            self._own.add(partition)
            return
        told_since = any(end.offset <= start and end.time_ms >= began[1] for end in known.ends)
        late = self.missed(partition, start, log.log_end_offset, now_ms)
        if late is not None and not told_since:
            raise late

    def begin(self, partition: int, start: int, end: int, time_ms: int, *, anew: bool) -> LithifyError | None:
        """Before it reads on from `start`: why it must not. `time_ms` was before `end` was asked.

        `anew`: from the log's start, with nothing read. Where nothing is known, as an earlier Lithify stored nothing,
        it counts as known from now on.
        """
        self._ask(time_ms)
        known = self.known.get(partition, KnownEnds())
        if anew or not known.ends:
            known = of_reader(begun(known, start, time_ms, self._retention_ms))
            self.known = {**self.known, partition: known}
        error = self.missed(partition, start, end, time_ms)
        if error is None:
            self._own.add(partition)
            self._learned({partition: end}, time_ms)
        return error

    def missed(self, partition: int, start: int, end: int, now_ms: int) -> SourceLostError | None:
        """Why what was read of [start, end) up to now may lack deletes."""
        deletes = missed_deletes(self.known.get(partition, KnownEnds()), start, end, now_ms, self._retention_ms)
        if deletes is None:
            return None
        return lost_error(LogId(self._name, partition), f"Kafka's {self._source}", deletes, now_ms, HINT)

    def check_read(self, read: Mapping[int, tuple[int, int]]) -> None:
        """Raises `SourceLostError` if these ranges of offsets, just fetched, may lack deletes."""
        now_ms = self._clock.now_ms()
        for partition, (start, end) in read.items():
            if (error := self.missed(partition, start, end, now_ms)) is not None:
                raise error

    def look(self, partitions: Mapping[int, int]) -> None:
        """Now and then, requests the ends of these partitions: a reader at the end is not late."""
        if self._clock.monotonic_ms() - self._looked_ms < look_interval_ms(self._retention_ms):
            return
        self._looked_ms = self._clock.monotonic_ms()
        with suppress(BrokerError):  # fetching says so, and the next look may succeed
            time_ms = self._clock.now_ms()
            self._ask(time_ms)
            self._learned({p: self._stable_end(p) for p in partitions}, time_ms)

    def _learned(self, ends: Mapping[int, int], time_ms: int) -> None:
        self.known = all_learned(self.known, StableEnds({}, ends, self._retention_ms), time_ms, {})

    def _ask(self, time_ms: int) -> None:
        """For the topic's settings, at most once in a look."""
        if self._asked_ms is not None and 0 <= time_ms - self._asked_ms < look_interval_ms(self._retention_ms):
            return
        self._asked_ms = time_ms
        try:
            self._retention_ms = delete_retention_ms(self._cluster.topic_config(self._source))
        except BrokerError:  # a consumer may lack the right to ask: what the ingest was told counts
            retentions_ms = [end.retention_ms for log in self.known.values() for end in log.ends]
            self._retention_ms = min(
                (ms for ms in retentions_ms if ms is not None), default=None if retentions_ms else DEFAULT_MS
            )
