"""Reads as of a point are the fold of the whole history up to there, or are refused (C69).

Appends, rounds, cuts, undone rounds, retention and changed modes in any order; then every offset of every log is asked
for. What is refused must have lost records; what is given must be what the history says, whichever version it is from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lithify.errors import LithifyError, OffsetOutOfRangeError, RefusedError
from lithify.model.cursor import AtTime
from lithify.model.record import Record
from lithify.rules.reading.pieces import Reading
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
SHARES = st.sampled_from([eighth / 8 for eighth in range(9)])


@dataclass(slots=True)
class Past:
    """What counts at the points above `above`, up to the next such point: all that was ever appended and not truncated,
    or, above the end of a truncation below compacted offsets, what that has left, and what was appended since."""

    above: int
    records: list[Record]


class PointsMachine(RuleBasedStateMachine):
    """One topic with two logs, and what counted at each of their points."""

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
        self.pasts: list[list[Past]] = [[Past(-1, [])] for _ in range(PARTITIONS)]

    @rule(records=some_records(most=6), place=PLACES, later=st.sampled_from([0, 5, 400]))
    def append(self, records: Sequence[Record], place: int, later: int) -> None:
        self.topic.clock.advance(later)
        now_ms = self.topic.clock.now_ms()
        batch = [r._replace(partition=place, timestamp=now_ms + (r.timestamp or 0) % 7) for r in records]
        first = self.topic.append(batch).ranges[0].start_offset if batch else 0
        stored = [r._replace(offset=first + n) for n, r in enumerate(batch)]
        for past in self.pasts[place]:
            past.records += stored

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
        pasts = [Past(past.above, [r for r in past.records if at(r) < to]) for past in self.pasts[place]]
        if to < max(log.first_dirty_offset, log.compacted_below):
            pasts = [past for past in pasts if past.above < to]
            pasts.append(Past(to, self.stored(place, compacted=True)))
        self.pasts[place] = pasts

    def past(self, place: int, point: int) -> list[Record]:
        """All records that counted at a point, in their order."""
        return next(past.records for past in reversed(self.pasts[place]) if past.above < point)

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
    def start_compacting_anew(self) -> None:
        with suppress(RefusedError):
            for policy in ("delete", self.topic.state.settings.cleanup_policy):
                alter(self.topic.warehouse, ORDERS, {"cleanup.policy": policy})

    @rule()
    def delete_by_empty_values(self) -> None:
        alter(self.topic.warehouse, ORDERS, {"empty.value": "tombstone"})

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
            stored = self.stored(place, compacted=False)
            for point in range(log.log_end_offset + 2):
                try:
                    (found,) = as_of(self.topic.warehouse, ORDERS, point, place, compacted=True)
                except OffsetOutOfRangeError as error:
                    assert "cannot be read as it was" in str(error)
                    is_whole = stored == [r for r in self.past(place, point) if at(r) >= start]
                    if any(point == past.above for past in self.pasts[place]):
                        continue  # what rounds had removed may have been what was truncated
                    assert not (is_whole and start <= point <= log.log_end_offset and start <= log.compacted_start)
                    continue
                assert point <= log.log_end_offset
                self.check(found)

    def check(self, found: AsOf) -> None:
        place, point = found.partition, found.end
        got = [r for b in table_at(self.topic.warehouse, ORDERS, point, place) for r in b.records()]
        assert got == self.fold(found), found.state.log(place)
        with suppress(OffsetOutOfRangeError):
            (plain,) = as_of(self.topic.warehouse, ORDERS, point, place, compacted=False)
            batches = records_to(self.topic.warehouse, ORDERS, point, place, "earliest", compacted=False)
            read = [r for batch in batches for r in batch.records()]
            assert all(at(r) < point for r in read)
            live = [r for r in self.live(read, plain) if not self.is_aged(plain, r)]
            assert live == self.fold(plain)

    def fold(self, found: AsOf) -> list[Record]:
        start = found.how.start(found.state.log(found.partition))
        past = [r for r in self.past(found.partition, found.end) if start <= at(r) < found.end]
        live = self.live(past, found)
        return [r for r in live if not self.is_aged(found, r)]

    def live(self, records: Sequence[Record], found: AsOf) -> list[Record]:
        """The latest value of every key, by offset."""
        settings = found.state.settings
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
        history = self.pasts[place][0].records
        times = [r.timestamp or 0 for r in history]
        if len(self.pasts[place]) > 1 or times != sorted(times):
            return
        at_ms = self.topic.clock.now_ms() - back
        with suppress(OffsetOutOfRangeError):
            (found,) = as_of(self.topic.warehouse, ORDERS, AtTime(at_ms), place, compacted=True)
            wanted = [r for r in history if (r.timestamp or 0) < at_ms]
            start = found.how.start(found.state.log(place))
            got = [r for b in table_at(self.topic.warehouse, ORDERS, AtTime(at_ms), place) for r in b.records()]
            live = self.live([r for r in wanted if at(r) >= start], found)
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


SHORT: dict[str, Callable[[PointsMachine], object]] = {
    "append": lambda topic: topic.append(records=[Record(b"k", b"later")], place=0, later=5),
    "append a delete": lambda topic: topic.append(records=[Record(b"k", None)], place=0, later=5),
    "compact": lambda topic: topic.compact(later=30),
    "truncate to 1": lambda topic: topic.truncate(place=0, share=1 / max(1, topic.topic.log(0).log_end_offset)),
    "truncate half": lambda topic: topic.truncate(place=0, share=0.5),
    "delete the first": lambda topic: topic.delete_records(
        place=0, share=1 / max(1, topic.topic.log(0).log_end_offset)
    ),
    "undo": lambda topic: topic.undo(),
    "uncompact": lambda topic: topic.uncompact(),
    "side by side": lambda topic: topic.change_mode(mode="side-by-side"),
    "in place": lambda topic: topic.change_mode(mode="in-place"),
    "compact anew": lambda topic: topic.start_compacting_anew(),
    "empty values": lambda topic: topic.delete_by_empty_values(),
}


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
@pytest.mark.parametrize("first", SHORT)
def test_every_short_history_is_read_as_it_was_c69(first: str, mode: str) -> None:
    """Every three verbs, after a round that has removed a record; each beginning of a history is looked at once."""
    begun: set[tuple[str, ...]] = set()
    for history in product(["compact"], [first], SHORT, SHORT):
        topic = PointsMachine()
        topic.create(strategy="offset", mode=mode, policy="compact", retention=0, lag=0, kept=10)
        topic.append(records=[Record(b"k", b"1"), Record(b"l", b"1"), Record(b"k", b"2")], place=0, later=0)
        for number, verb in enumerate(history, 1):
            SHORT[verb](topic)
            if history[:number] not in begun:
                topic.every_point_is_as_the_history_has_it_or_is_refused()
                begun.add(history[:number])


TestPointsMachine = PointsMachine.TestCase
TestPointsMachine.settings = profile(max_examples=60, stateful_step_count=25)
