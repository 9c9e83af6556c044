"""The contract, literally: one log as one list of records, and the times of its rounds.

It knows no segments, no plan and no steps, and works everything out anew. What the product does in
its own way is compared with this.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lithify.model.record import Record, is_tombstone
from lithify.model.settings import TopicSettings


@dataclass(slots=True)
class Textbook:
    """The records of one log that are left, in offset order."""

    records: list[Record] = field(default_factory=list)
    rounds: list[tuple[int, int]] = field(default_factory=list)
    """(end, time) of every round that moved D, above S."""

    def covered_since(self, offset: int) -> int | None:
        """T(o): the time of the first round whose end was above o."""
        return next((time_ms for end, time_ms in self.rounds if offset < end), None)

    def cover(self, end: int, now_ms: int) -> None:
        """A round that moved D to `end`: never earlier than the step before it (C18)."""
        latest = max(now_ms, self.rounds[-1][1]) if self.rounds else now_ms
        self.rounds.append((end, latest))

    def deletes(self, record: Record, settings: TopicSettings) -> bool:
        size = None if record.value is None else len(record.value)
        return is_tombstone(size, empty_is_tombstone=settings.empty_is_tombstone)

    def expires(self, record: Record, settings: TopicSettings, now_ms: int) -> bool:
        """C18, for a winning record below the horizon."""
        if record.key is None or not self.deletes(record, settings):
            return False
        since = self.covered_since(_offset(record))
        if settings.delete_retention_ms == 0:
            return True
        return since is not None and now_ms >= since + settings.delete_retention_ms

    def round(self, horizon: int, dirty_from: int, settings: TopicSettings, now_ms: int) -> None:
        """C4, C9, C16, C18 over [S, H)."""
        below = [r for r in self.records if _offset(r) < horizon]
        newest = {r.key: r for r in below}
        left = [r for r in below if r.key is not None and newest[r.key] is r and not self.expires(r, settings, now_ms)]
        if settings.null_key == "retain":
            left += [r for r in below if r.key is None]
        self.records = sorted(left, key=_offset) + [r for r in self.records if _offset(r) >= horizon]
        if horizon > dirty_from:
            self.cover(horizon, now_ms)

    def forget_below(self, start: int) -> None:
        """C19: steps with an end at or below S are dropped."""
        self.rounds = [(end, time_ms) for end, time_ms in self.rounds if end > start]


def _offset(record: Record) -> int:
    assert record.offset is not None
    return record.offset
