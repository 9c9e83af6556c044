"""Round after round over a growing log: what is left is what the contract says of the whole log.

A round looks at the dirty part and at few of the clean segments. The textbook beside it knows no
segments, no plan and no steps: it has every record in one list, and the time of every round, and
works everything out anew. That the two agree is what proves the pruning and the bookkeeping
(C1, C4, C10, C14, C16, C18 to C20, C22, C24, C26, C33, C34, C38, C39, C41, C53).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lithify.rules.compaction.tombstones as steps_module
from lithify.model.log_arithmetic import measured, view_of
from lithify.model.names import LogId, TopicName
from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings
from lithify.rules.compaction.decisions import work_of
from lithify.rules.compaction.eligible.retention import gone_segments
from lithify.rules.compaction.outcome import LogOutcome
from lithify.rules.compaction.plan_bounds import bounds_of
from lithify.rules.lifecycle.cuts import records_deleted, retained
from lithify.testing.oracle_engine import step_of
from support.builders import some_settings
from support.generated.logs import STRATEGIES, some_records, with_whole_entries
from support.textbook.log import TextbookLog
from support.textbook.records import at, deletes
from support.textbook.rounds import Cover
from support.topics.pure_rounds import PureLog

ID = LogId(TopicName("default", "orders"), 0)
BATCHES = some_records().map(with_whole_entries)
DURATIONS = st.sampled_from([0, 1, 7, 30])


class Rounds(RuleBasedStateMachine):
    """One log under one strategy, policy and mode, its rounds, and the textbook beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.log = PureLog()
        self.textbook = TextbookLog(0)
        self.now_ms = 1000
        self.config: dict[str, object] = {}

    @initialize(
        retention=DURATIONS,
        empty=st.sampled_from(["value", "tombstone"]),
        size=st.sampled_from([100, 1024, 10**6]),
        strategy=STRATEGIES,
        mode=st.sampled_from(["in-place", "in-place", "side-by-side"]),
        limits=st.sampled_from([(-1, -1), (-1, -1), (960, -1), (-1, 150), (980, 100)]),
        dead=st.sampled_from([0, 0.5, 1, 1]),
    )
    def choose(
        self, retention: int, empty: str, size: int, strategy: str, mode: str, limits: tuple[int, int], dead: float
    ) -> None:
        self.config = {
            "segment_max_dead_ratio": dead,
            "delete_retention_ms": retention,
            "empty_value": empty,
            "segment_bytes": size,
            "compaction_strategy": strategy,
            "compaction_strategy_header": "h",
            "compaction_mode": mode,
            "cleanup_policy": "compact" if limits == (-1, -1) else "compact,delete",
            "retention_ms": limits[0],
            "retention_bytes": limits[1],
        }

    @rule(records=BATCHES, gap=st.sampled_from([0, 0, 0, 3]))
    def append(self, records: Sequence[Record], gap: int) -> None:
        end = self.log.state.log_end_offset
        first = records[0]._replace(offset=end + gap)
        self.log.append([first, *records[1:]])
        new = tuple(r for r in self.log.contents if at(r) >= end)
        self.textbook = self.textbook.appended(new, self.log.state.log_end_offset)

    @rule(by=st.integers(0, 9))
    def delete_records(self, by: int) -> None:
        start = min(self.log.state.log_start_offset + by, self.log.state.log_end_offset)
        self.log.state = records_deleted(ID, self.log.state, start, self.log.segments)
        self.textbook = self.textbook.records_deleted(start)

    @rule(
        batches=st.just([]) | st.lists(some_records(most=4).map(with_whole_entries), min_size=3, max_size=3),
        share=st.floats(0, 1),
        later=st.sampled_from([0, 1, 30]),
    )
    def retain(self, batches: Sequence[Sequence[Record]], share: float, later: int) -> None:
        """As a cleaner does before its rounds; sometimes records were deleted just before, in what rounds have merged.

        A large record goes first, so that what follows is merged without it.
        """
        if not some_settings(**self.config).deletes:
            return
        for records in ([Record(b"large", bytes(900), 50)], *batches) if batches else ():
            self.round(records, 1, "retain", {})
        state = self.log.state
        self.delete_records(round(share * (state.log_end_offset - state.log_start_offset)))
        self.now_ms += later
        settings = some_settings(**self.config)
        self.textbook = self.textbook.retained(self.log.segments, settings, self.now_ms)
        gone = gone_segments(self.log.state, self.log.segments, settings, self.now_ms)
        if gone:
            left = self.log.segments[len(gone) :]
            self.log.state = retained(self.log.state, gone, left, settings)
            self.log.segments = left

    @rule(
        records=st.just([]) | BATCHES | BATCHES,
        later=st.sampled_from([0, 1, 6, 7, 29, 30, 31, -5, -40]),
        null_key=st.sampled_from(["reject", "drop", "retain", "retain"]),
        lag=st.sampled_from([{}, {}, {}, {"min_compaction_lag_ms": 970}, {"min_compaction_lag_bytes": 80}]),
    )
    def round(self, records: Sequence[Record], later: int, null_key: str, lag: dict[str, int]) -> None:
        """Something new or nothing, some time later or, where nothing can be held, earlier."""
        if records:
            self.append(records, gap=0)
        self.now_ms += later if self.config["compaction_strategy"] == "offset" else abs(later)
        settings = some_settings(**self.config, null_key=null_key, **lag)
        planned, segments, sealed = self.textbook, self.log.segments, self.textbook.sealed
        outcome = self.log.round(settings, self.now_ms)
        done = planned.rounded(segments, settings, self.now_ms, {at(r) for r in self.log.compacted})
        assert outcome.plan.horizon.offset == done.horizon
        self.textbook = planned.with_round(done, settings, self.now_ms, self.now_ms, "")
        assert self.log.state.log_start_offset == self.textbook.start
        below = [self.log.records[s.id] for s in outcome.result]
        assert all(at(r) >= outcome.plan.rules.log_start for records in below for r in records)
        if sealed <= self.textbook.sealed:  # C53
            self.check_second_round(settings)
        self.check_bounds(outcome)

    def check_second_round(self, settings: TopicSettings) -> None:
        """C41: same H, same now: nothing to do, and nothing to read.

        But for old tombstones at the front of the log: their segment is past retention once its young
        records have gone, and goes whole by the next round (C24).
        """
        again = self.log.plan(settings, self.now_ms)
        old = [r for r in self.log.records_in(again.gone) if r.key is not None and deletes(r, settings)]
        if again.gone and len(old) == len(self.log.records_in(again.gone)):
            return
        assert again.is_idle, again

    def check_bounds(self, outcome: LogOutcome) -> None:
        """C30: the plan was an upper bound."""
        bounds = bounds_of(outcome.plan, 1)
        rewritten = [s for one in work_of(done.decision for done in outcome.applied) for s in one.segments]
        assert len(rewritten) <= bounds.segments_rewritten
        assert sum(s.size_bytes for s in outcome.written) <= bounds.bytes_written
        assert sum(s.size_bytes + s.mask_bytes for s in rewritten) + outcome.bytes_read <= bounds.bytes_read

    @invariant()
    def readers_see_what_the_textbook_has(self) -> None:
        """C26, C33: of the log and, where there is one, of the view."""
        start = self.log.state.log_start_offset
        assert tuple(r for r in self.log.contents if at(r) >= start) == self.textbook.reading(compacted=False)
        assert self.log.compacted == self.textbook.reading(compacted=True)

    @invariant()
    def offsets_ascend_over_all_segments(self) -> None:
        for segments in (self.log.segments, self.log.view):
            stored = [at(r) for r in self.log.records_in(segments)]
            assert stored == sorted(set(stored))

    @invariant()
    def the_state_says_what_the_segments_hold(self) -> None:
        """C27, C36."""
        log, state = self.log, self.log.state
        assert state == measured(state, log.segments)
        assert state.log_start_offset <= state.first_dirty_offset <= state.log_end_offset
        plain = self.textbook.reading(compacted=False)
        for last, records in ((state.last_record, plain), (state.compacted_last_record, log.compacted)):
            assert (last.offset if last else None) == (at(records[-1]) if records else None)
        if state.view is not None:
            assert state.view == view_of(
                log.view,
                state.view.last_record,
                state.view.start_offset,
                losers_removed=state.view.losers_removed,
            )

    @invariant()
    def every_step_counts_its_tombstones(self) -> None:
        """C19: none is unknown, and a step knows how many are left under it at most; without retention, exactly."""
        if not self.config:
            return
        settings, steps = some_settings(**self.config), self.log.state.steps
        counts = [0] * len(steps)
        stored = self.log.records_in(self.log.view) if settings.side_by_side else self.log.contents
        for record in stored:
            index = step_of(steps, at(record))
            if record.key is not None and deletes(record, settings) and index is not None:
                counts[index] += 1
        there = [step.tombstones for step in steps]
        assert all(count <= most for count, most in zip(counts, there, strict=True))
        if not settings.deletes and not self.log.state.deleted_below:
            assert counts == there
        ends = [step.end_offset for step in steps]
        assert ends == sorted(set(ends))
        assert [s.time_ms for s in steps] == sorted(s.time_ms for s in steps)

    @invariant()
    def no_tombstone_is_without_its_time(self) -> None:
        """C19: every one that a round has left is covered by a step."""
        if not self.config:
            return
        state, settings = self.log.state, some_settings(**self.config)
        for record in self.log.compacted:
            clean = at(record) < state.first_dirty_offset
            if clean and record.key is not None and deletes(record, settings):
                assert step_of(state.steps, at(record)) is not None


