"""The heavy half of a round: key pass, grouping, rewrite, audit. Commits nothing.

A log that fails anywhere on the way becomes its error; the others go on (C31).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from lithify.compaction.audit import audit
from lithify.compaction.groups import Grouping, RewriteGroup, SegmentOutcome, group_segments
from lithify.compaction.outcome import LogFindings, LogOutcome
from lithify.compaction.planner import LogPlan
from lithify.errors import LithifyError
from lithify.model.log import TopicState
from lithify.model.names import LogId
from lithify.ports import RewrittenGroup, Round

Phase = Callable[[str], AbstractContextManager[None]]
"""Times what happens inside of it under a name."""

Outcomes = dict[int, LogOutcome | LithifyError]
"""By partition."""


def execute(state: TopicState, plans: Sequence[LogPlan], round_: Round, phase: Phase) -> Outcomes:
    """Does the rounds of `plans` up to, and without, the commit."""
    with phase("key_pass"):
        found = round_.find_survivors()
    groupings = {
        plan.partition: _group(plan, findings, state.settings.segment_bytes)
        for plan in plans
        if isinstance(findings := found[plan.partition], LogFindings)
    }
    groups = [group for grouping in groupings.values() for group in grouping.groups]
    with phase("rewrite"):
        results = round_.rewrite(groups) if groups else ()
    written = dict(zip(map(id, groups), results, strict=True))
    outcomes: Outcomes = {}
    for plan in plans:
        match found[plan.partition]:
            case LithifyError() as error:
                outcomes[plan.partition] = error
            case findings:
                grouping = groupings[plan.partition]
                mine = [(group, written[id(group)]) for group in grouping.groups]
                outcomes[plan.partition] = _audited(LogId(state.name, plan.partition), plan, findings, grouping, mine)
    return outcomes


def _group(plan: LogPlan, findings: LogFindings, segment_bytes: int) -> Grouping:
    outcomes = (SegmentOutcome(s, findings.survivors.get(s.path, s.records)) for s in plan.sources)
    return group_segments(tuple(outcomes), segment_bytes=segment_bytes, moves=plan.moves)


def _audited(
    log: LogId,
    plan: LogPlan,
    findings: LogFindings,
    grouping: Grouping,
    results: Sequence[tuple[RewriteGroup, RewrittenGroup | LithifyError]],
) -> LogOutcome | LithifyError:
    written = []
    for group, result in results:
        if isinstance(result, LithifyError):
            return result
        written.append((group, result))
    outcome = LogOutcome(
        plan,
        findings,
        grouping,
        written=tuple(segment for _, result in written for segment in result.segments),
        bytes_read=findings.bytes_read + sum(result.bytes_read for _, result in written),
    )
    try:
        audit(str(log), outcome, tuple((group, result.segments) for group, result in written))
    except LithifyError as error:
        return error
    return outcome
