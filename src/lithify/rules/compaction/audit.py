"""The laws that must hold between a plan and the written segments, or nothing is committed.

A violation means a defect or damaged data: the log remains as it is (C6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import assert_never

from lithify.errors import AuditError
from lithify.model.segment import Segment
from lithify.rules.compaction.decisions import AddMask, Drop, Keep, Rewrite
from lithify.rules.compaction.outcome import LogOutcome
from lithify.rules.compaction.survivor_rules import Cause


def audit(log: str, outcome: LogOutcome) -> None:
    """Raises `AuditError` with every violated law; `log` names the topic-partition."""
    broken = [finding for law in _LAWS for finding in law(outcome)]
    if broken:
        raise AuditError(
            f"{log}: the numbers of the round contradict each other: {'; '.join(broken[:5])}",
            hint="nothing was changed; run `lithify verify` on the topic and report this as a defect",
        )


def _horizon_in_range(outcome: LogOutcome) -> Iterator[str]:
    base, horizon = outcome.plan.base, outcome.plan.horizon.offset
    start, dirty = outcome.plan.log_start, max(outcome.plan.log_start, base.first_dirty_offset)
    if not base.log_start_offset <= start <= dirty <= horizon <= base.log_end_offset:
        yield f"S <= D <= H <= E does not hold: {start}, {dirty}, {horizon}, {base.log_end_offset}"


def _every_segment_counted(outcome: LogOutcome) -> Iterator[str]:
    for segment in outcome.plan.scanned:
        count = outcome.findings.survivors.get(segment.path)
        if count is None or not 0 <= count <= segment.records:
            yield f"{segment.path}: {count} of {segment.records} records survive"


def _losers_add_up(outcome: LogOutcome) -> Iterator[str]:
    survivors = outcome.findings.survivors
    lost = sum(s.records - survivors.get(s.path, 0) for s in outcome.plan.scanned)
    by_cause = sum(outcome.findings.losers.values())
    if lost != by_cause:
        yield f"{lost} records are removed, but {by_cause} are counted by cause"


def _causes_are_allowed(outcome: LogOutcome) -> Iterator[str]:
    rules, losers = outcome.plan.rules, outcome.findings.losers
    if rules.keep_keyless and losers.get(Cause.NO_KEY, 0):
        yield f"{losers[Cause.NO_KEY]} keyless records are removed although null.key=retain"
    if rules.values_expire_before_ms is None and losers.get(Cause.PAST_RETENTION, 0):
        yield f"{losers[Cause.PAST_RETENTION]} values are removed although none is past retention"
    if rules.tombstones_expire_below == 0 and losers.get(Cause.EXPIRED_TOMBSTONE, 0):
        yield f"{losers[Cause.EXPIRED_TOMBSTONE]} tombstones are removed although none has expired"


def _tombstones_add_up(outcome: LogOutcome) -> Iterator[str]:
    steps, findings = outcome.plan.base.steps, outcome.findings
    lost = findings.clean_tombstones_lost or (0,) * len(steps)
    if len(lost) != len(steps):
        yield f"tombstones were counted for {len(lost)} steps, but the log has {len(steps)}"
    for step, gone in zip(steps, lost, strict=False):
        if not 0 <= gone <= step.tombstones:
            yield f"{gone} of the {step.tombstones} tombstones that end at {step.end_offset} are removed"
    if not 0 <= findings.clean_tombstones_held <= findings.tombstones_held:
        yield f"{findings.clean_tombstones_held} of {findings.tombstones_held} held tombstones are clean"
    if not 0 <= findings.tombstones_held_by_chunks <= findings.tombstones_held:
        yield f"chunks hold {findings.tombstones_held_by_chunks} of {findings.tombstones_held} held tombstones"
    if findings.tombstones_held > findings.tombstones_held_by_chunks and not outcome.plan.above_horizon:
        yield f"{findings.tombstones_held} expired tombstones remain although no record is above the horizon"
    if findings.tombstones_held_by_chunks and not (outcome.plan.chunks and any(s.chunks for s in outcome.result)):
        yield f"{findings.tombstones_held_by_chunks} expired tombstones remain for chunks that do not exist"
    if not 0 <= findings.dirty_tombstones_kept <= findings.dirty_tombstones:
        yield f"{findings.dirty_tombstones_kept} of {findings.dirty_tombstones} new tombstones remain"


def _result_in_order(outcome: LogOutcome) -> Iterator[str]:
    for earlier, later in pairwise(outcome.result):
        if earlier.end_offset > later.base_offset:
            yield f"{earlier.path} and {later.path} overlap at offset {later.base_offset}"
    for segment in outcome.result:
        if segment.end_offset > outcome.plan.horizon.offset:
            yield f"{segment.path} reaches beyond the horizon {outcome.plan.horizon.offset}"


def _result_adds_up(outcome: LogOutcome) -> Iterator[str]:
    before = sum(s.records for s in outcome.plan.sources)
    after = sum(s.records for s in outcome.result)
    lost = sum(outcome.findings.losers.values())
    if before - lost != after:
        yield f"{before} records in, {lost} removed, but {after} left"


def _each_as_decided(outcome: LogOutcome) -> Iterator[str]:
    survivors = outcome.findings.survivors
    for done in outcome.applied:
        match done.decision:
            case Keep(segment):
                if done.segments != (segment,) or survivors.get(segment.path, segment.records) < segment.records:
                    yield f"{segment.path} has losers and was kept"
            case Rewrite() as rewrite:
                yield from _rewritten(rewrite, done.segments)
            case AddMask() as masked:
                yield from _masked(masked, done.segments)
            case Drop(segment):
                if done.segments or survivors.get(segment.path, segment.records) > 0:
                    yield f"{segment.path} has survivors and was dropped"
            case _:
                assert_never(done.decision)


def _rewritten(rewrite: Rewrite, written: tuple[Segment, ...]) -> Iterator[str]:
    first, last = rewrite.segments[0], rewrite.segments[-1]
    records = sum(s.records for s in written)
    if records != rewrite.survivors:
        yield f"{rewrite.survivors} records of {first.path} survive, but {records} were written"
    if any(s.partition != rewrite.partition for s in written):
        yield f"what was written for {first.path} belongs to another partition"
    if any(s.base_offset < first.base_offset or s.end_offset > last.end_offset for s in written):
        yield f"what was written for {first.path} has offsets that its sources do not have"


def _masked(masked: AddMask, written: tuple[Segment, ...]) -> Iterator[str]:
    before, dead = masked.source.segment, masked.source.dead
    mask = written[0].mask if len(written) == 1 else None
    if mask is None or mask.dead != dead or written != (replace(before, records=masked.survivors, mask=mask),):
        yield f"{before.path} was to remain with a mask of {dead} records"
    elif written[0].id == before.id:
        yield f"{before.path} still has its earlier mask"


_LAWS: tuple[Callable[[LogOutcome], Iterator[str]], ...] = (
    _horizon_in_range,
    _every_segment_counted,
    _losers_add_up,
    _causes_are_allowed,
    _tombstones_add_up,
    _result_in_order,
    _result_adds_up,
    _each_as_decided,
)
