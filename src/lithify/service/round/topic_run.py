"""One topic of a run: its plans, its commit and its report (C42, C44).

Its errors do not stop the other topics of the run (C50).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lithify.errors import (
    ConflictError,
    DamagedError,
    LithifyError,
    PolicyError,
    UnknownOutcomeError,
    UnknownVersionError,
)
from lithify.errors.defects import as_lithify_error
from lithify.model.groups.reads import NO_READS, TopicReads
from lithify.model.names import LogId, TopicName
from lithify.model.segment import by_partition
from lithify.model.settings.rates import RatesNote
from lithify.model.topic.state import TopicState
from lithify.ports.engine import PlannedLog
from lithify.ports.store import Warehouse
from lithify.reports.rounds.round import LogReport, RoundReport
from lithify.rules.compaction.decisions import MaskLimits
from lithify.rules.compaction.outcome import LogOutcome
from lithify.rules.compaction.planner import LogPlan, of_view_only, plan_log
from lithify.rules.compaction.round_commit import LATE_APPEND
from lithify.rules.compaction.round_report import failed_report, outcome_report
from lithify.rules.compaction.tombstones import keeping_tombstones
from lithify.rules.lifecycle.replicas import check_takes_rounds
from lithify.service.clock_check import check_clock
from lithify.service.documents import may_have_masks, rates_note
from lithify.service.group_reads import read_groups
from lithify.service.round.commit_round import PlannedAt, commit_round, overtaken
from lithify.service.round.stopwatch import Stopwatch

LATE_APPENDS = 2
"""How often a log is left out for records that are appended meanwhile. Its next round drops no expired tombstone, and
commits; the log remains due for them (C20, C21)."""

LogOutcomes = Mapping[int, LogOutcome | LithifyError]
"""By partition of one topic, the outcome of its log before the commit."""


@dataclass(frozen=True, slots=True)
class TopicResult:
    """The result of one topic: its report, its state then, and by partition the errors of unchanged logs."""

    report: RoundReport
    state: TopicState
    errors: Mapping[int, LithifyError]


@dataclass(slots=True)
class TopicRun:
    """One topic during its rounds."""

    warehouse: Warehouse
    name: TopicName
    given_now_ms: int | None
    watch: Stopwatch
    run_id: str
    wanted: tuple[int, ...] | None
    """Partitions that are still to be planned; None is all."""
    state: TopicState | None = None
    rewrite_bytes: int | None = None
    """How much each of its logs may rewrite."""
    plans: dict[int, LogPlan] = field(default_factory=dict)
    """By partition, what was planned last, on that version."""
    reports: dict[int, LogReport] = field(default_factory=dict)
    errors: dict[int, LithifyError] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)
    late: Counter[int] = field(default_factory=Counter)
    """By partition, how often its log was left out for records that were appended meanwhile."""
    failure: LithifyError | None = None
    """Of the topic as a whole."""
    reads: TopicReads = NO_READS
    """How far the groups that it names had read it when it was planned last."""
    now_ms: int = 0
    """The time for lags and expiry. Each attempt reads it right after the state: a run that was suspended in
    between would otherwise see later commits of others and conclude that its clock is behind."""

    @property
    def is_pending(self) -> bool:
        """Whether there are logs to plan, for the first time or again."""
        return self.failure is None and self.wanted != ()

    def load(self) -> None:
        """Reads the newest version, unless it was given."""
        try:
            self.state = self.state or self.warehouse.store.load(self.name)
        except Exception as error:
            self.failure = as_lithify_error(error, self.name)
        self._read_clock()

    def rates_notes(self) -> tuple[RatesNote, ...]:
        """The stored rates of this topic's rounds, if any."""
        try:
            return () if self.state is None else (rates_note(self.warehouse.store, self.state),)
        except Exception as error:
            self.failure = as_lithify_error(error, self.name)
            return ()

    def plan(self) -> tuple[PlannedLog, ...]:
        """The rounds of the logs that are still wanted."""
        assert self.state is not None  # else it is not pending
        try:
            plans = self._planned()
            if self.given_now_ms is None and not all(plan.is_idle for plan in plans):
                check_clock(self.warehouse.clock, self.state, self.now_ms)
        except Exception as error:
            self._give_up(as_lithify_error(error, self.name))
            return ()
        self.plans = {plan.partition: plan for plan in plans}
        return tuple(PlannedLog(self.state, plan) for plan in plans)

    def commit(self, outcomes: LogOutcomes, run_id: str) -> None:
        """Commits what changed and reports on every log but those left out, which remain wanted."""
        done = {p: outcome for p, outcome in outcomes.items() if isinstance(outcome, LogOutcome)}
        planned_on = self.state
        newest, again = self._sort_out({p: o for p, o in outcomes.items() if isinstance(o, LithifyError)})
        changed = {p: outcome for p, outcome in done.items() if outcome.changes}
        self.left_out = {}
        if changed:
            try:
                with self.watch.phase("commit"):
                    self._commit(changed, run_id)
            except UnknownOutcomeError as error:
                self.failure = error  # whether the logs have changed is unknown
                return
            except Exception as error:
                for partition in changed:
                    self._fail(partition, as_lithify_error(error, self.name))
                done = {p: outcome for p, outcome in done.items() if p not in changed}
        if again and self.state is planned_on:  # else it was committed since
            self.state = newest
        self.left_out |= again
        if self.left_out:
            self._read_clock()
        self.reports |= {
            p: outcome_report(outcome, self.watch.phases_ms) for p, outcome in done.items() if p not in self.left_out
        }
        self.wanted = tuple(self.left_out)

    def result(self, attempts: int) -> TopicResult | LithifyError:
        """Its result after this number of attempts."""
        if self.failure is not None or self.state is None:
            assert self.failure is not None
            return self.failure
        for partition, reason in self.left_out.items():
            log = LogId(self.name, partition)
            self._fail(partition, ConflictError(f"{log}: {reason}, {attempts} times in a row", hint="try again"))
        logs = tuple(self.reports[partition] for partition in sorted(self.reports))
        return TopicResult(self._report(self.state.version, logs), self.state, self.errors)

    def _planned(self) -> tuple[LogPlan, ...]:
        """Planned on the version that was read, or on the newest if that one expired meanwhile."""
        assert self.state is not None
        try:
            return self._plans()
        except (DamagedError, UnknownVersionError):
            newest = self.warehouse.store.load(self.name)
            if newest.identity != self.state.identity or newest.version == self.state.version:
                raise
            self.state = newest
            self._read_clock()
            return self._plans()

    def _plans(self) -> tuple[LogPlan, ...]:
        assert self.state is not None
        self.reads = read_groups(self.warehouse, self.state)
        keeping = {partition for partition, times in self.late.items() if times >= LATE_APPENDS}
        plans = plan_rounds(self.warehouse, self.state, self.wanted, self.now_ms, self.reads, keeping)
        return tuple(replace(plan, rewrite_bytes=self.rewrite_bytes) for plan in plans)

    def _sort_out(self, errors: Mapping[int, LithifyError]) -> tuple[TopicState | None, Mapping[int, str]]:
        """Notes what failed; returns the newest version, and by partition why a log is to be planned again instead.

        A file that is missing or damaged counts only where the newest version needs it too: others may have
        replaced it, and a sweep may have deleted it, while the round stalled.
        """
        assert self.state is not None
        newest: TopicState | None = None
        again: Mapping[int, str] = {}
        damaged = {p: self.plans[p] for p, error in errors.items() if isinstance(error, DamagedError)}
        if damaged:
            try:
                newest, again = overtaken(self.warehouse, self.state, damaged)
            except Exception as error:
                errors = {**errors, **dict.fromkeys(damaged, as_lithify_error(error, self.name))}
        for partition in errors.keys() - again.keys():
            self._fail(partition, errors[partition])
        return newest, again

    def _commit(self, changed: Mapping[int, LogOutcome], run_id: str) -> None:
        assert self.state is not None

        def report(version: int, logs: tuple[int, ...]) -> RoundReport:
            made = self._report(version, tuple(outcome_report(changed[p], self.watch.phases_ms) for p in logs))
            return replace(made, run_id=run_id)

        planned = PlannedAt(self.state, self.now_ms, self.given_now_ms is not None)
        committed = commit_round(self.warehouse, planned, changed, run_id=run_id, make_report=report)
        self.state, self.left_out = committed.state, dict(committed.left_out)
        self.late.update(p for p, reason in self.left_out.items() if reason == LATE_APPEND)

    def _read_clock(self) -> None:
        self.now_ms = self.warehouse.clock.now_ms() if self.given_now_ms is None else self.given_now_ms

    def _give_up(self, error: LithifyError) -> None:
        """Ends the topic's part in the run with an error; logs already committed remain in the report."""
        if self.wanted is None or not any(report.changed for report in self.reports.values()):
            self.failure = error
            return
        for partition in self.wanted:
            self._fail(partition, error)
        self.wanted, self.left_out = (), {}

    def _fail(self, partition: int, error: LithifyError) -> None:
        assert self.state is not None
        self.errors[partition] = error
        self.reports[partition] = failed_report(self.state.log(partition), error, self.watch.phases_ms)

    def _report(self, version: int, logs: tuple[LogReport, ...]) -> RoundReport:
        return RoundReport(
            topic=str(self.name),
            version=version,
            changed=any(log.changed for log in logs),
            logs=logs,
            duration_ms=self.watch.duration_ms,
            now_ms=self.now_ms,
            now_given=self.given_now_ms is not None,
            run_id=self.run_id,
            groups_error=self.reads.error,
        )


