"""Which masks count where `repair` rebuilds a topic from its files, as no metadata says which segments have which.

A mask counts if it is certain that the newest version had it in the log. Without it deleted values may come back: the
value of a key masked where it was, and its delete gone from storage. A mask that is not certain is left out: it may be
of a round that never committed, or was undone, and what it hides would be lost. Its records come back, and the plan
says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from lithify.model.remains import ClosedState, Remains
from lithify.model.segment import Segment
from lithify.model.topic.state import TopicState

Known = ClosedState | TopicState | None


def with_masks(
    remains: Remains, segments: Iterable[Segment], known: Known
) -> tuple[tuple[Segment, ...], tuple[str, ...]]:
    """Segments of the folder with their masks, and what is to be said of masks that are left out."""
    chosen: list[Segment] = []
    notes: list[str] = []
    for segment in segments:
        masked = [m for m in remains.masked if m.path == segment.path]
        certain = [m for m in masked if m.id in remains.certain and m.id not in remains.closed]
        left = certain[0] if len(certain) == 1 and not _only_of_view(segment, known) else segment
        chosen.append(left)
        most = min(masked, key=lambda mask: mask.records, default=left)
        if most.records < left.records and not (_only_of_view(segment, known) and not _lacks_losers(segment, known)):
            notes.append(
                f"{most.id}: it is not certain that this mask was committed, so {left.records - most.records} records "
                "of "
                f"{segment.path} that rounds had hidden are back, perhaps with values of deleted keys"
            )
    return tuple(chosen), tuple(notes)


def _only_of_view(segment: Segment, known: Known) -> bool:
    """Whether the log names the segment, or may, and masks belong to the view beside it, or may."""
    if known is None:
        return True
    if segment.partition >= len(known.logs):
        return known.settings.side_by_side
    log = known.logs[segment.partition]
    beside = known.settings.side_by_side or log.view is not None
    return beside and segment.end_offset > log.log_start_offset


def _lacks_losers(segment: Segment, known: Known) -> bool:
    """Whether rounds have removed records from the log itself, or may have."""
    if known is None or segment.partition >= len(known.logs):
        return True
    return known.logs[segment.partition].losers_removed
