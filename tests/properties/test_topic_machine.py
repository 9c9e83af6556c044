"""A whole topic, its services over the memory store, against the contract in plain Python.

Appends, rounds with others at work, readers old and new, clocks that jump: after every step each log
reads as the textbook has it, from every place, and its metadata says the truth (C1 to C4, C6, C7,
C13, C14, C16, C18, C27, C36, C37, C41, C42, C44).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lithify.errors import InvalidRecordError, LithifyError, LogTruncatedError, OffsetOutOfRangeError
from lithify.model.cursor import AtTime
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.ports.engine import RunLimits
from lithify.rules.compaction.decisions import MaskLimits
from lithify.rules.reading.continuation import MissedDeletes, continuation
from lithify.service.documents import reports_of
from lithify.service.look.status import topic_status
from lithify.service.proof.verify import metadata_findings
from lithify.service.read.fetch import LogReader
from lithify.service.round.compact import RunRequest, compact
from lithify.service.round.run import Run, run_rounds
from support.engines.phased import PhasedEngine
from support.generated.logs import some_records
from support.textbook.log import TextbookLog
from support.textbook.records import at, deletes
from support.topics.memory_topic import ORDERS, MemoryTopic

PARTITIONS = 2
PLACES = st.integers(0, PARTITIONS - 1)


@dataclass(slots=True)
class Expected:
    """What one log must be."""

    textbook: TextbookLog
    ever: list[Record] = field(default_factory=list)
    """Every record that was ever appended."""


class TopicMachine(RuleBasedStateMachine):
    """One topic with two logs."""

    @initialize(
        null_key=st.sampled_from(["reject", "drop", "retain"]),
        empty_value=st.sampled_from(["value", "tombstone"]),
        retention=st.sampled_from([0, 7, 30]),
        lag=st.sampled_from([0, 0, 970]),
        dead=st.sampled_from([0, 0.5, 1]),
        size=st.sampled_from([100, 1024]),
    )
    def create(self, null_key: str, empty_value: str, retention: int, lag: int, dead: float, size: int) -> None:
        self.topic = MemoryTopic(
            partitions=PARTITIONS,
            null_key=null_key,
            empty_value=empty_value,
            delete_retention_ms=retention,
            min_compaction_lag_ms=lag,
            segment_bytes=size,
            segment_max_dead_ratio=dead,
        )
        self.logs = [Expected(TextbookLog(place)) for place in range(PARTITIONS)]
        self.rounds_committed = 0
        self.old_reader: tuple[LogReader, list[Record]] | None = None
        self.follower = self.topic.reader(0, follow=True)
        self.followed: list[Record] = []

    @rule(records=some_records(), place=PLACES)
    def append(self, records: Sequence[Record], place: int) -> None:
        """C1: offsets go on from the log end; C16: one refused record refuses the batch."""
        batch = [r._replace(partition=place) for r in records]
        refused = next((n for n, r in enumerate(batch) if r.key is None), None)
        if refused is not None and self.topic.state.settings.null_key == "reject":
            version = self.topic.state.version
            with pytest.raises(InvalidRecordError) as error:
                self.topic.append(batch)
            assert (error.value.index, self.topic.state.version) == (refused, version)
            return
        self._appended(place, self.topic.append(batch).ranges[0].start_offset, batch)

    @rule(records=some_records(most=3), place=PLACES, gap=st.integers(-2, 5))
    def append_with_offsets(self, records: Sequence[Record], place: int, gap: int) -> None:
        """Offsets of one's own leave gaps, and a replay is refused (C1, C2)."""
        end = self.logs[place].textbook.end
        first = end + gap
        batch = [r._replace(partition=place, offset=first + n, key=r.key or b"") for n, r in enumerate(records)]
        if gap < 0:
            with pytest.raises(InvalidRecordError, match=r"below the log end|is below 0"):
                self.topic.append(batch, keep_offsets=True)
            return
        self.topic.append(batch, keep_offsets=True)
        self._appended(place, first, batch)

    def _appended(self, place: int, first: int, batch: Sequence[Record]) -> None:
        log = self.logs[place]
        assert first >= log.textbook.end
        stored = tuple(r._replace(offset=first + n, partition=place) for n, r in enumerate(batch))
        log.textbook = log.textbook.appended(stored, first + len(stored))
        log.ever += stored

    @rule(
        before=st.lists(st.tuples(some_records(), PLACES), max_size=3),
        later=st.sampled_from([0, 1, 7, 30, -5, -40]),
        partitions=st.sampled_from([None, None, (0,), (1,)]),
        given=st.sampled_from([None, None, 0, 31]),
        racing=st.none() | some_records(most=3),
        part=st.sampled_from([None, None, "one", "all"]),
    )
    def compact(
        self,
        before: Sequence[tuple[Sequence[Record], int]],
        later: int,
        partitions: tuple[int, ...] | None,
        given: int | None,
        racing: Sequence[Record] | None,
        part: str | None,
    ) -> None:
        """A round over one log or both, by the clock or by `--now`, with an append on the way.

        Or the first of those that rewrite in parts, or all of them, which nothing interrupts.
        """
        for records, place in before:
            self.append(records, place)
        self.topic.clock.advance(later)
        parts = part if self.topic.state.settings.segment_max_dead_ratio else None
        self.check_round(partitions, given, None if parts == "all" else racing, parts)

    def waiting(self, place: int, *, together: bool) -> list[Segment]:
        """Segments with masks that hide too much for long: of each or, where rounds rewrite in parts, of all."""
        masks = MaskLimits.of(self.topic.state.settings, self.topic.log(place).log_start_offset)
        return list(masks.exceeded_by(self.topic.segments(place), together=together))

    def check_round(
        self,
        partitions: tuple[int, ...] | None,
        given: int | None,
        racing: Sequence[Record] | None,
        part: str | None = None,
    ) -> None:
        now_ms = None if given is None else self.topic.clock.now_ms() + given
        planned_ms = self.topic.clock.now_ms() if now_ms is None else now_ms
        covered_ms = max(planned_ms, self.topic.state.clock_ms or 0) if now_ms is None else now_ms
        version, asked = self.topic.state.version, partitions or tuple(range(PARTITIONS))
        planned = [(log.textbook, self.topic.segments(place)) for place, log in enumerate(self.logs)]
        waited = [self.waiting(place, together=part is not None) for place in range(PARTITIONS)]
        engine = PhasedEngine(self.topic.engine, {"commit": lambda: self._race(racing or [])})
        limits = RunLimits(rewrite_bytes=None if part is None else 1)
        if part == "one":
            result = run_rounds(Run(self.topic.warehouse, engine, limits, now_ms), {ORDERS: partitions})[ORDERS]
            assert not isinstance(result, LithifyError)
            report = result.report
        else:
            report = compact(self.topic.warehouse, engine, ORDERS, RunRequest(partitions, now_ms, limits))
        assert report.failed == ()
        assert [log.partition for log in report.logs] == list(asked)
        settings = self.topic.state.settings
        for log in report.logs:
            expected = self.logs[log.partition]
            before, segments = planned[log.partition]
            done = before.rounded(segments, settings, planned_ms, {at(r) for r in self.topic.records(log.partition)})
            assert log.horizon == done.horizon
            below, left = tuple(r for r in before.records if at(r) < log.horizon), done.records
            expected.textbook = expected.textbook.with_round(done, settings, covered_ms, planned_ms, "")
            assert (log.records_in, log.records_out, log.losers.total) == (
                len(below),
                len(left),
                len(below) - len(left),
            )
            assert log.changed == (log.horizon > before.dirty_from or below != left or bool(waited[log.partition]))
            assert log.segments_waiting == len(self.waiting(log.partition, together=part is not None))
            assert part == "one" or not log.segments_waiting
        if report.changed:
            self.rounds_committed += 1 if part != "all" else self._new_reports()
            assert report.version == self.topic.state.version > version
        self.compact_again(partitions, planned_ms)

    def _new_reports(self) -> int:
        """How many rounds committed: each that rewrites a part of a log has a report of its own (C42)."""
        new = len(list(reports_of(self.topic.warehouse.store, self.topic.state))) - min(self.rounds_committed, 100)
        assert new > 0 or self.rounds_committed >= 100
        return new

    def compact_again(self, partitions: tuple[int, ...] | None, now_ms: int) -> None:
        """C41: the same H and now: no version, no report."""
        state, reports = self.topic.state, list(reports_of(self.topic.warehouse.store, self.topic.state))
        left = [place for place in range(PARTITIONS) if self.waiting(place, together=False)]
        if left or any(log.log_end_offset != log.first_dirty_offset for log in state.logs):
            return  # something was appended on the way, is held back, or is left by a round that rewrites in parts
        again = self.topic.compact(now_ms, partitions)
        assert not again.changed
        assert self.topic.state == state
        assert list(reports_of(self.topic.warehouse.store, state)) == reports

    def _race(self, records: Sequence[Record]) -> None:
        """C44: an append is no conflict for a round."""
        if not records:
            return
        batch = [r._replace(partition=0, key=r.key or b"") for r in records]
        self._appended(0, self.topic.append(batch).ranges[0].start_offset, batch)

    @rule(place=PLACES, share=st.floats(0, 1))
    def read_from_anywhere(self, place: int, share: float) -> None:
        """C2, C37: every offset of [S, E] is a place to start; the next record that is left comes."""
        log = self.logs[place]
        start = round(share * log.textbook.end)
        expected = [r for r in log.textbook.records if at(r) >= start]
        reader = self.topic.reader(place, start)
        assert reader.has_message_available() == bool(expected)
        assert list(reader) == expected
        assert not reader.has_message_available()
        for outside in (-1, log.textbook.end + 1):
            with pytest.raises(OffsetOutOfRangeError):
                self.topic.reader(place, outside)

    @rule(place=PLACES, at_ms=st.integers(0, 60))
    def read_from_a_time(self, place: int, at_ms: int) -> None:
        """C37: the first record, in offset order, whose timestamp is at or after it; none: the end."""
        records = self.logs[place].textbook.records
        first = next((n for n, r in enumerate(records) if (r.timestamp or 0) >= at_ms), len(records))
        assert list(self.topic.reader(place, AtTime(at_ms))) == list(records[first:])

    @rule(place=PLACES)
    def open_a_reader(self, place: int) -> None:
        self.old_reader = (self.topic.reader(place), list(self.logs[place].textbook.records))

    @precondition(lambda self: self.old_reader is not None)
    @rule()
    def read_on(self) -> None:
        """C7: a reader reads the version that it was opened on, whatever came since."""
        assert self.old_reader is not None
        reader, expected = self.old_reader
        assert list(reader) == expected
        self.old_reader = None

    @rule()
    def follow(self) -> None:
        """C3, C7: a following reader goes on in the newest version, at the same offset."""
        position = self.follower.position
        try:
            got = [r for batch in self.follower.poll() for r in batch.records()]
        except LogTruncatedError:
            found = continuation(self.follower.cursor(), self.topic.state, self.topic.log(0), compacted=False)
            assert isinstance(found, MissedDeletes)  # C49
            self.follower = self.topic.reader(0, position, follow=True)
            got = [r for batch in self.follower.poll() for r in batch.records()]
        assert got == [r for r in self.logs[0].textbook.records if at(r) >= position]
        assert self.follower.position == self.logs[0].textbook.end
        self.followed += got

    @rule()
    def status(self) -> None:
        """C27, C14: as the textbook sees it."""
        status = topic_status(self.topic.warehouse, self.topic.state)
        for log, expected in zip(status.logs, self.logs, strict=True):
            assert (log.log_start_offset, log.log_end_offset) == (0, expected.textbook.end)
            assert expected.textbook.dirty_from == log.first_dirty_offset <= log.horizon <= expected.textbook.end
            assert log.records == len(expected.textbook.records)
            sizes = {s.path: s.size_bytes for s in self.topic.segments(log.partition)}
            assert log.bytes == sum(sizes.values())
            assert log.clean_bytes + log.dirty_bytes <= log.bytes

    @invariant()
    def every_log_reads_as_the_textbook_has_it(self) -> None:
        for place, log in enumerate(self.logs):
            assert tuple(self.topic.records(place)) == log.textbook.records

    @invariant()
    def no_key_loses_its_newest_value(self) -> None:
        """C3: whatever the rounds did, the newest value of every key is there, and all above D."""
        for place, log in enumerate(self.logs):
            there = {r.offset: r for r in self.topic.records(place)}
            assert all(there.get(r.offset) == r for r in log.ever if at(r) >= log.textbook.dirty_from)
            newest = {r.key: r for r in log.ever if at(r) < log.textbook.dirty_from and r.key is not None}
            settings = self.topic.state.settings
            for record in newest.values():
                assert deletes(record, settings) or there.get(record.offset) == record

    @invariant()
    def the_metadata_says_the_truth(self) -> None:
        state = self.topic.state
        for place, (log, expected) in enumerate(zip(state.logs, self.logs, strict=True)):
            assert list(metadata_findings(state, log, self.topic.segments(place))) == []
            last = expected.textbook.records[-1] if expected.textbook.records else None
            assert (log.log_end_offset, log.first_dirty_offset) == (expected.textbook.end, expected.textbook.dirty_from)
            found = self.topic.reader(place).last_message_id()
            assert (found.offset, found.timestamp_ms) == (last.offset, last.timestamp) if found and last else not last
        assert len(list(reports_of(self.topic.warehouse.store, state))) == min(self.rounds_committed, 100)


TestTopicMachine = TopicMachine.TestCase
TestTopicMachine.settings = profile(max_examples=60, stateful_step_count=25)
