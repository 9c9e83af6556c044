"""What the state of a log has of its segments and of its last record; every commit computes it again.

    segments of the log    clean, below D │ dirty, above D   ─► volumes, the oldest dirty timestamp (C27)
    segments of the view                                     ─► View

`verify` compares the stored state with the same functions.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.model.segment import Segment, volume_of
from lithify.model.topic.log import LastRecord, LogState, View


def measured(state: LogState, segments: tuple[Segment, ...]) -> LogState:
    """`state` with its volumes taken from the log's segments (C27)."""
    clean = tuple(s for s in segments if s.end_offset <= state.first_dirty_offset)
    dirty = tuple(s for s in segments if s.end_offset > state.first_dirty_offset)
    return replace(
        state,
        clean=volume_of(clean),
        dirty=volume_of(dirty),
        oldest_dirty_timestamp_ms=min((s.min_timestamp_ms for s in dirty), default=None),
    )


def view_of(
    segments: tuple[Segment, ...], last_record: LastRecord | None, start_offset: int, *, losers_removed: bool
) -> View:
    """What the metadata keeps about a view with these segments, in offset order."""
    return View(
        volume=volume_of(segments),
        first_offset=segments[0].base_offset if segments else None,
        last_record=last_record,
        start_offset=start_offset,
        losers_removed=losers_removed,
    )


def last_readable(last: LastRecord | None, start: int) -> LastRecord | None:
    """The position of a last record, if a reader that starts at `start` gets it (C36)."""
    return last if last is not None and last.offset >= start else None
