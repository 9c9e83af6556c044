"""Rounds required at any dirty ratio: for changed settings (C43), for deleted records that are still stored (C26).

    segments   [ a b | c d ]      records below S were deleted, D moved with S, and a lag holds H there:
                     S = D = H    a round could remove none, so none is due until H passes the segment's end

A round clears the requirement of changed settings, and the requirement of deleted records below its horizon.
"""

from __future__ import annotations

from collections.abc import Iterable

from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState
from lithify.rules.compaction.eligible.horizon import Horizon


def deletion_reason(below: int) -> str:
    """Why a round is required when records were deleted and are still stored."""
    return f"records below {below} were deleted"


def required_otherwise(state: LogState) -> bool:
    """Whether a round is required for more than deleted records: any round clears that."""
    return state.round_required not in ("", deletion_reason(state.deleted_below))


def carried_reason(states: Iterable[LogState], deleted: str) -> str:
    """Why a log that comes from these states requires a round: changed settings come before `deleted` records."""
    return next((state.round_required for state in states if required_otherwise(state)), deleted)


def stored_deletion(state: LogState, segments: tuple[Segment, ...], view: tuple[Segment, ...]) -> str:
    """Why deleted records in these segments require a round; empty if there are none.

    Rounds rewrite a view; of the backlog beside it they drop only whole segments.
    """
    below = state.deleted_below
    if state.view is None:
        stored = any(s.base_offset < below for s in segments)
    else:
        stored = any(s.base_offset < below for s in view) or any(s.end_offset <= below for s in segments)
    return deletion_reason(below) if stored else ""


def round_clears(state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, horizon: Horizon) -> bool:
    """Whether a round up to `horizon` clears any of it. `segments` are in offset order."""
    if not state.round_required or settings.side_by_side or required_otherwise(state):
        return bool(state.round_required)
    stored = [s for s in segments if s.base_offset < state.deleted_below]
    return not stored or stored[0].end_offset <= horizon.offset  # retention may have dropped them already
