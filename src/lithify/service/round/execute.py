"""The heavy half of a round: key pass, grouping, rewrite, audit. Commits nothing.

A log that fails anywhere on the way becomes its error; the others go on (C31).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from lithify.compaction.audit import audit
from lithify.compaction.groups import Grouping, SegmentOutcome, group_segments
from lithify.compaction.outcome import LogFindings, LogOutcome
from lithify.errors import LithifyError
from lithify.model.names import LogId
from lithify.ports.engine import PlannedLog, Rewritten, RewrittenGroup, Round

Phase = Callable[[str], AbstractContextManager[None]]
"""Times what happens inside of it under a name."""

Outcomes = Mapping[LogId, LogOutcome | LithifyError]


def execute(logs: Sequence[PlannedLog], round_: Round, phase: Phase) -> Outcomes:
    """Does the rounds of `logs` up to, and without, the commit."""
    with phase("key_pass"):
        found = round_.find_survivors()
    groupings = {log.id: _group(log, findings) for log in logs if isinstance(findings := found[log.id], LogFindings)}
    groups = {log: grouping.groups for log, grouping in groupings.items() if grouping.groups}
    with phase("rewrite"):
        written = round_.rewrite(groups) if groups else {}
    outcomes: dict[LogId, LogOutcome | LithifyError] = {}
    for log in logs:
        match found[log.id]:
            case LithifyError() as error:
                outcomes[log.id] = error
            case findings:
                outcomes[log.id] = _audited(log, findings, groupings[log.id], written.get(log.id, ()))
    return outcomes


def _group(log: PlannedLog, findings: LogFindings) -> Grouping:
    outcomes = (SegmentOutcome(s, findings.survivors.get(s.path, s.records)) for s in log.plan.sources)
    return group_segments(tuple(outcomes), segment_bytes=log.topic.settings.segment_bytes, moves=log.plan.moves)


def _audited(
    log: PlannedLog, findings: LogFindings, grouping: Grouping, results: Sequence[Rewritten]
) -> LogOutcome | LithifyError:
    written: list[RewrittenGroup] = []
    for result in results:
        if isinstance(result, LithifyError):
            return result
        written.append(result)
    outcome = LogOutcome(
        log.plan,
        findings,
        grouping,
        written=tuple(segment for result in written for segment in result.segments),
        bytes_read=findings.bytes_read + sum(result.bytes_read for result in written),
    )
    try:
        by_group = zip(grouping.groups, (result.segments for result in written), strict=True)
        audit(str(log.id), outcome, tuple(by_group))
    except LithifyError as error:
        return error
    return outcome