class LooseRounds(RuleBasedStateMachine):
    """The same with settings that change, commits later than plans, others at work, and few steps kept.

    Times may become later by folding, so a tombstone may stay longer than the textbook says. It
    never goes earlier, never brings a value back, and goes in the end (C5, C18, C19, C20).
    """

    STEPS_KEPT = 3

    def __init__(self) -> None:
        super().__init__()
        self.log = PureLog()
        self.textbook = TextbookLog(0)
        self.now_ms = 1000
        self.kept, steps_module.STEPS_KEPT = steps_module.STEPS_KEPT, self.STEPS_KEPT

    def teardown(self) -> None:
        try:
            self.all_tombstones_go_in_the_end()
        finally:
            steps_module.STEPS_KEPT = self.kept

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
        self.log.append(records)
        now_ms = self.now_ms + later
        self.now_ms = now_ms + takes
        dirty_from = self.log.state.first_dirty_offset
        before = self.log.contents
        outcome = self.log.round(
            settings, now_ms, commit_ms=self.now_ms, meanwhile=lambda: self.log.append(others or [])
        )
        horizon = outcome.plan.horizon.offset
        self.check_left(before, horizon, settings, now_ms)
        if horizon > dirty_from:
            covers = self.textbook.low
            latest_ms = max([self.now_ms, *(c.time_ms for c in covers[-1:])])
            self.textbook = replace(self.textbook, low=(*covers, Cover(horizon, latest_ms)))

    def check_left(self, before: Sequence[Record], horizon: int, settings: TopicSettings, now_ms: int) -> None:
        below = [r for r in before if at(r) < horizon and r.key is not None]
        newest = {r.key: r for r in below}
        left = {r.key: r for r in self.log.contents if at(r) < horizon}
        for key, winner in newest.items():
            if key in left:
                assert left[key] == winner
            else:
                since_ms, _ = self.textbook.ages(at(winner))
                old = since_ms is not None and now_ms >= since_ms + settings.delete_retention_ms
                assert deletes(winner, settings) and (old or not settings.delete_retention_ms), f"{winner} went early"
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


TestRounds = Rounds.TestCase
TestRounds.settings = profile(max_examples=80, stateful_step_count=25)
TestLooseRounds = LooseRounds.TestCase
TestLooseRounds.settings = profile(max_examples=50, stateful_step_count=25)