def plan_rounds(
    warehouse: Warehouse,
    state: TopicState,
    partitions: Sequence[int] | None,
    now_ms: int,
    reads: TopicReads,
    keeping: Collection[int] = (),
) -> tuple[LogPlan, ...]:
    """The rounds that would run at `now_ms`, one per log of `partitions`, or of all, which groups have read so far.

    The rounds of the partitions `keeping` drop no expired tombstone.
    Raises `PolicyError` if the topic does not compact, `UnknownTopicError` for a partition that
    it does not have, `DamagedError` if a manifest cannot be read.
    """
    check_takes_rounds(state)
    if not state.settings.compacts:
        raise PolicyError(
            f"{state.name}: cleanup.policy={state.settings.cleanup_policy} does not compact",
            hint="apply its retention with `lithify retain`",
        )
    wanted = tuple(state.partitions) if partitions is None else partitions
    for partition in wanted:
        state.check_partition(partition)
    segments = warehouse.store.segments(state, wanted)
    view = warehouse.store.view(state, wanted) if state.settings.side_by_side else ()
    given = state.round_settings
    masks = MaskLimits.of(given, log_start=0)
    large = masks.max_dead_ratio > 0 and any(s.size_bytes >= masks.from_bytes for s in (*segments, *view))
    if large and not may_have_masks(warehouse.store, state):
        given = replace(given, segment_max_dead_ratio=0.0)

    logs, views = by_partition(segments), by_partition(view)

    def planned(p: int) -> LogPlan:
        settings = keeping_tombstones(given) if p in keeping else given
        return plan_log(state.log(p), logs.get(p, ()), settings, now_ms, views.get(p, ()), reads.of(p))

    plans = map(planned, wanted)
    return tuple(plans if state.replica is None else map(of_view_only, plans))
