"""What cutting a log does to its state: retention, deleted records, truncation, a dropped view.

    retain            S ──► after the segments dropped whole                        (C24)
    delete-records    S ──► N, at once; a round removes the records from storage     (C26)
    truncate          N ◄── E; records at or above N are covered by no round any more
    uncompact         D ──► S, and the view is dropped                              (C35)

Pure functions from one state to the next; `service` decides which files that replaces.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.errors import OffsetOutOfRangeError, PolicyError
from lithify.model.cursor import whole_offset
from lithify.model.log_arithmetic import last_readable, measured, view_of
from lithify.model.message import MessageId
from lithify.model.missed import DroppedDeletes
from lithify.model.names import LogId
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import TRUNCATIONS_KEPT, LastRecord, LogState
from lithify.rules.compaction.eligible.required import carried_reason, deletion_reason
from lithify.rules.compaction.eligible.retention import start_after
from lithify.rules.compaction.tombstones import Steps, above, with_drop, without_view
from lithify.rules.lifecycle.copies.ids import copied_after_cut
from lithify.rules.lifecycle.copies.missed_deletes import begun_after_cut


def retained(
    state: LogState, gone: tuple[Segment, ...], left: tuple[Segment, ...], settings: TopicSettings
) -> LogState:
    """The state once the segments `gone` are no longer in the log and `left` are.

    Only rounds fold steps (C19): were those that have expired by this clock made one, a round by another clock that is
    behind would find them younger each time, and drop none of their tombstones.
    """
    start = start_after(state, gone)
    steps = state.steps
    if not settings.side_by_side:  # else the steps are those of the view, which retention does not change
        # Records deleted below S in the first remaining segment are still stored there, and counted.
        stored_from = min(start, left[0].base_offset) if left else start
        steps = above(steps, stored_from)
    moved = replace(
        state,
        log_start_offset=start,
        first_dirty_offset=max(start, state.first_dirty_offset),
        steps=steps,
        last_record=last_readable(state.last_record, start),
    )
    return measured(moved, left)


def records_deleted(log: LogId, state: LogState, before: int, segments: tuple[Segment, ...]) -> LogState:
    """The state once no offset below `before` can be read (C26). Raises `OffsetOutOfRangeError`.

    The steps remain as they are, since the tombstones that they count are stored until the next round.
    """
    before = whole_offset(log, before)
    if not 0 <= before <= state.log_end_offset:
        raise OffsetOutOfRangeError(
            f"{log}: cannot delete before {before}: the log ends at {state.log_end_offset}",
            hint=f"use an offset from {state.log_start_offset} to {state.log_end_offset}",
        )
    start = max(before, state.log_start_offset)
    moved = replace(
        state,
        log_start_offset=start,
        first_dirty_offset=max(start, state.first_dirty_offset),
        deleted_below=max(before, state.deleted_below),
        last_record=last_readable(state.last_record, start),
    )
    left_behind = any(s.base_offset < start for s in segments) or state.view is not None
    if left_behind and moved.deleted_below > state.deleted_below:
        moved = replace(moved, round_required=carried_reason((state,), deletion_reason(moved.deleted_below)))
    return measured(moved, segments)


@dataclass(frozen=True, slots=True)
class Truncation:
    """Where a truncation cuts the log and, if it has one, its view; both are exclusive ends."""

    end_offset: int
    view_end_offset: int
    first_dirty_offset: int


def truncation(log: LogId, state: LogState, to: int, *, below_compacted: bool) -> Truncation:
    """What `truncate --to` cuts (C26). Raises `OffsetOutOfRangeError` or `PolicyError`.

    Side by side, a cut below D leaves in the view only what the backlog does not have any more, and
    resets D to S. The backlog still has the values that the truncated records had superseded.
    """
    to = whole_offset(log, to)
    if not state.log_start_offset <= to <= state.log_end_offset:
        raise OffsetOutOfRangeError(
            f"{log}: cannot truncate to {to}: the log has offsets from {state.log_start_offset} "
            f"to {state.log_end_offset}",
            hint="set --to to the new log end: records at and above it are removed",
        )
    if to < max(state.first_dirty_offset, state.compacted_below) and not below_compacted:
        raise PolicyError(f"{log}: {_superseded_values(state, to)}", hint="add --below-compacted to truncate anyway")
    if to >= state.first_dirty_offset:
        return Truncation(to, state.first_dirty_offset, state.first_dirty_offset)
    if state.view is not None:
        return Truncation(to, state.log_start_offset, state.log_start_offset)
    return Truncation(to, to, to)


@dataclass(frozen=True, slots=True)
class Cut:
    """A log after it was cut: its segments and its view's, and their last records."""

    segments: tuple[Segment, ...]
    last_record: LastRecord | None
    view: tuple[Segment, ...] = ()
    view_last_record: LastRecord | None = None
    first_removed: MessageId | None = None
    """The id of the first record that a truncation removes, if it has one (C52)."""


