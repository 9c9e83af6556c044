"""The work of a round before its commit: key pass, decisions, rewrite, audit.

The outcome of a log that fails in one of these is its error; the other logs continue (C31).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from lithify.compaction.audit import audit
from lithify.compaction.decisions import Decision, rewrites_of
from lithify.compaction.outcome import LogFindings, LogOutcome, applied, decisions_of
from lithify.errors import LithifyError
from lithify.model.names import LogId
from lithify.ports.engine import PlannedLog, Rewritten, Round

Phase = Callable[[str], AbstractContextManager[None]]
"""Returns a context manager that measures a phase of that name."""

Outcomes = Mapping[LogId, LogOutcome | LithifyError]


def execute(logs: Sequence[PlannedLog], round_: Round, phase: Phase) -> Outcomes:
    """Does the rounds of `logs` up to, and without, the commit."""
    with phase("key_pass"):
        found = round_.find_survivors()
    decisions = {
        log.id: decisions_of(log.plan, findings) for log in logs if isinstance(findings := found[log.id], LogFindings)
    }
    rewrites = {log: mine for log, decided in decisions.items() if (mine := rewrites_of(decided))}
    with phase("rewrite"):
        written = round_.rewrite(rewrites) if rewrites else {}
    outcomes: dict[LogId, LogOutcome | LithifyError] = {}
    for log in logs:
        match found[log.id]:
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
        applied(decisions, dict(zip(rewrites_of(decisions), (one.segments for one in written), strict=True))),
        bytes_read=findings.bytes_read + sum(one.bytes_read for one in written),
    )
    try:
        audit(str(log.id), outcome)
    except LithifyError as error:
        return error
    return outcome
