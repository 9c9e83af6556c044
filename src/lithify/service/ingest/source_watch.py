"""Sees to it that a copy misses no delete that its source's cleaner drops, or says so (C71).

    begins: what is known of the source's ends ─► too long ago? ─► error, or accepted and stored
    batch read ─► too long ago by now? ─► commit ─► the ends as they are now
    nothing to copy ─► a look at the ends now and then

Every time is taken before the source is asked. What is stored is true of the source, however far the copy is: so it
is stored before a commit or after it, and of two ingests either may overwrite what the other has stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock

from lithify.errors import LithifyError
from lithify.model.names import LogId
from lithify.model.sources.ends import Ends, KnownEnds, StableEnds
from lithify.model.sources.source import SourcePosition, SourceTopic
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.source import Source
from lithify.ports.store import Warehouse
from lithify.reports.ingest import IngestNote, MissedRange, TellNote
from lithify.rules.lifecycle.copies.missed_deletes import (
    COMPACTED,
    NO_RESYNC,
    MissedDeletes,
    accepted,
    all_learned,
    begun,
    begun_at,
    look_interval_ms,
    lost_error,
    missed_deletes,
    seen,
)
from lithify.service.documents import put_source_ends, source_ends_of

HINT = (
    "delete the keys that Kafka no longer has with --resync, or continue without the deletes with --accept-loss, "
    "which stores the range; a longer delete.retention.ms in Kafka prevents this"
)
TOO_SLOW = (
    "set a longer delete.retention.ms in Kafka, as the copy takes longer than that, or continue without the deletes "
    "with --accept-loss, which stores the range"
)


@dataclass(slots=True)
class SourceWatch:
    """What one ingest knows of the ends of one topic's logs. Nothing for a source that drops no deletes."""

    warehouse: Warehouse
    source: Source
    topic: SourceTopic
    state: TopicState
    accepts: bool
    """Goes on where deletes may be missing."""
    resyncs: bool
    """Begins anew, as the keys that the source no longer has are deleted with the first batch."""
    known: dict[int, KnownEnds] = field(default_factory=dict)
    retention_ms: int | None = None
    ends: Mapping[int, int] = field(default_factory=dict)
    """By partition the source's stable end, as it was last seen."""
    read_to: Mapping[int, int] = field(default_factory=dict)
    """By partition how far the copy is."""
    _stored: Ends | None = None
    _looked_ms: int = 0
    _began: dict[int, int] = field(default_factory=dict)
    """By partition that this ingest copies, or resyncs, from its beginning on, where the source ended then."""
    _turn: Lock = field(default_factory=Lock)
    """Batches and looks are in threads of their own."""

    def begin(self, time_ms: int, starts: Mapping[int, SourcePosition | None], notes: TellNote) -> None:
        """Before the first batch; `time_ms` was before anything was asked, and `starts` is where it reads from.

        Raises `SourceLostError`, `BrokerError`, `DamagedError` or `WarehouseError`.
        """
        if self.source.drops is None:
            return
        now = self.source.drops.stable_ends(self.topic)
        self._stored = source_ends_of(self.warehouse.store, self.state)
        self.known, unknown = seen(self._stored, now.retention_ms), []
        for partition, start in starts.items():
            assert isinstance(start, int)  # such sources have offsets
            log = self.state.log(partition) if partition in self.state.partitions else LogState(partition)
            log_end, known = log.log_end_offset, begun_at(self.known.get(partition, KnownEnds()), log.source_begun)
            self.known[partition] = known
            if self.resyncs or not log_end or start > log_end or not (known.ends or known.begun):
                self.known[partition] = begun(known, start, time_ms, now.retention_ms)
                if self.resyncs or not log_end:
                    self._began[partition] = now.ends.get(partition, 0)
                behind = 0 < log_end == start < now.ends.get(partition, 0)
                if behind and not self.resyncs and now.retention_ms is not None:
                    unknown.append(LogId(self.state.name, partition))
        self.read_to = {p: start for p, start in starts.items() if isinstance(start, int)}
        if unknown:
            text = (
                f"{unknown[0]}: an import or an earlier version made the copy, without the time when Kafka's log ended "
                "there. If that is longer ago than Kafka's delete.retention.ms, deletes may be missing, and --resync "
                "makes up for them"
            )
            notes(IngestNote("unknown_deletes", text, self.topic.name, str(self.state.name)))
        self._check(now, now.ends, time_ms)
        self._learn(now, time_ms)

    def store_begin(self) -> None:
        """After where the logs began was committed: without that, what is stored of their ends would be too new."""
        if self._stored is not None and not self.resyncs:
            self._store()

    @property
    def begun(self) -> Mapping[int, tuple[int, int]]:
        """By partition the offset and the time at which the copy began."""
        return {p: (log.begun.offset, log.begun.time_ms) for p, log in self.known.items() if log.begun is not None}

    def resynced(self) -> None:
        """After the batch that deletes was committed: before it, an ingest without it would be as late as ever."""
        self.resyncs = False
        with self._turn:
            self.known = {p: replace(log, missed=()) for p, log in self.known.items()}
        self._store()

    def before_read(self, topic: SourceTopic, state: TopicState) -> None:
        """Before a batch is read: partitions that are new begin."""
        self.topic, self.state = topic, state
        if self._stored is not None:
            new, time_ms = set(topic.partitions) - set(self.known), self.warehouse.clock.now_ms()
            with self._turn:
                self.known = self.known | {p: begun(KnownEnds(), 0, time_ms, self.retention_ms) for p in new}

    def after_read(self, ends: Mapping[int, SourcePosition]) -> None:
        """After a batch was read up to `ends`, before it is committed. Raises as `begin`."""
        drops = self.source.drops
        if self._stored is None or drops is None:
            return
        time_ms = self.warehouse.clock.now_ms()
        now = drops.stable_ends(self.topic)
        if self._check(now, _offsets(ends), time_ms):
            self._store()
        self._learn(now, time_ms)

    def committed(self, ends: Mapping[int, SourcePosition]) -> None:
        """After that batch was committed: until then another ingest may need what is known of where it began."""
        self.read_to = {**self.read_to, **_offsets(ends)}

    def look(self) -> None:
        """Now and then, stores what is known of the ends, so that a copy without new records does not look old."""
        clock, drops = self.warehouse.clock, self.source.drops
        if (
            self._stored is None
            or drops is None
            or self.resyncs
            or clock.monotonic_ms() - self._looked_ms < look_interval_ms(self.retention_ms)
            or self.source.is_silent  # waited for here, its silence would not be told
        ):
            return
        self._looked_ms = clock.monotonic_ms()
        with suppress(LithifyError):  # the next look may succeed, and without one the copy only looks older than it is
            time_ms = clock.now_ms()
            now = drops.stable_ends(self.topic)
            self._learn(now, time_ms)
            self._store()

    @property
    def missed(self) -> tuple[MissedRange, ...]:
        return tuple(MissedRange(p, *gap) for p, log in sorted(self.known.items()) for gap in log.missed)

    def _check(self, now: StableEnds, ends: Mapping[int, int], now_ms: int) -> bool:
        """Whether something new was accepted. Raises `SourceLostError`, once it is stored what the source said.

        Else a longer `delete.retention.ms` would hide that a shorter one was seen.
        """
        news = False
        for partition, end in ends.items():
            start, known = self.read_to.get(partition, 0), self.known.get(partition, KnownEnds())
            missed = missed_deletes(known, start, end, now_ms, now.retention_ms)
            if missed is not None:
                self._accept(partition, missed, now, now_ms)
                news = True
        return news

    def _accept(self, partition: int, missed: MissedDeletes, now: StableEnds, now_ms: int) -> None:
        if not self.accepts:
            with self._turn:
                self.known = seen(self.known, now.retention_ms)
            self._store()
            theirs = f"{self.source.system}'s {self.topic.name}"
            is_slow = self.read_to.get(partition, 0) < self._began.get(partition, 0)
            hint = TOO_SLOW if is_slow else HINT if now.policy in (None, COMPACTED) else NO_RESYNC
            raise lost_error(LogId(self.state.name, partition), theirs, missed, now_ms, hint)
        end = max(missed.end_offset, now.ends.get(partition, 0))
        with self._turn:
            self.known = self.known | {partition: accepted(self.known.get(partition, KnownEnds()), missed, end)}

    def _learn(self, now: StableEnds, time_ms: int) -> None:
        self.retention_ms, self.ends = now.retention_ms, now.ends
        with self._turn:
            self.known = all_learned(self.known, now, time_ms, self.read_to)

    def _store(self) -> None:
        known = {p: replace(log, begun=None) for p, log in self.known.items()}
        if known != self._stored:
            put_source_ends(self.warehouse.store, self.state, known)
            self._stored, self._looked_ms = known, self.warehouse.clock.monotonic_ms()


def _offsets(ends: Mapping[int, SourcePosition]) -> dict[int, int]:
    return {partition: end for partition, end in ends.items() if isinstance(end, int)}
