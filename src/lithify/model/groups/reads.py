"""How far the groups that a topic names have read its logs: what holds tombstones, and lets a backlog be trimmed.

    positions of the groups   payments 40      search 25      audit: none
    tombstone.hold.groups     payments, search               below 25 all have read (C61)
    backlog.trim.groups       payments, audit                below 0: nothing may go yet (C62)

A group without a position in a log has read nothing of it. So has one whose position is of another topic of that
name, or of a state of it that was lost when an earlier one was restored. Of a log that was truncated since, a group
has read no more than what is left of what it had read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lithify.model.groups.positions import Position
from lithify.model.topic.state import TopicState

EVERYTHING = 2**63 - 1


@dataclass(frozen=True, slots=True)
class GroupRead:
    """A group has read everything of a log below `offset`, by a position that counts; else both others are None."""

    group: str
    offset: int
    committed_ms: int | None = None
    epoch: int | None = None
    """The log's epoch when it was there (C49)."""


@dataclass(frozen=True, slots=True)
class LogReads:
    """How far the groups that a topic names have read one of its logs."""

    holding: tuple[GroupRead, ...] = ()
    """Reads of the groups in `tombstone.hold.groups`."""
    trimming: tuple[GroupRead, ...] = ()
    """Reads of the groups in `backlog.trim.groups`."""

    @property
    def tombstones_below(self) -> int:
        """All groups that hold tombstones have read those below."""
        return min((read.offset for read in self.holding), default=EVERYTHING)

    @property
    def backlog_below(self) -> int:
        """What is below may leave the backlog once the view has it; 0 if no group is named."""
        return min((read.offset for read in self.trimming), default=0)


NONE_NAMED = LogReads()


@dataclass(frozen=True, slots=True)
class TopicReads:
    """The same for all logs of a topic. With an `error` the positions are unknown, and no group has read anything."""

    logs: Mapping[int, LogReads] = field(default_factory=dict)
    error: str | None = None

    def of(self, partition: int) -> LogReads:
        return self.logs.get(partition, NONE_NAMED)


NO_READS = TopicReads()
"""Of a topic that names no group."""


def groups_of(state: TopicState) -> frozenset[str]:
    """The groups whose positions count for rounds of a topic, if it takes any."""
    return state.round_settings.named_groups if state.takes_rounds else frozenset()


def waiting_for_groups(state: TopicState) -> frozenset[int]:
    """The partitions in which something may be done once groups have read further: no others need a check."""
    settings = state.round_settings
    holds, trims = (bool(groups) for groups in (settings.holding_groups, settings.trimming_groups))
    return frozenset(
        log.partition
        for log in state.logs
        if (holds and log.tombstones > 0) or (trims and log.log_start_offset < log.first_dirty_offset)
    )


def reads_of(state: TopicState, positions: Iterable[Position], error: str | None = None) -> TopicReads:
    """How far the groups that the topic names have read, by their positions; other groups do not count."""
    settings = state.round_settings
    if not groups_of(state):
        return NO_READS
    known = {(p.group, p.log.partition): p for p in positions if p.log.topic == state.name}

    def read(group: str, partition: int) -> GroupRead:
        position = known.get((group, partition))
        offset = None if position is None else _read_below(position, state)
        if position is None or offset is None:
            return GroupRead(group, 0)
        return GroupRead(group, offset, position.committed_ms, position.cursor.epoch)

    return TopicReads(
        {
            p: LogReads(
                tuple(read(group, p) for group in settings.holding_groups),
                tuple(read(group, p) for group in settings.trimming_groups),
            )
            for p in state.partitions
        },
        error,
    )


def _read_below(position: Position, state: TopicState) -> int | None:
    """Up to where a position shows that the log was read; None if it is not a position of the log's present state."""
    cursor, log = position.cursor, state.log(position.log.partition)
    cuts = log.generation - cursor.generation
    is_ahead = cursor.epoch > log.epoch and not cursor.is_untold
    if cursor.identity != state.identity or is_ahead or not 0 <= cuts <= len(log.truncated):
        return None
    if not cursor.is_later_than(state.version) and cursor.is_lacked_by(log, state.version):  # it may go on meanwhile
        return None
    return min(cursor.offset, log.log_end_offset, *(log.truncated[-cuts:] if cuts else ()))
