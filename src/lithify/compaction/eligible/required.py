"""What rounds owe a log whatever its dirty ratio: changed settings (C43), deleted records that are stored yet (C26).

    segments   [ a b | c d ]      records below S were deleted, D moved with S, and a lag holds H there:
                     S = D = H    a round would pay nothing, so none is due until H passes the segment's end

A round pays what was changed, and what was deleted as far as it reaches.
"""

from __future__ import annotations

from collections.abc import Iterable

from lithify.compaction.eligible.horizon import Horizon
from lithify.model.log import LogState
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings


def deletion_owed(below: int) -> str:
    """Why a round is owed where records were deleted and are still stored."""
    return f"records below {below} were deleted"


def other_debt(state: LogState) -> bool:
    """Whether a round is owed for more than deleted records: any round pays that."""
    return state.owed not in ("", deletion_owed(state.deleted_below))


def owed_by(states: Iterable[LogState], deleted: str) -> str:
    """What is owed by a log that comes from these states: what was changed comes before what was `deleted`."""
    return next((state.owed for state in states if other_debt(state)), deleted)


def deletion_debt(state: LogState, segments: tuple[Segment, ...], view: tuple[Segment, ...]) -> str:
    """Why a round is owed for deleted records that these segments have; nothing if none has any.

    A view is rewritten by rounds; of the backlog beside it only whole segments go.
    """
    below = state.deleted_below
    if state.view is None:
        stored = any(s.base_offset < below for s in segments)
    else:
        stored = any(s.base_offset < below for s in view) or any(s.end_offset <= below for s in segments)
    return deletion_owed(below) if stored else ""


def payable(state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, horizon: Horizon) -> bool:
    """Whether a round up to `horizon` pays anything of what is owed. `segments` are in offset order."""
    if not state.owed or settings.side_by_side or other_debt(state):
        return bool(state.owed)
    stored = [s for s in segments if s.base_offset < state.deleted_below]
    return not stored or stored[0].end_offset <= horizon.offset  # retention may have taken what was owed