def truncated(state: LogState, how: Truncation, cut: Cut) -> LogState:
    """The state after the truncation `how`, with `cut` as what is left (C26).

    Values that records truncated from a view had superseded become current again, below the positions of
    readers of the view, also of one that was dropped; so do those that an undone round had removed. Where rounds have
    compacted the log itself, deletes are gone that records truncated now had superseded. These readers get the same
    error as for a dropped delete (C49).
    """
    compacted = max(state.compacted_below, 0 if state.view is not None else state.first_dirty_offset)
    viewed = max(state.compacted_below, 0 if state.view is None else state.first_dirty_offset)
    dropped, undone = state.dropped, state.undone
    if how.end_offset < viewed:
        dropped = with_drop(dropped, DroppedDeletes(state.next_epoch, viewed, of_view=True, restored=True))
    if state.losers_removed and how.end_offset < compacted:
        dropped = with_drop(dropped, DroppedDeletes(state.next_epoch, compacted, of_view=False, restored=True))
    if undone is not None and how.end_offset < undone.below:
        dropped = with_drop(
            dropped, DroppedDeletes(state.next_epoch, undone.below, of_view=undone.of_view, restored=True)
        )
        undone = None
    view = state.view and view_of(
        cut.view, cut.view_last_record, state.view.start_offset, losers_removed=state.view.losers_removed
    )
    moved = replace(
        state,
        log_end_offset=how.end_offset,
        first_dirty_offset=how.first_dirty_offset,
        generation=state.generation + 1,
        truncated=(*state.truncated, how.end_offset)[-TRUNCATIONS_KEPT:],
        steps=_ended(state.steps, how.first_dirty_offset),
        last_record=last_readable(cut.last_record, state.log_start_offset),
        held=None,
        compacted_below=min(state.compacted_below, how.end_offset),
        view=view,
        dropped=dropped,
        undone=undone,
        copied_to=copied_after_cut(state, cut.first_removed),
        source_begun=begun_after_cut(state, how.end_offset),
    )
    return measured(moved, cut.segments)


def uncompacted(state: LogState, segments: tuple[Segment, ...]) -> LogState:
    """The state without a view (C35)."""
    reached = max(state.compacted_below, state.first_dirty_offset)
    moved = replace(
        state,
        first_dirty_offset=state.log_start_offset,
        compacted_below=reached if reached > state.log_start_offset else 0,
        steps=(),
        held=None,
        uncovered=False,
        last_round="",
        view=None,
        dropped=without_view(state.dropped),
    )
    return measured(moved, segments)


def _superseded_values(state: LogState, to: int) -> str:
    """Why values that a truncation should make current again are not there any more."""
    if to >= state.first_dirty_offset:
        return (
            f"rounds may have compacted the log up to {state.compacted_below}, above {to}, so values that the records "
            f"from {to} on superseded may be lost"
        )
    return (
        f"{to} is below the first dirty offset {state.first_dirty_offset}, so values that the records from {to} on "
        "superseded are lost" + ("" if state.view is None else " from the compacted view")
    )


def _ended(steps: Steps, end_offset: int) -> Steps:
    """The steps of which none covers an offset at or above `end_offset`; the first that reached it counts."""
    below = tuple(step for step in steps if step.end_offset < end_offset)
    above = steps[len(below) :]
    if not above or end_offset == 0:
        return below
    return (*below, replace(above[0], end_offset=end_offset))  # the others count tombstones above the first
