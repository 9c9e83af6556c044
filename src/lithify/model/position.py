"""Start positions of readers (C37)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lithify.errors import OffsetOutOfRangeError
from lithify.model.log import LogState
from lithify.model.names import LogId


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record, in offset order, whose timestamp is at or after `timestamp_ms`."""

    timestamp_ms: int


Start = Literal["earliest", "latest"] | int | AtTime


def checked_offset(log: LogId, state: LogState, offset: int) -> int:
    """`offset` if a reader may start there: anywhere in [S, E], the end included (C2, C37)."""
    if not state.log_start_offset <= offset <= state.log_end_offset:
        raise OffsetOutOfRangeError(
            f"{log}: offset {offset} is outside of [{state.log_start_offset}, {state.log_end_offset}]",
            hint="start at earliest, at latest, or in between",
        )
    return offset
