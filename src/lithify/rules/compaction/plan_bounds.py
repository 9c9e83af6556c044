"""Upper bounds of what a planned round costs, from metadata alone (C30, C42)."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.segment import Segment
from lithify.rules.compaction.decisions import CountedSegment
from lithify.rules.compaction.planner import LogPlan

FOOTER_BYTES = 16_384
"""Bytes for the header and footer of one written file."""
MASKED_BYTES = 4
"""What a record takes in a mask at most: positions are below 2^32, and stored as differences."""


@dataclass(frozen=True, slots=True)
class PlanBounds:
    """At most this much, for the state that was planned on. Bytes are compressed."""

    segments_rewritten: int
    bytes_read: int
    bytes_written: int


def bounds_of(plan: LogPlan, key_reads: int) -> PlanBounds:
    """Upper bounds of a round that reads the keys `key_reads` times."""
    touched = _touched(plan)
    whole = sum(segment.size_bytes for segment in touched)
    written = whole if plan.rewrite_bytes is None else min(whole, _in_part(plan, plan.rewrite_bytes, touched))
    bytes_read = key_reads * plan.key_bytes + whole + sum(segment.mask_bytes for segment in touched)
    return PlanBounds(len(touched), bytes_read, written + FOOTER_BYTES * len(touched))


def _touched(plan: LogPlan) -> tuple[Segment, ...]:
    """What the run may rewrite: to remove the dead from it, or to merge it with another (C39)."""
    if not (plan.moves or plan.scanned or plan.waiting):
        return tuple(s for s in plan.sources if s.mask)
    scanned = {segment.path for segment in plan.scanned}
    return tuple(s for s in plan.sources if s.path in scanned or s.mask or s.size_bytes < plan.segment_bytes)


def _in_part(plan: LogPlan, rewrite_bytes: int, touched: tuple[Segment, ...]) -> int:
    """What is written if the other segments get masks: one piece may be larger than `rewrite_bytes`."""
    piece_bytes = max(plan.segment_bytes, *(segment.size_bytes for segment in touched), 0)
    at_once = sum(s.size_bytes for s in touched if not plan.masks.can_wait(CountedSegment(s, s.records)))
    return max(rewrite_bytes, piece_bytes) + at_once + MASKED_BYTES * sum(s.records_in_file for s in touched)
