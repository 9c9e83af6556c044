"""Round after round over a growing log: what is left is what the contract says of the whole log.

A round looks at the dirty part and at few of the clean segments. The textbook beside it knows no
segments, no plan and no steps: it has every record in one list, and the time of every round, and
works everything out anew. That the two agree is what proves the pruning and the bookkeeping
(C1, C4, C14, C16, C18, C19, C22, C38, C39, C41).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lithify.compaction.steps as steps_module
from lithify.compaction.outcome import LogOutcome, measured
from lithify.compaction.steps import step_of
from lithify.model.record import Record
from lithify.model.settings import TopicSettings
from support.builders import some_settings
from support.log_strategies import some_records
from support.pure_rounds import PureLog
from support.textbook import Textbook

DURATIONS = st.sampled_from([0, 1, 7, 30])


class Rounds(RuleBasedStateMachine):
    """One log, its rounds, and the textbook beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.log = PureLog()
        self.textbook = Textbook()
        self.now_ms = 1000
        self.config: dict[str, object] = {}

    @initialize(retention=DURATIONS, empty=st.sampled_from(["value", "tombstone"]), size=st.sampled_from([1024, 10**6]))
    def choose(self, retention: int, empty: str, size: int) -> None:
        self.config = {"delete_retention_ms": retention, "empty_value": empty, "segment_bytes": size}

    @rule(records=some_records(), gap=st.sampled_from([0, 0, 0, 3]))
    def append(self, records: Sequence[Record], gap: int) -> None:
        end = self.log.state.log_end_offset
        first = replace(records[0], offset=end + gap)
        self.log.append([first, *records[1:]])
        self.textbook.records += [r for r in self.log.contents if _offset(r) >= end]

    @rule(by=st.integers(0, 9))
    def delete_records(self, by: int) -> None:
        start = min(self.log.state.log_start_offset + by, self.log.state.log_end_offset)
        self.log.move_start(start)
        self.textbook.records = [r for r in self.textbook.records if _offset(r) >= start]

    @rule(
        records=st.just([]) | some_records() | some_records(),
        later=st.sampled_from([0, 1, 6, 7, 29, 30, 31, -5, -40]),
        null_key=st.sampled_from(["reject", "drop", "retain", "retain"]),
        lag=st.sampled_from([0, 0, 0, 970, 990]),
    )
    def round(self, records: Sequence[Record], later: int, null_key: str, lag: int) -> None:
        """Something new or nothing, some time later or earlier."""
        if records:
            self.append(records, gap=0)
        self.now_ms += later
        settings = some_settings(**self.config, null_key=null_key, min_compaction_lag_ms=lag)
        dirty_from = self.log.state.first_dirty_offset
        outcome = self.log.round(settings, self.now_ms)
        self.textbook.round(outcome.plan.horizon.offset, dirty_from, settings, self.now_ms)
        if outcome.changes:
            self.textbook.forget_below(self.log.state.log_start_offset)
        below = [self.log.records[s.path] for s in outcome.result]
        assert all(_offset(r) >= outcome.plan.rules.log_start for records in below for r in records)
        self.check_second_round(settings)
        self.check_bounds(outcome)

    def check_second_round(self, settings: TopicSettings) -> None:
        """C41: same H, same now: nothing to do, and nothing to read."""
        again = self.log.plan(settings, self.now_ms)
        assert again.is_idle, again

    def check_bounds(self, outcome: LogOutcome) -> None:
        """C30: the plan was an upper bound."""
        bounds = outcome.plan.bounds(1)
        assert sum(len(g.sources) for g in outcome.grouping.groups) <= bounds.segments_rewritten
        assert sum(s.size_bytes for s in outcome.written) <= bounds.bytes_written
        rewritten = sum(s.segment.size_bytes for g in outcome.grouping.groups for s in g.sources)
        assert rewritten + outcome.bytes_read <= bounds.bytes_read

    @invariant()
    def readers_see_what_the_textbook_has(self) -> None:
        start = self.log.state.log_start_offset
        assert [r for r in self.log.contents if _offset(r) >= start] == self.textbook.records

    @invariant()
    def offsets_ascend_over_all_segments(self) -> None:
        stored = [_offset(r) for r in self.log.contents]
        assert stored == sorted(set(stored))

    @invariant()
    def the_state_says_what_the_segments_hold(self) -> None:
        state = self.log.state
        assert state == measured(state, self.log.segments)
        assert state.log_start_offset <= state.first_dirty_offset <= state.log_end_offset
        last = self.log.contents[-1] if self.log.segments else None
        assert (state.last_record.offset if state.last_record else None) == (last.offset if last else None)

    @invariant()
    def every_step_counts_its_tombstones(self) -> None:
        """C19: none is unknown, and a step knows how many are left under it."""
        if not self.config:
            return
        settings, steps = some_settings(**self.config), self.log.state.steps
        counts = [0] * len(steps)
        for record in self.log.contents:
            index = step_of(steps, _offset(record))
            if record.key is not None and self.textbook.deletes(record, settings) and index is not None:
                counts[index] += 1
        assert counts == [step.tombstones for step in steps]
        ends = [step.end_offset for step in steps]
        assert ends == sorted(set(ends))
        assert [s.time_ms for s in steps] == sorted(s.time_ms for s in steps)


