"""A run: the rounds of logs of any number of topics, from plan to commit (C31, C41, C44).

    load ─► plan ─► key pass ─► group ─► rewrite ─► audit ─► commit of each topic ─► reports
             ▲      └───── execute, all logs together ────┘      │
             └────────── logs that other commits changed ◄─────────┘

All logs of a run pass the engine together, so that many small ones are one job. The logs of a topic
are committed together, and topics in parallel if a commit waits for other machines. A log
that fails remains unchanged and is reported; the others continue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby
from types import MappingProxyType
from typing import TYPE_CHECKING

from lithify.errors import InsufficientSpaceError, LithifyError, RoundAbandonedError
from lithify.errors.defects import as_lithify_error
from lithify.model.names import LogId, TopicName
from lithify.model.settings.units import format_bytes
from lithify.model.topic.state import TopicState
from lithify.ports.engine import (
    COMMIT,
    PlannedLog,
    Progress,
    RewriteEngine,
    Rewritten,
    Round,
    RunLimits,
    silent,
    unsaid,
)
from lithify.ports.store import Warehouse
from lithify.reports.rounds.plan import space_needed
from lithify.rules.compaction.audit import audit
from lithify.rules.compaction.decisions import Decision, work_of
from lithify.rules.compaction.outcome import LogFindings, LogOutcome, applied, decisions_of
from lithify.rules.compaction.plan_bounds import bounds_of
from lithify.rules.compaction.round_report import idle_outcome
from lithify.service.heartbeats import Heartbeats
from lithify.service.round.stopwatch import Stopwatch
from lithify.service.round.topic_run import LogOutcomes, TopicResult, TopicRun
from lithify.waits.parallel import for_each, parallel

if TYPE_CHECKING:
    from lithify.ports.profile import Profile

REPLANS = 5
"""How often one run plans a log that other commits change during the round."""

Wanted = Mapping[TopicName, tuple[int, ...] | None]
"""By topic, the partitions whose logs are to be compacted; None is all of them."""

Outcomes = Mapping[LogId, LogOutcome | LithifyError]
"""Of each log, what is to be committed, or why it failed."""


@dataclass(frozen=True, slots=True)
class Run:
    """What all logs of a run share. `now_ms` is the time for lags and expiry; None is the clock's."""

    warehouse: Warehouse
    engine: RewriteEngine
    limits: RunLimits = RunLimits()
    now_ms: int | None = None
    progress: Progress = silent
    notes: Callable[[str], None] = unsaid
    """Gets what is to be said before the rounds begin, as lines of text."""
    profile: Profile | None = None


def run_rounds(
    run: Run, wanted: Wanted, loaded: Mapping[TopicName, TopicState] = MappingProxyType({})
) -> dict[TopicName, TopicResult | LithifyError]:
    """One round now over the logs of each topic, at any dirty ratio.

    Topics that were `loaded` just now are not loaded again. A topic that cannot be loaded or planned
    has its error, and so has one whose commit's outcome is unknown.
    """
    clock, at_once = run.warehouse.clock, run.warehouse.store.at_once
    watch = Stopwatch(clock, run.profile)
    run_id = clock.new_id()
    topics = [
        TopicRun(run.warehouse, name, run.now_ms, watch, run_id, partitions, loaded.get(name), run.limits.rewrite_bytes)
        for name, partitions in wanted.items()
    ]
    for_each(TopicRun.load, topics, at_once)
    if len(topics) == 1:
        # Read once, so that rates set during the first of several attempts apply to the others (C40).
        run = replace(run, limits=replace(run.limits, notes=(*run.limits.notes, *topics[0].rates_notes())))
    for attempt in range(REPLANS):
        pending = [topic for topic in topics if topic.is_pending]
        if not pending:
            break
        if attempt:
            run_id = clock.new_id()  # file names differ from those of the attempt before
        with watch.phase("plan"):
            plans = parallel(TopicRun.plan, pending, at_once)
            planned = dict(zip((topic.name for topic in pending), plans, strict=True))
        if not attempt:
            _say_needed(run, planned)
        outcomes = _outcomes(run, [log for logs in planned.values() for log in logs], watch, run_id)
        by_topic = {name: {log.id.partition: outcomes[log.id] for log in logs} for name, logs in planned.items()}
        _commit(run, pending, by_topic, run_id)
    return {topic.name: topic.result(REPLANS) for topic in topics}


def _say_needed(run: Run, planned: Mapping[TopicName, Sequence[PlannedLog]]) -> None:
    """Says what free space each topic's rounds may need meanwhile (C42)."""
    for name, logs in planned.items():
        if needed := sum(bounds_of(log.plan, 1).bytes_written for log in logs):
            until_ms = run.warehouse.clock.now_ms() + logs[0].topic.settings.versions_retention_ms
            run.notes(space_needed(str(name), needed, until_ms))


