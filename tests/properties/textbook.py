"""The contract, literally: one log as one list of records, and the times of its rounds.

It knows no segments, no plan and no steps, and works everything out anew. What the product does in
its own way is compared with this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lithify.model.record import Record, is_tombstone
from lithify.model.settings.topic_settings import TopicSettings

UNVERSIONED = float("-inf")


@dataclass(slots=True)
class Textbook:
    """The records of one log that are left, in offset order, and side by side those of its view."""

    records: list[Record] = field(default_factory=list)
    view: list[Record] | None = None
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

    def round(self, horizon: int, dirty_from: int, settings: TopicSettings, now_ms: int, *, start: int = 0) -> None:
        """C4, C9 to C11, C16, C18, C20, C24 over [S, H); the log starts at `start` after it."""
        if settings.side_by_side:
            dirty = [r for r in self.records if dirty_from <= _offset(r) < horizon]
            waiting = [r for r in self.records if _offset(r) >= horizon]
            self.view = self.left([*(self.view or []), *dirty], waiting, settings, now_ms)
            self.records = [r for r in self.records if _offset(r) >= start]
        else:
            there = [r for r in self.records if _offset(r) >= start]
            below = [r for r in there if _offset(r) < horizon]
            waiting = [r for r in there if _offset(r) >= horizon]
            self.records = self.left(below, waiting, settings, now_ms) + waiting
        if horizon > max(dirty_from, 0 if settings.side_by_side else start) or start > dirty_from:
            self.cover(horizon, now_ms)

    def left(
        self, below: Sequence[Record], waiting: Sequence[Record], settings: TopicSettings, now_ms: int
    ) -> list[Record]:
        """What the rules leave of the records below a horizon, in offset order."""
        last = {r.key: r for r in sorted(below, key=lambda r: (version(r, settings), _offset(r)))}
        ages = settings.compacts and settings.deletes and not settings.side_by_side and settings.retention_ms != -1

        def stays(record: Record) -> bool:
            if record.key is None and settings.null_key != "retain":
                return False
            if record.key is not None and last[record.key] is not record:
                return False
            if record.key is not None and self.deletes(record, settings):
                beats = any(r.key == record.key and version(r, settings) < version(record, settings) for r in waiting)
                return beats or not self.expires(record, settings, now_ms)
            return not (ages and (record.timestamp or 0) < now_ms - settings.retention_ms)

        return [record for record in below if stays(record)]

    def forget_below(self, start: int) -> None:
        """C19: steps with an end at or below S are dropped."""
        self.rounds = [(end, time_ms) for end, time_ms in self.rounds if end > start]


def version(record: Record, settings: TopicSettings) -> float:
    """What decides before the offset does (C10)."""
    match settings.compaction_strategy:
        case "offset":
            return 0
        case "timestamp":
            return record.timestamp or 0
        case "header":
            values = [value for name, value in record.headers if name == settings.compaction_strategy_header]
            if not values or values[-1] is None or len(values[-1]) != 8:
                return UNVERSIONED
            return int.from_bytes(values[-1], "big", signed=True)


def _offset(record: Record) -> int:
    assert record.offset is not None
    return record.offset
