"""Undoing the last round: what a log becomes again (C6, C7).

before the round   [ a b c ][ d e f ]
after it           [ b d f ]            [ x y ]     x and y were appended since
undone             [ a b c ][ d e f ]   [ x y ]     D and the steps as they were, S never below
                                                    offsets deleted since
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.model.log_arithmetic import last_readable, measured, view_of
from lithify.model.missed import Undone
from lithify.model.segment import Segment
from lithify.model.topic.log import LastRecord, LogState
from lithify.reports.rounds.round import LogReport
from lithify.rules.compaction.eligible.required import carried_reason, stored_deletion
from lithify.rules.compaction.tombstones import Steps


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The segments of a log and of its view, each in offset order."""

    segments: tuple[Segment, ...]
    view: tuple[Segment, ...] = ()


def obstacle(now: LogState, then: LogState, round_: LogReport, run_id: str) -> str | None:
    """Why the round of a log in the state `now` cannot be undone, or None if it can.

    `then` is the state before the round.
    """
    if now.generation != then.generation:
        return "the log was truncated since"
    if now.last_round != run_id:
        return "its round was undone already, or its compacted view was dropped since"
    if now.uncovered and not then.uncovered:
        return "empty.value was changed since"
    retained = round_.log_start_offset_after < now.log_start_offset > max(then.first_dirty_offset, now.deleted_below)
    if now.view is not None and retained:  # C33: without the round nothing would have these records
        return "retention has dropped segments since whose records only the compacted view has"
    if now.first_dirty_offset != max(round_.first_dirty_offset_after, now.log_start_offset):
        return "its first dirty offset was moved since"
    return None


def files_after(now: LogFiles, then: LogFiles, round_: LogReport) -> LogFiles:
    """The files that the log and its view name once the round is undone."""
    below = tuple(s for s in then.segments if s.end_offset <= round_.horizon)
    above = tuple(s for s in now.segments if s.end_offset > round_.horizon)
    return LogFiles(below + above, then.view)


def state_after_undo(
    now: LogState,
    then: LogState,
    round_: LogReport,
    files: LogFiles,
    *,
    last_record: LastRecord | None,
) -> LogState:
    """The state of the log with `files`, the ones that `files_after` gave."""
    moved_since = now.log_start_offset > round_.log_start_offset_after
    start = now.log_start_offset if moved_since else max(then.log_start_offset, now.deleted_below)
    view = then.view and view_of(
        files.view, then.view.last_record, then.view.start_offset, losers_removed=then.view.losers_removed
    )
    back = replace(
        now,
        log_start_offset=start,
        first_dirty_offset=max(then.first_dirty_offset, start),
        steps=() if now.uncovered else _no_later(then.steps, now),
        held=then.held,
        aged_before_ms=None,
        last_record=last_readable(last_record, start),
        last_round_ms=then.last_round_ms,
        last_round=then.last_round,
        losers_removed=then.losers_removed,
        uncovered=then.uncovered,
        view=view,
        dropped=then.dropped,  # the deletes that the round dropped are restored; the epoch still grows
        undone=_undone(now),
    )
    # What required the round requires one again (C43), and records deleted since are stored again (C26).
    deleted = stored_deletion(back, files.segments, files.view)
    return measured(replace(back, round_required=carried_reason((now, then), deleted)), files.segments)


def _no_later(steps: Steps, now: LogState) -> Steps:
    """The steps with no time that is later than those since: a clock was confirmed, and set these back (C46)."""
    if not now.steps:
        return steps
    latest_ms = now.steps[-1].time_ms
    return tuple(replace(step, time_ms=min(step.time_ms, latest_ms)) for step in steps)


def _undone(now: LogState) -> Undone:
    """How far undone rounds had compacted the log, with the one that `now` has last."""
    before = now.undone or Undone(0, of_view=True)
    return Undone(max(before.below, now.first_dirty_offset), of_view=before.of_view and now.view is not None)
