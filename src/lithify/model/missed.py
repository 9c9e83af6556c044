"""What a log's state has of records that readers may have missed since their cursor's epoch (C49)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DroppedDeletes:
    """The commit that began `epoch` dropped expired deletes below `below`; `of_view`: from the view (C49).

    `restored`: or it was a truncation that made superseded values current again, which readers have passed.
    A reader whose position was below `below` before that commit may have missed a delete, or such a value.
    """

    epoch: int
    below: int
    of_view: bool = False
    restored: bool = False


@dataclass(frozen=True, slots=True)
class Undone:
    """Rounds that were undone had compacted the log up to `below`; `of_view`: in the view alone.

    Readers of that time have passed values that are stored again (C49).
    """

    below: int
    of_view: bool = False
