"""Whether a reader can continue at its cursor in a version of the log, and why not (C7, C49).

    cursor at 5            [0 ········ 5)
    Continues              [0 ········ 5 ──── end)
    Truncated              [0 ── 3) ──────── end)     it has read 3 and 4, which are now other records, or missing
    Trimmed                       [7 ──────── end)     5 and 6 went unread
    BeyondEnd              [0 ── end)  5
    MissedDeletes          [0 ········ 5 ─ ✗ ─ end)    a round has removed a delete that it has not read, perhaps
                                                       of a value that it has read and would keep for ever
    Untold                 the same, or another of these, may have happened to clients of Kafka, who have gone on
    Recreated, Restored    another topic of the same name, or an earlier state of it, from a backup

All readers use it: the API's readers, consumers of lake and Kafka, `publish`, and streams of Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.errors import LogTruncatedError
from lithify.model.cursor import Cursor
from lithify.model.names import LogId
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.compaction.tombstones import missed_deletes
from lithify.rules.reading.pieces import Reading


@dataclass(frozen=True, slots=True)
class Continues:
    """The log is the same one, and the reader has missed nothing."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The log no longer exists."""


@dataclass(frozen=True, slots=True)
class Recreated:
    """The topic was deleted, and another one has its name."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The log is in an earlier state than the reader has read, or has gone on from one."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """The log was cut below the cursor; it ends at `end_offset` now."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The log starts at `start_offset`, above the cursor."""

    start_offset: int


@dataclass(frozen=True, slots=True)
class MissedDeletes:
    """Rounds removed deletes below `below`, or a truncation made superseded values current, since the cursor (C49)."""

    below: int


@dataclass(frozen=True, slots=True)
class Untold:
    """Clients of Kafka have read up to the cursor. They may have missed deletes, a cut, or a restored state, untold."""


@dataclass(frozen=True, slots=True)
class MayHaveMissedDeletes:
    """The cursor has no epoch, and the last round came late enough to remove deletes that it had not read."""

    delete_retention_ms: int


@dataclass(frozen=True, slots=True)
class BeyondEnd:
    """The log ends at `end_offset`, below the cursor. The rest of a Kafka log may not have been copied yet."""

    end_offset: int


Lost = Gone | Recreated | Restored | Truncated | Trimmed | MissedDeletes | Untold | MayHaveMissedDeletes | BeyondEnd
Continuation = Continues | Lost


def continuation(cursor: Cursor, state: TopicState, log: LogState, *, compacted: bool) -> Continuation:
    """Whether a reader with that cursor can continue in this version; `compacted` says which data it reads.

    The version was loaded after the cursor was made: an earlier one is taken for one that was restored.
    Which deletes rounds have removed is known up to the end of the segment of the last of them: the answer
    may be `MissedDeletes` where the reader has missed none, never the reverse.
    """
    if state.identity != cursor.identity:
        return Recreated()
    if _was_cut_below(log, cursor.generation, cursor.offset):
        return Truncated(log.log_end_offset)
    start = Reading(compacted=compacted).start(log)
    if cursor.offset < start:
        return Trimmed(start)
    if _is_restored(cursor, state, log):
        return Restored()
    if cursor.is_untold:
        return Untold()
    missed = missed_deletes(log, cursor.offset, cursor.epoch, compacted=compacted)
    if missed is not None and cursor.offset > 0:  # at 0 nothing was read yet
        return MissedDeletes(missed.below)
    if _is_too_old(cursor, state, log):
        return MayHaveMissedDeletes(state.settings.delete_retention_ms)
    return BeyondEnd(log.log_end_offset) if cursor.offset > log.log_end_offset else Continues()


def replaced(cursor: Cursor, state: TopicState, log: LogState) -> Recreated | Truncated | Restored | None:
    """Why what was read below a cursor is not of this log any more, whatever rounds have removed; None if it is.

    `state` is the newest version. It is for reads up to a point, which an earlier version may have (C69).
    """
    if state.identity != cursor.identity:
        return Recreated()
    if _was_cut_below(log, cursor.generation, cursor.offset):
        return Truncated(log.log_end_offset)
    return Restored() if _is_restored(cursor, state, log) else None


