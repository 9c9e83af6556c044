"""Start positions of readers (C37)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lithify.errors import OffsetOutOfRangeError
from lithify.model.cursor import Cursor
from lithify.model.names import LogId


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record, in offset order, whose timestamp is at or after `timestamp_ms`."""

    timestamp_ms: int


Start = Literal["earliest", "latest"] | int | AtTime
From = Start | Cursor
"""Where a reader of one log may begin."""


def checked_offset(log: LogId, start: int, end: int, offset: int) -> int:
    """`offset` if a reader that begins at `start` may start there, the log end included (C2, C37)."""
    if not start <= offset <= end:
        raise OffsetOutOfRangeError(
            f"{log}: offset {offset} is outside of [{start}, {end}]",
            hint="start at earliest, at latest, or in between",
        )
    return offset
