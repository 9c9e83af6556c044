"""What a client of Kafka was not told of while it read on: its position says so to readers of the lake (C49).

    began      the group's position, or the log as members first asked for their offset; it was read from there on
    commit     compared with that, in the version of the log that this gateway knows by then
    a second later   once more, in a version that was looked for after the commit: another gateway may have served it

A client may have read a delete before a round removed it, and not have committed that yet: that cannot be told.

Clients that send no leader epochs are not told of truncations either. One that commits beyond its position, which was
cut since, has passed over the records that are there now.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.model.cursor import UNTOLD, Cursor
from lithify.model.groups.positions import Position
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.compaction.tombstones import missed_deletes
from lithify.rules.reading.continuation import Truncated, replaced, resumed
from lithify.rules.reading.pieces import Reading


def is_of(cursor: Cursor, partition: int, state: TopicState) -> bool:
    """Whether it is in the log as it is, and not in one that was deleted, or lost by a restore."""
    if cursor.identity != state.identity or partition not in state.partitions:
        return False
    log = state.log(partition)
    return cursor.generation <= log.generation and not cursor.is_lacked_by(log, state.version)


def began_at(before: Position | None, begun: Cursor | None, state: TopicState, log: LogState) -> Cursor | None:
    """From where, and in which epoch, members have read a log up to the commit that comes; None if it is not known.

    At the log start nothing was read: since when they read is known by what they asked for.
    """
    if before is None or before.cursor.identity != state.identity:
        return begun if begun is not None and begun.identity == state.identity else None
    start = Reading(compacted=before.compacted).start(log)
    has_read = before.cursor.offset > start or before.cursor.is_untold
    return before.cursor if has_read else begun


def told(position: Position, began: Cursor | None, state: TopicState, *, has_epoch: bool = True) -> Position:
    """The position of a client that has begun there, with what it was not told of on the way.

    One that has an epoch finds truncations by itself, and goes back.
    """
    cursor, log, how = position.cursor, state.log(position.log.partition), Reading(compacted=position.compacted)
    if began is None or began.identity != state.identity or cursor.offset <= how.start(log):
        return position
    is_untold = began.is_untold or not is_of(began, log.partition, state) or _may_have_missed(began, state, log, how)
    if not has_epoch and cursor.offset >= began.offset:
        is_untold = is_untold or isinstance(replaced(began, state, log), Truncated)
    return replace(position, cursor=replace(cursor, epoch=UNTOLD)) if is_untold else position


def _may_have_missed(began: Cursor, state: TopicState, log: LogState, how: Reading) -> bool:
    at = resumed(began, state, log, compacted=how.compacted)
    if missed_deletes(log, at, began.epoch, compacted=how.compacted) is not None:
        return True
    # A round that was undone since: the deletes are there again, behind a client that has read meanwhile.
    undone = log.undone
    if undone is None or (undone.of_view and not how.compacted):
        return False
    return undone.below > at and log.epoch > began.epoch