def _commit(run: Run, topics: Sequence[TopicRun], by_topic: Mapping[TopicName, LogOutcomes], run_id: str) -> None:
    """Commits what changed of each topic, unless `progress` abandons the run."""
    begun = count()

    def commit(topic: TopicRun) -> None:
        outcomes = by_topic[topic.name]
        try:
            run.progress(COMMIT, next(begun), len(topics))
        except RoundAbandonedError as error:
            outcomes = {p: o if isinstance(o, LithifyError) else error for p, o in outcomes.items()}
        topic.commit(outcomes, run_id)

    for_each(commit, topics, run.warehouse.store.at_once)


def _outcomes(run: Run, logs: Sequence[PlannedLog], watch: Stopwatch, run_id: str) -> Outcomes:
    """The outcome of each planned log, before the commit."""
    outcomes: dict[LogId, LogOutcome | LithifyError] = {
        log.id: idle_outcome(log.plan) for log in logs if log.plan.is_idle
    }
    work: list[PlannedLog] = []
    needed_bytes = 0
    for _, group in groupby((log for log in logs if not log.plan.is_idle), key=lambda log: log.topic.name):
        busy = list(group)
        with_these = needed_bytes + sum(bounds_of(log.plan, 1).bytes_written for log in busy)
        lack = _lack_of_space(run.warehouse, busy[0].topic, with_these)
        if lack is None:
            work += busy
            needed_bytes = with_these
        else:
            outcomes |= {log.id: lack for log in busy}
    if work:
        try:
            topics = tuple({log.topic.name: log.topic for log in work}.values())
            progress = _with_heartbeats(run, run_id, topics)
            with run.engine.open_round(work, run.limits, run_id, progress) as round_:
                outcomes |= _execute(work, round_, watch)
        except LithifyError as error:
            outcomes |= {log.id: error for log in work}
    return outcomes


def _lack_of_space(warehouse: Warehouse, topic: TopicState, needed_bytes: int) -> LithifyError | None:
    """The error if the disk has less space: new segments are written before old ones are deleted (C42)."""
    try:
        free = warehouse.files.free_bytes(topic)
    except Exception as error:
        return as_lithify_error(error, topic.name)
    if free is None or free >= needed_bytes:
        return None
    return InsufficientSpaceError(
        f"{topic.name}: the round may write {format_bytes(needed_bytes)}, but the warehouse has {format_bytes(free)} "
        "free",
        hint="free space, compact fewer partitions at a time with --partition, or part by part with --partial-progress",
    )


def _with_heartbeats(run: Run, run_id: str, topics: Sequence[TopicState]) -> Progress:
    """The run's progress, which the engine reports several times a second, with heartbeats in each topic (C45)."""
    heartbeats = Heartbeats(run.warehouse, [(topic, run_id) for topic in topics])

    def report(phase: str, done: int, total: int) -> None:
        run.progress(phase, done, total)
        heartbeats.beat()

    return report


def _execute(logs: Sequence[PlannedLog], round_: Round, watch: Stopwatch) -> Outcomes:
    """Key pass, decisions, rewrite and audit of `logs`. One that fails has its error; the others continue (C31)."""
    with watch.phase("key_pass"):
        survivors = round_.find_survivors()
    decisions = {
        log.id: decisions_of(log.plan, findings)
        for log in logs
        if isinstance(findings := survivors[log.id], LogFindings)
    }
    rewrites = {log: mine for log, decided in decisions.items() if (mine := work_of(decided))}
    with watch.phase("rewrite"):
        written = round_.rewrite(rewrites) if rewrites else {}
    outcomes: dict[LogId, LogOutcome | LithifyError] = {}
    for log in logs:
        match survivors[log.id]:
            case LithifyError() as error:
                outcomes[log.id] = error
            case findings:
                outcomes[log.id] = _audited(log, findings, decisions[log.id], written.get(log.id, ()))
    return outcomes


def _audited(
    log: PlannedLog, findings: LogFindings, decisions: Sequence[Decision], results: Sequence[Rewritten | LithifyError]
) -> LogOutcome | LithifyError:
    written: list[Rewritten] = []
    for result in results:
        if isinstance(result, LithifyError):
            return result
        written.append(result)
    outcome = LogOutcome(
        log.plan,
        findings,
        applied(decisions, dict(zip(work_of(decisions), (one.segments for one in written), strict=True))),
        bytes_read=findings.bytes_read + sum(one.bytes_read for one in written),
    )
    try:
        audit(str(log.id), outcome)
    except LithifyError as error:
        return error
    return outcome
