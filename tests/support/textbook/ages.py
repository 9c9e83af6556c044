"""What rounds have left of deletes: since when they are covered, and which are gone (C18, C19, C49)."""

from __future__ import annotations

from dataclasses import dataclass, replace


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


def ended_at(covers: Covers, to: int, *, at_the_latest: bool = False) -> Covers:
    """C26: steps above `to` get that end; of those that have it then the first counts.

    That may be any of them: a step in which no tombstone was left may have become the next one (C19).
    """
    below = tuple(c for c in covers if c.end < to)
    above = covers[len(below) :]
    return (*below, replace(above[-1 if at_the_latest else 0], end=to)) if above and to else below
