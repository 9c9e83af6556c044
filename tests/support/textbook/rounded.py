"""What a round of one log comes to, before it is committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.textbook.ages import Dropped
from support.textbook.records import Records, at

if TYPE_CHECKING:
    from support.textbook.log import TextbookLog


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

    def dropped(self, epoch: int) -> tuple[Dropped, ...]:
        """What a commit that begins `epoch` says of the deletes that went in it."""
        return tuple(Dropped(epoch, at(r), self.known_below, self.side_by_side) for r in self.expired[-1:])
