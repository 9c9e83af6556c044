"""The numbers of a round, as its report gives them (C42)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import assert_never

from lithify.errors import LithifyError
from lithify.model.segment import volume_of
from lithify.model.topic.log import LogState
from lithify.reports.rounds.plan import LogPlanReport
from lithify.reports.rounds.round import LogReport, Losers
from lithify.rules.compaction.decisions import AddMask, Decision, Drop, Keep, Rewrite
from lithify.rules.compaction.outcome import LogFindings, LogOutcome, applied
from lithify.rules.compaction.plan_bounds import bounds_of
from lithify.rules.compaction.planner import LogPlan
from lithify.rules.compaction.survivor_rules import Cause


def idle_outcome(plan: LogPlan) -> LogOutcome:
    """The outcome of a plan that finds nothing to do (C41)."""
    return LogOutcome(plan, LogFindings({}, {}), applied(map(Keep, plan.sources), {}), 0)


def outcome_report(outcome: LogOutcome, phases_ms: Mapping[str, int]) -> LogReport:
    """The report of one log; the numbers are the same before the commit and after it."""
    plan, findings = outcome.plan, outcome.findings
    fates = _fates(done.decision for done in outcome.applied)
    unread_losers = plan.unread_losers
    losers = Losers(**{c.value: findings.losers.get(c, 0) + unread_losers.get(c, 0) for c in Cause})
    records_out = sum(s.records for s in outcome.result)
    looked_at = {s.path for s in plan.looked_at}
    keyless = findings.keyless_kept + sum(s.null_keys for s in plan.clean if s.path not in looked_at)
    expired_winners = findings.losers.get(Cause.EXPIRED_TOMBSTONE, 0) + findings.losers.get(Cause.PAST_RETENTION, 0)
    sources = plan.sources + (plan.gone if plan.view is None else plan.view_gone)
    return LogReport(
        partition=plan.partition,
        log_start_offset=plan.base.log_start_offset,
        log_start_offset_after=plan.log_start,
        log_end_offset=plan.base.log_end_offset,
        deleted_below=plan.base.deleted_below,
        first_dirty_offset=plan.base.first_dirty_offset,
        first_dirty_offset_after=plan.horizon.offset,
        horizon=plan.horizon.offset,
        horizon_limited_by=plan.horizon.limited_by,
        records_in=sum(s.records for s in sources),
        records_out=records_out,
        keys=records_out - keyless + expired_winners - findings.keyless_expired,
        tombstones_in=plan.base.tombstones + findings.dirty_tombstones,
        tombstones_out=plan.base.tombstones - sum(findings.clean_tombstones_lost) + findings.dirty_tombstones_kept,
        tombstones_held=findings.tombstones_held,
        tombstones_unversioned=findings.tombstones_unversioned,
        losers=losers,
        segments_in=len(sources),
        segments_kept=fates["kept"],
        segments_rewritten=fates["rewritten"],
        segments_merged=fates["merged"],
        segments_masked=fates["masked"],
        segments_waiting=len(outcome.waiting),
        segments_written=len(outcome.written) - fates["masked"],
        bytes_in=sum(s.size_bytes for s in sources),
        bytes_out=sum(s.size_bytes for s in outcome.result),
        bytes_read=outcome.bytes_read,
        bytes_written=sum(s.id_bytes for s in outcome.written),
        tombstones_expire_below=plan.rules.tombstones_expire_below,
        tombstones_read_below=plan.reads.tombstones_below if plan.reads.holding else None,
        held_by=plan.held_by,
        missed_by=outcome.missed_by,
        backlog_read_below=plan.reads.backlog_below if plan.reads.trimming else None,
        values_expire_before_ms=plan.rules.values_expire_before_ms,
        phases_ms=dict(phases_ms),
        changed=outcome.changes,
    )


def _fates(decisions: Iterable[Decision]) -> Counter[str]:
    """What became of how many segments."""
    fates: Counter[str] = Counter()
    for decision in decisions:
        match decision:
            case Keep():
                fates["kept"] += 1
            case AddMask():
                fates["masked"] += 1
            case Rewrite((_,)):
                fates["rewritten"] += 1
            case Rewrite(sources):
                fates["merged"] += len(sources)
            case Drop():
                fates["dropped"] += 1
            case _:
                assert_never(decision)
    return fates


def failed_report(state: LogState, error: LithifyError, phases_ms: Mapping[str, int]) -> LogReport:
    """The report of a log whose round failed: it is as it was before."""
    return LogReport(
        partition=state.partition,
        log_start_offset=state.log_start_offset,
        log_start_offset_after=state.log_start_offset,
        log_end_offset=state.log_end_offset,
        deleted_below=state.deleted_below,
        first_dirty_offset=state.first_dirty_offset,
        first_dirty_offset_after=state.first_dirty_offset,
        horizon=state.first_dirty_offset,
        horizon_limited_by="error",
        records_in=state.volume.records,
        records_out=state.volume.records,
        bytes_in=state.volume.size_bytes,
        bytes_out=state.volume.size_bytes,
        phases_ms=dict(phases_ms),
        error=str(error),
        error_code=error.code,
    )


def plan_report(plan: LogPlan, key_reads: int) -> LogPlanReport:
    """The figures of `compact --plan` for one log: upper bounds, for the state it was planned on (C30)."""
    bounds = bounds_of(plan, key_reads)
    return LogPlanReport(
        partition=plan.partition,
        log_start_offset=plan.base.log_start_offset,
        first_dirty_offset=plan.base.first_dirty_offset,
        horizon=plan.horizon.offset,
        horizon_limited_by=plan.horizon.limited_by,
        horizon_held_by=plan.horizon.held_by,
        log_end_offset=plan.base.log_end_offset,
        log_start_offset_after=plan.log_start,
        records_in=volume_of(plan.sources).records,
        bytes_in=volume_of(plan.sources).size_bytes,
        segments_in=len(plan.sources),
        segments_gone=len(plan.gone),
        segments_scanned=len(plan.scanned),
        segments_rewritten_at_most=bounds.segments_rewritten,
        bytes_read_at_most=bounds.bytes_read,
        bytes_written_at_most=bounds.bytes_written,
        tombstones_expire_below=plan.rules.tombstones_expire_below,
        values_expire_before_ms=plan.rules.values_expire_before_ms,
        held_by=plan.held_by,
        idle=plan.is_idle,
    )
