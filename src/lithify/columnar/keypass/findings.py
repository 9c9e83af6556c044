"""Sums the tallies of a key pass and checks them for consistency.

Each record of the dirty part must have been compared in exactly one hash range, and each record above the
horizon exactly once with the expired tombstones. Workers that hash differently, or a lost part, fail this
check before anything is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lithify.columnar.keypass.tally import Tally
from lithify.compaction.outcome import LogFindings
from lithify.compaction.planner import LogPlan
from lithify.compaction.rules import Cause
from lithify.errors import EngineError, LithifyError


def log_findings(
    plan: LogPlan, tallies: Iterable[Tally | LithifyError], changes: Mapping[str, int]
) -> LogFindings | LithifyError:
    """The findings of one log, from the tallies of its parts and the `DeadPositions.change` by segment path.

    Returns, not raises, the first error among `tallies`, or an `EngineError` for inconsistent counts.
    """
    total = Tally()
    for tally in tallies:
        if isinstance(tally, LithifyError):
            return tally
        total.add(tally)
    keyed, compared = total.dirty_keyed + total.waiting_keyed, total.compared + total.asked
    if (total.compared, total.asked) != (total.dirty_keyed, total.waiting_keyed):
        return EngineError(
            f"partition {plan.partition}: {keyed} records have keys, {compared} were compared",
            hint="workers must run the same version of Lithify; the log is as it was before",
        )
    superseded = total.compared - total.winners + total.clean_superseded
    losers = {
        Cause.BELOW_START: total.below_start,
        Cause.NO_KEY: total.no_key,
        Cause.SUPERSEDED: superseded,
        Cause.EXPIRED_TOMBSTONE: total.expired_winners + total.clean_expired,
        Cause.PAST_RETENTION: total.past_winners + total.clean_past + total.keyless_expired,
    }
    before = {s.path: s.records for s in plan.looked_at} | {s.path: 0 for s in plan.dirty}
    steps = len(plan.base.steps)
    return LogFindings(
        survivors={path: live - changes.get(path, 0) for path, live in before.items()},
        losers={cause: count for cause, count in losers.items() if count},
        keyless_kept=total.keyless_kept,
        keyless_expired=total.keyless_expired,
        dirty_tombstones=total.dirty_tombstones,
        dirty_tombstones_kept=total.winning_tombstones - total.expired_winners,
        clean_tombstones_lost=tuple(int(n) for n in total.clean_tombstones_lost[:steps]),
        clean_tombstones_held=total.clean_held,
        tombstones_held=total.held_winners + total.clean_held,
        tombstones_unversioned=total.dirty_unordered - total.winning_unordered + total.clean_unordered,
        bytes_read=total.bytes_read,
    )
