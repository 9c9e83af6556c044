"""What a copy lacks since its source had deleted it: as stored, and as messages say it."""

from __future__ import annotations

from lithify.lifecycle.copies.continuation import NeverCopied
from lithify.reports.ingest import Hole, IdHole


def hole_of(partition: int, gone: NeverCopied) -> Hole | IdHole:
    """What a copy lacks, as its reports and its `source.json` have it."""
    match gone:
        case NeverCopied(int() as start, int() as end):
            return Hole(partition, start, end)
        case NeverCopied(start, end):
            return IdHole(partition, None if start is None else str(start), str(end))


def begin_of(hole: Hole | IdHole) -> tuple[int, int | str | None]:
    """What tells it from other holes."""
    return hole.partition, hole.start_offset if isinstance(hole, Hole) else hole.after


def gone_of(gone: NeverCopied) -> str:
    """Why it is missing, for messages."""
    match gone:
        case NeverCopied(int() as start, int() as end):
            return f"offsets {start} to {end - 1} were deleted there"
        case NeverCopied(None, _):
            return "what was before was trimmed there before the first ingest"
        case _:
            return "what was in between may have been trimmed there"
