"""What a round comes to before it is committed, and what rounds have left of deletes (C18, C19, C49)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lithify.model.settings.topic_settings import TopicSettings
from support.textbook.records import Records, at

if TYPE_CHECKING:
    from support.textbook.log import TextbookLog


FOR_EVER_MS = 2**62


@dataclass(frozen=True, slots=True)
class Cover:
    """A round at `time_ms` covered everything below `end`."""

    end: int
    time_ms: int


Covers = tuple[Cover, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """Deletes went in the commit that began `epoch` (C49): the last of them at `last`, known up to `below`."""

    epoch: int
    last: int
    below: int
    of_view: bool
    restored: bool = False
    """Nothing went: a truncation made superseded values current again."""


def longest_ms(settings: TopicSettings) -> int:
    """How long a tombstone stays that some group has not read (C18, C61)."""
    if not settings.holding_groups:
        return settings.delete_retention_ms
    most_ms = settings.tombstone_hold_max_ms
    return FOR_EVER_MS if most_ms == -1 else max(settings.delete_retention_ms, most_ms)


def ended_at(covers: Covers, to: int, *, at_the_latest: bool = False) -> Covers:
    """C26: steps above `to` get that end; of those that have it then the first counts.

    That may be any of them: a step in which no tombstone was left may have become the next one (C19).
    """
    below = tuple(c for c in covers if c.end < to)
    above = covers[len(below) :]
    return (*below, replace(above[-1 if at_the_latest else 0], end=to)) if above and to else below


@dataclass(frozen=True, slots=True)
class Rounded:
    """What a round found, before it is laid over the log as that is at the commit."""

    planned_on: TextbookLog
    start: int
    horizon: int
    records: Records
    """What is left below the horizon, of the log or of its view."""
    side_by_side: bool
    held: bool
    """Deleted records are stored in a segment that it does not reach, and stay there (C26)."""
    expired: Records
    """The deletes that it drops (C18)."""
    known_below: int
    """Up to where that is known: the end of the segment in which the last of them stood."""
    aged: Records
    """The values, and records without a key, that it drops for their age (C24)."""
    loses: bool
    """Records go that could be read."""

    def dropped(self, epoch: int) -> tuple[Dropped, ...]:
        """What a commit that begins `epoch` says of the deletes that went in it."""
        return tuple(Dropped(epoch, at(r), self.known_below, self.side_by_side) for r in self.expired[-1:])
