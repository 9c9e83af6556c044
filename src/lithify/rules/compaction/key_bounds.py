"""Which keys a set of segments can hold, as few ranges of bytes.

    segments   a──────f   d────k      p──s        ranges   a────────k      p──s

Comparing every clean segment with every dirty one would take their product; with the merged
ranges it is one binary search each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from lithify.model.segment import Segment


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """Disjoint closed ranges [low, high], ascending; only the last may have no upper end (None)."""

    lows: tuple[bytes, ...]
    highs: tuple[bytes | None, ...]

    def may_meet(self, segment: Segment) -> bool:
        """Whether a key of `segment` can lie in one of the ranges."""
        if segment.min_key is None:
            return False
        reachable = len(self.lows) if segment.max_key is None else bisect_right(self.lows, segment.max_key)
        if reachable == 0:
            return False
        # Ranges are disjoint, so of those that begin in time the last one reaches furthest.
        highest = self.highs[reachable - 1]
        return highest is None or highest >= segment.min_key


def key_bounds_of(segments: Sequence[Segment]) -> KeyBounds:
    """The ranges in which the keys of `segments` lie."""
    bounds = sorted((s.min_key, s.max_key) for s in segments if s.min_key is not None and s.max_key is not None)
    unbounded = min((s.min_key for s in segments if s.min_key is not None and s.max_key is None), default=None)
    lows: list[bytes] = []
    highs: list[bytes | None] = []
    for low, high in bounds:
        if unbounded is not None and low >= unbounded:
            break  # the unbounded range covers all others
        last = highs[-1] if highs else None
        if last is not None and low <= last:
            highs[-1] = max(last, high)
        else:
            lows.append(low)
            highs.append(high)
    if unbounded is not None:
        while lows and (highs[-1] is None or highs[-1] >= unbounded):
            unbounded = min(unbounded, lows.pop())
            highs.pop()
        lows.append(unbounded)
        highs.append(None)
    return KeyBounds(tuple(lows), tuple(highs))
