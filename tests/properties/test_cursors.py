"""A reader that comes back with its cursor goes on from there, or gets an error that it missed a delete (C5, C49).

Consumers fold what they read into a map and store their cursors.
Whatever is done to the topic in between, by whatever clock and under whatever settings: one who is
let through and reads on has what every record ever appended says. No reader gets an error that something was
missed where no delete at or above the cursor has gone since, and no truncation has restored values below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lithify.errors import LithifyError
from lithify.model.cursor import Cursor
from lithify.model.record import Record
from lithify.model.topic.log import LogState
from lithify.rules.reading.continuation import Continuation, Continues, MissedDeletes, continuation
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import truncate
from lithify.service.change.undo import undo
from support.topics.memory_topic import ORDERS, MemoryTopic

KEYS = st.sampled_from([b"a", b"b"])
RECORDS = st.lists(st.tuples(KEYS, st.sampled_from([None, None, b"1", b"2"])), min_size=1, max_size=4)
RETENTIONS = st.sampled_from([0, 10, 1000])

Map = dict[bytes | None, bytes]


@dataclass(frozen=True, slots=True)
class Consumer:
    """How far one got, and what it has from there."""

    cursor: Cursor
    compacted: bool
    holds: Map


class Cursors(RuleBasedStateMachine):
    """One topic, and consumers that come and go."""

    consumers: Sequence[Consumer] = ()

    @initialize(mode=st.sampled_from(["in-place", "side-by-side"]), retention=RETENTIONS)
    def create(self, mode: str, retention: int) -> None:
        self.topic = MemoryTopic(compaction_mode=mode, delete_retention_ms=retention, segment_bytes=1024)
        self.history: list[Record] = []
        self.expired: list[tuple[int, bool]] = []
        """When deletes expired or values came back: the epoch that this began, and whether only in the view."""
        self.lossy = False
        """Whether a truncation has removed records that had superseded others."""

    @property
    def log(self) -> LogState:
        return self.topic.log()

    @rule(pairs=RECORDS)
    def append(self, pairs: list[tuple[bytes, bytes | None]]) -> None:
        end = self.log.log_end_offset
        self.topic.append([Record(key, value, 0) for key, value in pairs])
        self.history += [Record(k, v, 0, (), 0, end + n) for n, (k, v) in enumerate(pairs)]

    @rule(pairs=RECORDS, share=st.sampled_from([0.5, 1.0]), compacted=st.booleans(), retention=st.sampled_from([0, 10]))
    def delete_behind_a_reader(
        self, pairs: list[tuple[bytes, bytes | None]], share: float, compacted: bool, retention: int
    ) -> None:
        """Who has read up to here learns of what is deleted now, or does not."""
        self.append(pairs)
        self.begin(compacted, share)
        self.append([(key, None) for key, _ in pairs])
        self.alter(retention)
        self.round(None, undone=False)
        self.round(self.topic.clock.now_ms() + 10, undone=False)

    @rule(by_ms=st.sampled_from([1, 9, 10, 999, 1000, -20]))
    def move_the_clock(self, by_ms: int) -> None:
        self.topic.clock.advance(by_ms)

    @rule(now_ms=st.none() | st.sampled_from([0, 1, 2000, 10_000]), undone=st.booleans())
    def round(self, now_ms: int | None, undone: bool) -> None:
        """As of the clock or any other time; some are undone while another is running."""
        report = self.topic.compact(now_ms, meanwhile=self.undo if undone else lambda: None, times=1)
        if report.logs[0].losers.expired_tombstone:
            self.expired.append((self.log.epoch, self.log.view is not None))

    @rule()
    def undo(self) -> None:
        try:
            undo(self.topic.warehouse, ORDERS)
        except LithifyError:
            return

    @rule(retention=RETENTIONS)
    def alter(self, retention: int) -> None:
        alter(self.topic.warehouse, ORDERS, {"delete.retention.ms": retention})

    @rule()
    @precondition(lambda self: not self.topic.state.settings.side_by_side)
    def go_side_by_side(self) -> None:
        alter(self.topic.warehouse, ORDERS, {"compaction.mode": "side-by-side"})

    @rule()
    @precondition(lambda self: self.topic.state.settings.side_by_side)
    def drop_the_view(self) -> None:
        uncompact(self.topic.warehouse, ORDERS)

    @rule(by=st.integers(0, 5))
    def truncate(self, by: int) -> None:
        """Not below what rounds have compacted in place: that needs `--below-compacted`, and values are gone."""
        before = self.log
        below = before.first_dirty_offset if before.view is None else 0
        to = max(below, before.compacted_below, before.log_end_offset - by)
        truncate(self.topic.warehouse, ORDERS, 0, to, below_compacted=before.view is not None)
        self.history = self.history[:to]
        if before.view is not None and to < before.first_dirty_offset:
            self.expired.append((self.log.epoch, True))
        if before.undone is not None and to < before.undone.below:
            self.expired.append((self.log.epoch, before.undone.of_view))

    @rule(by=st.integers(0, 5))
    def truncate_below_compacted(self, by: int) -> None:
        """With `--below-compacted`: values are gone then, but no reader keeps one that was deleted."""
        before = self.log
        to = max(0, before.log_end_offset - by)
        compacted = max(before.compacted_below, before.first_dirty_offset if before.view is None else 0)
        if to >= compacted:
            return
        truncate(self.topic.warehouse, ORDERS, 0, to, below_compacted=True)
        self.history = self.history[:to]
        self.lossy = True
        self.expired.append((self.log.epoch, False))

    @rule(pairs=RECORDS, share=st.sampled_from([0.5, 1.0]), compacted=st.booleans())
    def cut_what_superseded_a_delete(
        self, pairs: list[tuple[bytes, bytes | None]], share: float, compacted: bool
    ) -> None:
        """Who has read up to here never gets the delete: a round has removed it, and then its successor was cut."""
        self.append(pairs)
        self.begin(compacted, share)
        self.append([(key, None) for key, _ in pairs])
        self.append([(key, b"3") for key, _ in pairs])
        self.round(None, undone=False)
        self.truncate_below_compacted(len(pairs))

    @rule(pairs=RECORDS, share=st.sampled_from([0.3, 0.7]), compacted=st.booleans(), by=st.integers(1, 4))
    def bring_values_back_behind_a_reader(
        self, pairs: list[tuple[bytes, bytes | None]], share: float, compacted: bool, by: int
    ) -> None:
        """Who has read what a round left has not read what an undo and a truncation restore."""
        self.append(pairs)
        self.round(None, undone=False)
        self.begin(compacted, share)
        self.undo()
        self.truncate(by)

    @rule(compacted=st.booleans(), share=st.sampled_from([0.3, 0.7, 1.0]))
    def begin(self, compacted: bool, share: float) -> None:
        """A reader reads from the start, and not always to the end, before others do anything."""
        self.go_on(Consumer(Cursor.of(self.topic.state, self.log, 0), compacted, {}), share)

    @rule(share=st.sampled_from([0.3, 0.7, 1.0]), data=st.data())
    @precondition(lambda self: self.consumers)
    def come_back(self, share: float, data: st.DataObject) -> None:
        consumer = data.draw(st.sampled_from(self.consumers))
        if self.found(consumer) == Continues():
            self.go_on(consumer, share)

    def go_on(self, consumer: Consumer, share: float) -> None:
        records = self.rest(consumer)
        holds = _folded(consumer.holds, taken := records[: round(len(records) * share)])
        offset = self.log.log_end_offset if taken == records else (records[len(taken)].offset or 0)
        there = Consumer(Cursor.of(self.topic.state, self.log, offset), consumer.compacted, holds)
        self.consumers = (*self.consumers, there)[-6:]

    @invariant()
    @precondition(lambda self: self.consumers)
    def a_reader_that_may_continue_ends_with_the_truth(self) -> None:
        truth = _folded({}, self.history)
        for consumer in self.consumers:
            if self.found(consumer) == Continues():
                found = _folded(consumer.holds, self.rest(consumer))
                assert found == truth or (self.lossy and found.items() <= truth.items()), consumer

    @invariant()
    @precondition(lambda self: self.consumers)
    def no_reader_is_refused_where_no_delete_expired_since(self) -> None:
        for consumer in self.consumers:
            since = [
                epoch
                for epoch, of_view in self.expired
                if epoch > consumer.cursor.epoch and (consumer.compacted or not of_view)
            ]
            assert since or not isinstance(self.found(consumer), MissedDeletes), consumer

    def found(self, consumer: Consumer) -> Continuation:
        return continuation(consumer.cursor, self.topic.state, self.log, compacted=consumer.compacted)

    def rest(self, consumer: Consumer) -> list[Record]:
        records = self.topic.records(compacted=consumer.compacted)
        return [r for r in records if (r.offset or 0) >= consumer.cursor.offset]


def _folded(holds: Map, records: Sequence[Record]) -> Map:
    """A map with the records put into it, one after the other."""
    after = dict(holds)
    for record in records:
        after.pop(record.key, None)
        if record.value is not None:
            after[record.key] = record.value
    return after


TestCursors = Cursors.TestCase
TestCursors.settings = profile(max_examples=60, stateful_step_count=40, deadline=None)