def lost_error(log: LogId, cursor: Cursor, lost: Lost, hint: str) -> LogTruncatedError:
    """The error of a reader that cannot continue; `hint` says what its user can do."""
    return LogTruncatedError(f"{log}: {_reason(cursor.offset, lost)}", hint=hint)


def resumed(cursor: Cursor, state: TopicState, log: LogState, *, compacted: bool) -> int:
    """The offset at which a reader continues that accepts what it has lost: the nearest that has new records only.

    In a log that was cut, that is the lowest cut since the cursor: from there on are other records.
    """
    missed = log.generation - cursor.generation
    cuts = log.truncated[-missed:] if missed > 0 and state.identity == cursor.identity else ()
    return max(min(cursor.offset, log.log_end_offset, *cuts), Reading(compacted=compacted).start(log))


def advanced(cursor: Cursor, log: LogState, version: int, offset: int) -> Cursor:
    """The cursor of a reader that has continued in the log, in this version of its topic, up to `offset`."""
    there = replace(cursor.having_read(log, version), offset=offset)
    if missed_deletes(log, offset, cursor.epoch, compacted=True) is not None:
        return there  # of an earlier epoch still: a reader that returns to it has not read them
    return replace(there, epoch=log.epoch, as_of_ms=None)


def _was_cut_below(log: LogState, generation: int, offset: int) -> bool:
    """Whether a truncation since the log was of that generation cut below an offset (C7)."""
    missed = log.generation - generation
    if missed > len(log.truncated):
        return True
    return missed > 0 and min(log.truncated[-missed:]) < offset


def _is_restored(cursor: Cursor, state: TopicState, log: LogState) -> bool:
    goes_back = log.epoch < cursor.epoch and not cursor.is_untold  # which an epoch never does (C44)
    return goes_back or cursor.is_lacked_by(log, state.version)


def _is_too_old(cursor: Cursor, state: TopicState, log: LogState) -> bool:
    """By time, for a cursor from before there were epochs."""
    if cursor.as_of_ms is None or log.last_round_ms is None or cursor.offset >= log.first_dirty_offset:
        return False
    return log.last_round_ms >= cursor.as_of_ms + state.settings.delete_retention_ms


def _reason(offset: int, lost: Lost) -> str:
    match lost:
        case Gone():
            return (
                f"the log, which was read up to offset {offset}, no longer exists: its topic was deleted or recreated"
            )
        case Recreated():
            return f"the topic was deleted and recreated since it was read up to offset {offset}, or is a replica of it"
        case Restored():
            return (
                f"an earlier state of the topic, such as a backup, was restored since it was read up to offset {offset}"
            )
        case Truncated(end):
            return f"the log was truncated below offset {offset}, up to which it was read; it ends at {end}"
        case Trimmed(start):
            return f"the log starts at {start} now, above offset {offset}, up to which it was read"
        case MissedDeletes(below):
            return (
                f"rounds have removed deletes below offset {below}, or a truncation has restored values, since "
                f"it was read up to offset {offset}; they may be of keys that were read"
            )
        case Untold() | MayHaveMissedDeletes():
            return _unsure(offset, lost)
        case BeyondEnd(end):
            return (
                f"the log ends at {end} now, before offset {offset}, up to which it was read: it was truncated, or an "
                "earlier state of it was restored"
            )


def _unsure(offset: int, lost: Untold | MayHaveMissedDeletes) -> str:
    match lost:
        case Untold():
            return (
                f"clients of Kafka have read it up to offset {offset}; before that rounds may have removed deletes, "
                "the log was truncated, or an earlier state was restored, of which such clients are not told"
            )
        case MayHaveMissedDeletes(retention_ms):
            return (
                f"rounds may have removed deletes since it was read up to offset {offset}, as "
                f"delete.retention.ms={retention_ms} has passed"
            )