class LooseRounds(RuleBasedStateMachine):
    """The same with settings that change, commits later than plans, others at work, and few steps kept.

    Times may become later by folding, so a tombstone may stay longer than the textbook says. It
    never goes earlier, never brings a value back, and goes in the end (C5, C18, C19, C20).
    """

    STEPS_KEPT = 3

    def __init__(self) -> None:
        super().__init__()
        self.log = PureLog()
        self.textbook = Textbook()
        self.now_ms = 1000
        self.kept, steps_module.STEPS_KEPT = steps_module.STEPS_KEPT, self.STEPS_KEPT

    def teardown(self) -> None:
        try:
            self.all_tombstones_go_in_the_end()
        finally:
            steps_module.STEPS_KEPT = self.kept

    def _append(self, records: Sequence[Record]) -> None:
        end = self.log.state.log_end_offset
        self.log.append(records)
        self.textbook.records += [r for r in self.log.contents if _offset(r) >= end]

    @rule(
        records=some_records(most=4),
        later=st.sampled_from([0, 1, 7, 30, -5]),
        retention=st.sampled_from([0, 7, 30, 60, 100]),
        takes=st.sampled_from([0, 0, 10, 40]),
        others=st.none() | some_records(most=4),
    )
    def round(
        self, records: Sequence[Record], later: int, retention: int, takes: int, others: Sequence[Record] | None
    ) -> None:
        settings = some_settings(delete_retention_ms=retention, null_key="drop")
        self._append(records)
        now_ms = self.now_ms + later
        self.now_ms = now_ms + takes
        dirty_from = self.log.state.first_dirty_offset
        before = list(self.textbook.records)
        outcome = self.log.round(settings, now_ms, commit_ms=self.now_ms, meanwhile=lambda: self._append(others or []))
        horizon = outcome.plan.horizon.offset
        self.check_left(before, horizon, settings, now_ms)
        self.textbook.records = list(self.log.contents)
        if horizon > dirty_from:
            self.textbook.cover(horizon, self.now_ms)

    def check_left(self, before: Sequence[Record], horizon: int, settings: TopicSettings, now_ms: int) -> None:
        below = [r for r in before if _offset(r) < horizon and r.key is not None]
        newest = {r.key: r for r in below}
        left = {r.key: r for r in self.log.contents if _offset(r) < horizon}
        for key, winner in newest.items():
            if key in left:
                assert left[key] == winner
            else:
                assert self.textbook.expires(winner, settings, now_ms), f"{winner} went too early"
        assert set(left) <= set(newest)

    @invariant()
    def steps_are_few(self) -> None:
        assert len(self.log.state.steps) <= self.STEPS_KEPT

    def all_tombstones_go_in_the_end(self) -> None:
        """C19: T is never unknown, so every tombstone goes once enough time has passed."""
        settings = some_settings(delete_retention_ms=100, null_key="drop")
        for later in (10**6, 10**6 + 100):
            self.log.round(settings, self.now_ms + later)
        assert [r for r in self.log.contents if r.value is None] == []


def _offset(record: Record) -> int:
    assert record.offset is not None
    return record.offset


TestRounds = Rounds.TestCase
TestRounds.settings = profile(max_examples=300, stateful_step_count=30)
TestLooseRounds = LooseRounds.TestCase
TestLooseRounds.settings = profile(max_examples=200, stateful_step_count=25)
