"""Whether a round that was planned on one version may still commit on a newer one (C44)."""

from __future__ import annotations

from lithify.compaction.planner import LogPlan
from lithify.model.log import LogState
from lithify.model.segment import Segment


def conflict(
    plan: LogPlan, current: LogState, segments: tuple[Segment, ...], view: tuple[Segment, ...] = ()
) -> str | None:
    """Why the round must be planned again, or None if it may commit.

    `current`, `segments` and `view` are the newest of the same log, under the same table identity
    and settings. Every commit that invalidates the round has raised the epoch; an append or `delete-records`
    has not. The other checks give a more precise reason, and cover commits of a Lithify without epochs.
    """
    if current.generation != plan.base.generation:
        return "the log was truncated"
    if current.first_dirty_offset != plan.base.first_dirty_offset and not _start_moved(plan, current):
        return "another round was committed"
    if plan.view is not None and [s.path for s in plan.view] != [s.path for s in view]:
        return "the compacted view was changed"
    here = {segment.path for segment in segments}
    there = here | {segment.path for segment in view}
    missing = [s.path for s in plan.gone if s.path not in here] + [s.path for s in plan.sources if s.path not in there]
    gone = next(iter(missing), None)
    if gone is not None:
        return f"a segment was replaced in the meantime: {gone}"
    if current.epoch != plan.base.epoch:
        return "a round was committed or undone, or the log was cut or altered"
    return None


def _start_moved(plan: LogPlan, current: LogState) -> bool:
    """`delete-records` moves S, and D with it where it overtakes it (C26): no conflict."""
    moved = current.log_start_offset > plan.base.log_start_offset
    return moved and current.first_dirty_offset == max(current.log_start_offset, plan.base.first_dirty_offset)
