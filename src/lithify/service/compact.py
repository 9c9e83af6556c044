"""A round, from plan to commit: `compact` and `compact --plan` (C14, C30, C41, C42, C44).

    load ─► plan ─► key pass ─► group ─► rewrite ─► audit ─► commit ─► report
             ▲      └────────── execute ──────────┘           │
             └───── logs that someone else changed meanwhile ◄┘

All logs of a run go through the engine together and are committed together. A log that fails is
left as it was and reported; the others go on (C31).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from lithify.compaction.outcome import LogOutcome
from lithify.compaction.planner import LogPlan, plan_log
from lithify.compaction.reporting import failed_report, idle_outcome, outcome_report
from lithify.errors import (
    ConflictError,
    InsufficientSpaceError,
    LithifyError,
    PolicyError,
    UnknownOutcomeError,
)
from lithify.model.log import TopicState, segments_of
from lithify.model.names import LogId, TopicName
from lithify.model.report import LogReport, RoundReport
from lithify.model.units import format_bytes
from lithify.ports import Clock, Progress, RewriteEngine, RunLimits, Warehouse
from lithify.service.execute import Outcomes, execute
from lithify.service.publish import publish

REPLANS = 5
"""How often logs that someone else changed under a round are planned in one run."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What was asked for. `now_ms` judges lags and expiry; None is the clock."""

    partitions: tuple[int, ...] | None = None
    now_ms: int | None = None
    limits: RunLimits = RunLimits()


def plan_run(warehouse: Warehouse, state: TopicState, request: RunRequest) -> tuple[LogPlan, ...]:
    """The rounds that a run would do now, one per log that was asked for (C30).

    Raises `PolicyError` where the topic does not compact, `UnknownTopicError` for a partition that
    it does not have.
    """
    if not state.settings.compacts:
        raise PolicyError(
            f"{state.name}: cleanup.policy={state.settings.cleanup_policy} does not compact",
            hint="`lithify retain` applies its retention",
        )
    partitions = tuple(state.partitions) if request.partitions is None else request.partitions
    for partition in partitions:
        state.check_partition(partition)
    now_ms = warehouse.clock.now_ms() if request.now_ms is None else request.now_ms
    segments = warehouse.store.segments(state, partitions)
    view = warehouse.store.view(state, partitions) if state.settings.side_by_side else ()
    return tuple(
        plan_log(state.log(p), segments_of(segments, p), state.settings, now_ms, segments_of(view, p))
        for p in partitions
    )


def compact(
    warehouse: Warehouse,
    engine: RewriteEngine,
    name: TopicName,
    request: RunRequest,
    progress: Progress = lambda _phase, _done, _total: None,
) -> RoundReport:
    """One round now over the logs of a topic, whatever their dirty ratio (C30).

    A log that fails has an `error` in the report. Raises `UnknownTopicError`, `PolicyError`, or
    `UnknownOutcomeError` if the answer to the commit was lost for good.
    """
    watch = _Stopwatch(warehouse.clock)
    state = warehouse.store.load(name)
    # Once, so that what is said to the first of several attempts holds for the others (C40).
    request = replace(request, limits=replace(request.limits, note=warehouse.store.rates_note(state)))
    run = _Run(warehouse, name, request, watch, warehouse.clock.new_id())
    reports: dict[int, LogReport] = {}
    wanted = request.partitions
    for attempt in range(REPLANS):
        with run.watch.phase("plan"):
            plans = plan_run(warehouse, state, replace(request, partitions=wanted, now_ms=run.now_ms))
        run_id = run.run_id if attempt == 0 else warehouse.clock.new_id()  # new files never meet those of before
        outcomes = run.outcomes(engine, state, plans, run_id, progress)
        state, left_out = run.publish(state, outcomes, reports, run_id)
        if not left_out:
            break
        wanted = tuple(left_out)
    else:
        for partition, reason in left_out.items():
            error = ConflictError(f"{LogId(name, partition)}: {reason}, {REPLANS} times in a row", hint="try again")
            reports[partition] = failed_report(state.log(partition), error, run.watch.phases_ms)
    return run.report(state.version, tuple(reports[p] for p in sorted(reports)))


