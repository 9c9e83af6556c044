"""Reads as of a point are the fold of the whole history up to there, or are refused (C69).

Appends, rounds, cuts, undone rounds, retention and changed modes in any order; then every offset of every log is asked
for. What is refused must have lost records; what is given must be what the history says, whichever version it is from.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lithify.errors import LithifyError, OffsetOutOfRangeError, RefusedError
from lithify.model.cursor import AtTime
from lithify.model.record import Record
from lithify.reading.pieces import Reading
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.retain import retain
from lithify.service.change.undo import undo
from lithify.service.read.as_of import AsOf, as_of, records_to, table_at
from lithify.service.read.fetch import open_log
from support.generated.logs import some_records
from support.textbook.records import at, deletes, winners_of
from support.topics.memory_topic import ORDERS, MemoryTopic

PARTITIONS = 2
PLACES = st.integers(0, PARTITIONS - 1)
SHARES = st.floats(0, 1)


class PointsMachine(RuleBasedStateMachine):
    """One topic with two logs, and all that was ever appended and not truncated."""

    @initialize(
        strategy=st.sampled_from(["offset", "offset", "timestamp"]),
        mode=st.sampled_from(["in-place", "side-by-side"]),
        policy=st.sampled_from(["compact", "compact", "compact,delete"]),
        retention=st.sampled_from([0, 7]),
        lag=st.sampled_from([0, 20]),
        kept=st.sampled_from([1, 2, 10]),
    )
    def create(self, strategy: str, mode: str, policy: str, retention: int, lag: int, kept: int) -> None:
        self.topic = MemoryTopic(
            partitions=PARTITIONS,
            compaction_strategy=strategy,
            compaction_mode=mode,
            cleanup_policy=policy,
            retention_ms=1_000 if "delete" in policy else -1,
            delete_retention_ms=retention,
            min_compaction_lag_ms=lag,
            versions_kept=kept,
            null_key="drop",
            segment_bytes=1024,
        )
        self.ever: list[list[Record]] = [[] for _ in range(PARTITIONS)]
        self.left: list[list[Record]] = [[] for _ in range(PARTITIONS)]
        """The same, but after a truncation below compacted offsets what that has left."""

    @rule(records=some_records(most=6), place=PLACES, later=st.sampled_from([0, 5, 400]))
    def append(self, records: Sequence[Record], place: int, later: int) -> None:
        self.topic.clock.advance(later)
        now_ms = self.topic.clock.now_ms()
        batch = [r._replace(partition=place, timestamp=now_ms + (r.timestamp or 0) % 7) for r in records]
        first = self.topic.append(batch).ranges[0].start_offset if batch else 0
        stored = [r._replace(offset=first + n) for n, r in enumerate(batch)]
        self.ever[place] += stored
        self.left[place] += stored

    @rule(later=st.sampled_from([0, 1, 30]))
    def compact(self, later: int) -> None:
        self.topic.clock.advance(later)
        self.topic.compact()

    @rule(place=PLACES, share=SHARES)
    def delete_records(self, place: int, share: float) -> None:
        delete_records(self.topic.warehouse, ORDERS, place, round(share * self.topic.log(place).log_end_offset))

    @rule(place=PLACES, share=SHARES)
    def truncate(self, place: int, share: float) -> None:
        log = self.topic.log(place)
        to = log.log_start_offset + round(share * (log.log_end_offset - log.log_start_offset))
        truncate(self.topic.warehouse, ORDERS, place, to, below_compacted=True)
        self.ever[place] = [r for r in self.ever[place] if at(r) < to]
        self.left[place] = [r for r in self.left[place] if at(r) < to]
        if to < max(log.first_dirty_offset, log.compacted_below):
            self.left[place] = self.stored(place, compacted=True)

    @rule()
    def undo(self) -> None:
        with suppress(LithifyError):
            undo(self.topic.warehouse, ORDERS)

    @rule()
    def retain(self) -> None:
        with suppress(RefusedError):
            retain(self.topic.warehouse, ORDERS)

    @rule(mode=st.sampled_from(["in-place", "side-by-side"]))
    def change_mode(self, mode: str) -> None:
        with suppress(RefusedError):
            alter(self.topic.warehouse, ORDERS, {"compaction.mode": mode})

    @rule()
    def uncompact(self) -> None:
        with suppress(RefusedError):
            uncompact(self.topic.warehouse, ORDERS)

    def stored(self, place: int, *, compacted: bool) -> list[Record]:
        return list(open_log(self.topic.warehouse, self.topic.state, place, "earliest", Reading(compacted=compacted)))

    @invariant()
    def every_point_is_as_the_history_has_it_or_is_refused(self) -> None:
        for place in range(PARTITIONS):
            log = self.topic.log(place)
            start = log.log_start_offset
            is_whole = self.stored(place, compacted=False) == [r for r in self.left[place] if at(r) >= start]
            for point in range(log.log_end_offset + 2):
                try:
                    (found,) = as_of(self.topic.warehouse, ORDERS, point, place, compacted=True)
                except OffsetOutOfRangeError as error:
                    assert "cannot be read as it was" in str(error)
                    assert not (is_whole and start <= point <= log.log_end_offset and start <= log.compacted_start)
                    continue
                assert point <= log.log_end_offset
                self.check(found)

    def check(self, found: AsOf) -> None:
        place, point = found.partition, found.end
        got = [r for b in table_at(self.topic.warehouse, ORDERS, point, place) for r in b.records()]
        assert got in [self.fold(found, history[place]) for history in (self.ever, self.left)], found.state.log(place)
        with suppress(OffsetOutOfRangeError):
            (plain,) = as_of(self.topic.warehouse, ORDERS, point, place, compacted=False)
            batches = records_to(self.topic.warehouse, ORDERS, point, place, "earliest", compacted=False)
            read = [r for batch in batches for r in batch.records()]
            assert all(at(r) < point for r in read)
            live = [r for r in self.live(read) if not self.is_aged(plain, r)]
            assert live in [self.fold(plain, history[place]) for history in (self.ever, self.left)]

    def fold(self, found: AsOf, history: Sequence[Record]) -> list[Record]:
        start = found.how.start(found.state.log(found.partition))
        live = self.live([r for r in history if start <= at(r) < found.end])
        return [r for r in live if not self.is_aged(found, r)]

    def live(self, records: Sequence[Record]) -> list[Record]:
        """The latest value of every key, by offset."""
        settings = self.topic.state.settings
        winners = winners_of(tuple(records), settings).values()
        return sorted((r for r in winners if not deletes(r, settings)), key=at)

    def is_aged(self, found: AsOf, record: Record) -> bool:
        """Whether rounds have dropped a value for its age (C24)."""
        log = found.state.log(found.partition)
        aged_ms = log.aged_before_ms
        return aged_ms is not None and at(record) < log.first_dirty_offset and (record.timestamp or 0) < aged_ms

    @rule(place=PLACES, back=st.integers(-20, 500))
    def read_at_a_time(self, place: int, back: int) -> None:
        """With timestamps that do not descend, a time is the offset of the first record at or after it."""
        history = self.ever[place]
        times = [r.timestamp or 0 for r in history]
        if self.left[place] != history or times != sorted(times):
            return
        at_ms = self.topic.clock.now_ms() - back
        with suppress(OffsetOutOfRangeError):
            (found,) = as_of(self.topic.warehouse, ORDERS, AtTime(at_ms), place, compacted=True)
            wanted = [r for r in history if (r.timestamp or 0) < at_ms]
            start = found.how.start(found.state.log(place))
            got = [r for b in table_at(self.topic.warehouse, ORDERS, AtTime(at_ms), place) for r in b.records()]
            live = self.live([r for r in wanted if at(r) >= start])
            assert got == [r for r in live if not self.is_aged(found, r)]


def test_a_truncation_that_restores_values_does_not_hide_that_a_delete_expired_c69() -> None:
    """The late value would have lost to the delete, by time; an undone round and a truncation change nothing."""
    topic = MemoryTopic(compaction_strategy="timestamp", delete_retention_ms=0)
    topic.append([Record(b"k", None, 100)])
    topic.compact()
    topic.append([Record(b"k", b"late", 50)])
    topic.append([Record(b"x", b"1", 200)])
    topic.append([Record(b"x", b"2", 201)])
    topic.compact()
    undo(topic.warehouse, ORDERS)
    truncate(topic.warehouse, ORDERS, 0, 3, below_compacted=True)
    with pytest.raises(OffsetOutOfRangeError, match="cannot be read as it was"):
        as_of(topic.warehouse, ORDERS, 2, 0, compacted=True)


TestPointsMachine = PointsMachine.TestCase
TestPointsMachine.settings = profile(max_examples=100, stateful_step_count=25)
