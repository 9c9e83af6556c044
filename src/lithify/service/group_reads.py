"""How far the groups that topics name have read them (C61, C62): the positions, and what is known without them.

    compact, retain, status of a topic   ─► the positions in this topic: one query
    a look at all topics                 ─► those of all named groups: one query, whatever the number of topics
    a topic that names none              ─► no query

Where the positions cannot be read, no group has read anything as far as is known: work continues, tombstones remain
until `tombstone.hold.max.ms` and backlogs are not trimmed, and reports give the reason.

A position may be of a later version than was loaded. Then it was committed since, or its state was lost when an earlier
one was restored. The newest version shows which, and is loaded for such a position alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock

from lithify.errors import LithifyError
from lithify.errors.defects import as_lithify_error
from lithify.model.groups.positions import Position
from lithify.model.groups.reads import NO_READS, TopicReads, groups_of, reads_of
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.groups import GroupPositions
from lithify.ports.store import LogStore, Warehouse


def read_groups(warehouse: Warehouse, state: TopicState) -> TopicReads:
    """How far the groups that a topic names have read it."""
    named = groups_of(state)
    if not named:
        return NO_READS
    try:
        return reads_of(state, of_this_log(warehouse.groups.positions_of(named, state.name), state, warehouse.store))
    except Exception as error:
        return reads_of(state, (), str(as_lithify_error(error, "the positions of groups")))


@dataclass(slots=True)
class PositionsOfLook:
    """The positions during one check of all topics, for several threads. After an error there are no more requests."""

    groups: GroupPositions
    store: LogStore
    error: LithifyError | None = None
    _asked: set[str] = field(default_factory=set)
    _positions: dict[TopicName, list[Position]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def ask(self, named: Iterable[str]) -> None:
        """Reads the positions of groups that were not read yet."""
        with self._lock:
            new = frozenset(named) - self._asked
            if not new or self.error is not None:
                return
            try:
                for position in self.groups.positions_of(new):
                    self._positions.setdefault(position.log.topic, []).append(position)
                self._asked |= new
            except Exception as error:
                self.error = as_lithify_error(error, "the positions of groups")

    def of(self, name: TopicName, named: Collection[str]) -> tuple[Position, ...]:
        """Reads of the groups that a topic names, as far as they could be read."""
        if not named:
            return ()
        self.ask(named)
        with self._lock:
            return tuple(sorted((p for p in self._positions.get(name, ()) if p.group in named), key=_place))

    def reads(self, state: TopicState) -> TopicReads:
        """How far they have read a topic."""
        positions = of_this_log(self.of(state.name, groups_of(state)), state, self.store)
        return reads_of(state, positions, None if self.error is None else str(self.error))


def of_this_log(positions: Sequence[Position], state: TopicState, store: LogStore) -> Sequence[Position]:
    """Without positions of later versions than `state` that the topic has lost (C49)."""
    if not any(position.cursor.is_later_than(state.version) for position in positions):
        return positions
    newest = store.load(state.name)
    return [p for p in positions if not (p.cursor.is_later_than(state.version) and _is_lost(p, newest))]


def _is_lost(position: Position, newest: TopicState) -> bool:
    partition = position.log.partition
    there = partition in newest.partitions
    return not there or position.cursor.is_lacked_by(newest.log(partition), newest.version)


def _place(position: Position) -> tuple[str, int]:
    return position.group, position.log.partition