@dataclass(frozen=True, slots=True)
class _Run:
    """What the attempts of one run share."""

    warehouse: Warehouse
    name: TopicName
    request: RunRequest
    watch: _Stopwatch
    run_id: str

    @property
    def now_ms(self) -> int:
        return self.watch.started_ms if self.request.now_ms is None else self.request.now_ms

    def outcomes(
        self, engine: RewriteEngine, state: TopicState, plans: Sequence[LogPlan], run_id: str, progress: Progress
    ) -> Outcomes:
        """What becomes of each log, up to and without the commit."""
        outcomes: Outcomes = {plan.partition: idle_outcome(plan) for plan in plans if plan.is_idle}
        work = [plan for plan in plans if not plan.is_idle]
        if not work:
            return outcomes
        try:
            self._check_space(state, work)
            with engine.open_round(state, work, self.request.limits, run_id, progress) as round_:
                outcomes.update(execute(state, work, round_, self.watch.phase))
        except LithifyError as error:
            outcomes.update({plan.partition: error for plan in work})
        return outcomes

    def publish(
        self, state: TopicState, outcomes: Outcomes, reports: dict[int, LogReport], run_id: str
    ) -> tuple[TopicState, dict[int, str]]:
        """Commits what changed and reports on every log but those left out, which are returned."""
        done = {p: outcome for p, outcome in outcomes.items() if isinstance(outcome, LogOutcome)}
        changed = {p: outcome for p, outcome in done.items() if outcome.changes}
        for partition, outcome in outcomes.items():
            if isinstance(outcome, LithifyError):
                reports[partition] = failed_report(state.log(partition), outcome, self.watch.phases_ms)
        left_out: dict[int, str] = {}
        if changed:
            try:
                with self.watch.phase("commit"):
                    published = publish(
                        self.warehouse,
                        state,
                        changed,
                        run_id=run_id,
                        now_ms=self.request.now_ms,
                        make_report=lambda version, logs: replace(
                            self.report(version, tuple(outcome_report(changed[p], self.watch.phases_ms) for p in logs)),
                            run_id=run_id,
                        ),
                    )
            except UnknownOutcomeError:
                raise  # whether the logs are as they were is just what nobody knows
            except LithifyError as error:
                reports.update({p: failed_report(state.log(p), error, self.watch.phases_ms) for p in changed})
                done = {p: outcome for p, outcome in done.items() if p not in changed}
            else:
                state, left_out = published.state, dict(published.left_out)
        reports.update({p: outcome_report(o, self.watch.phases_ms) for p, o in done.items() if p not in left_out})
        return state, left_out

    def report(self, version: int, logs: tuple[LogReport, ...]) -> RoundReport:
        return RoundReport(
            topic=str(self.name),
            version=version,
            changed=any(log.changed for log in logs),
            logs=logs,
            duration_ms=self.warehouse.clock.now_ms() - self.watch.started_ms,
            now_ms=self.now_ms,
            now_given=self.request.now_ms is not None,
            run_id=self.run_id,
        )

    def _check_space(self, state: TopicState, plans: Sequence[LogPlan]) -> None:
        """A round needs room for its new segments while the old ones are still there (C42)."""
        free = self.warehouse.files.free_bytes(state)
        needed = sum(plan.bounds(1).bytes_written for plan in plans)
        if free is not None and free < needed:
            raise InsufficientSpaceError(
                f"{self.name}: the round may write {format_bytes(needed)}, the warehouse has {format_bytes(free)} free",
                hint="make room, or compact fewer partitions at a time with --partition",
            )


@dataclass(slots=True)
class _Stopwatch:
    """How long each phase took, in ms, summed over attempts."""

    clock: Clock
    started_ms: int = 0
    phases_ms: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.started_ms = self.clock.now_ms()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun_ms = self.clock.now_ms()
        try:
            yield
        finally:
            self.phases_ms[name] = self.phases_ms.get(name, 0) + self.clock.now_ms() - begun_ms
