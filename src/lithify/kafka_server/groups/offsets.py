"""Committed offsets of Kafka's clients: positions of the lake's groups, stored, shown and reset as those are (C58).

A client commits an offset and the leader epoch of the record before it. An epoch is how often the log was truncated
before the record came, so the position says from which state of the log the group has read. What a client asks for is
the position, if it is one of the topic that has the name now. A group has one position in each log, even side by
side (C33): offsets are the same in the log and in the view, and the position says which of them the group has read.

Clients of Kafka are not told of deletes that rounds remove before they have read them, as they are not by a broker.
Then their positions say so, to those who continue there with Lithify (C49).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Protocol

from lithify.errors import LithifyError
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.committed import (
    Commit,
    Committed,
    Place,
    committed,
    is_later,
    is_lost,
    names_of,
    position_of,
)
from lithify.kafka_server.groups.tenure import Tenure
from lithify.kafka_server.groups.untold import began_at, is_of, told
from lithify.kafka_server.logs.kafka_names import kafka_name
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import Position
from lithify.model.names import LogId, TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.clock import Clock
from lithify.ports.groups import Groups

LOGGER = logging.getLogger(__name__)


class Topic(Protocol):
    @property
    def topic_id(self) -> bytes: ...
    @property
    def state(self) -> TopicState: ...


class Topics(Protocol):
    """The topics that are served, each in one version. The methods may wait for the catalog."""

    @property
    def begun(self) -> int:
        """How many checks of the catalog have begun so far."""
        ...

    def topic(self, which: str | bytes, *, after: int = -1) -> Topic | None:
        """By a check that began after so many. Raises `LithifyError` if its metadata cannot be read."""
        ...

    def names(self) -> Mapping[str, TopicName]:
        """By each name by which clients may ask for them, also of views that they may not have."""
        ...

    def listed(self) -> Mapping[str, TopicName]:
        """By the names that patterns are matched with."""
        ...


class Offsets:
    """The offsets of all groups. Methods wait for the database and raise `CoordinationError`."""

    def __init__(self, groups: Groups, topics: Topics, tenure: Tenure, clock: Clock) -> None:
        self._groups, self._topics, self._tenure, self._clock = groups, topics, tenure, clock

    def hold(self, group: str, places: Collection[Place]) -> bool:
        """Takes the leases of these partitions, as far as they exist; False if a member of the lake has one."""
        states = {name: self._state(name) for name in {name for name, _ in places}}
        known = {name: state for name, state in states.items() if isinstance(state, TopicState)}
        logs = {LogId(known[n].name, i) for n, i in places if n in known and i in known[n].partitions}
        return not self._tenure.hold(group, logs)

    def commit(self, group: str, commits: Mapping[Place, Commit], *, refusal: Code) -> dict[Place, Code]:
        """Stores offsets, if no other gateway coordinates the group now; `refusal` where a member of the lake reads."""
        served = {name: self.topic(name) for name in sorted({name for name, _ in commits})}
        unknown = {n for (n, number), commit in commits.items() if is_later(_state_of(served[n]), number, commit)}
        served |= self._topics_anew(unknown)
        states = {name: _state_of(topic) for name, topic in served.items()}
        codes, positions = dict[Place, Code](), dict[Place, Position]()
        for place, commit in commits.items():
            found = position_of(group, states[place[0]], place, commit, self._clock.now_ms())
            if isinstance(found, Position):
                found = self._of_this_topic(found, place, commit, served[place[0]])
            if isinstance(found, Position):
                positions[place] = found
            else:
                codes[place] = found
        read = Counter(position.log for position in positions.values())
        codes |= {place: Code.INVALID_REQUEST for place, position in positions.items() if read[position.log] > 1}
        positions = {place: position for place, position in positions.items() if read[position.log] == 1}
        logs = [position.log for position in positions.values()]
        refused = self._tenure.hold(group, logs)
        began = self._began(group, positions, states)
        positions = {
            place: told(one, began[one.log], _known(states[place[0]]), has_epoch=commits[place].leader_epoch >= 0)
            for place, one in positions.items()
        }
        self._tenure.forget_stored(group, logs)  # until it is known
        while left := {place: position for place, position in positions.items() if position.log not in refused}:
            if not (lost := self._groups.commit(list(left.values()), self._tenure.owner)):
                break
            refused |= lost
        self._tenure.note_stored(group, {position.log: position for position in left.values()})
        untold = {position.log for position in positions.values() if position.cursor.is_untold}
        if later := {log: at for log, at in began.items() if at is not None and log not in untold | refused}:
            self._tenure.note_unchecked(group, later)
        if refused and not self._tenure.holds(group):
            refusal = Code.NOT_COORDINATOR
        done = {place: refusal if position.log in refused else Code.NONE for place, position in positions.items()}
        return codes | done

    def _of_this_topic(self, position: Position, place: Place, commit: Commit, topic: Topic | Code) -> Position | Code:
        """The position, unless members read a topic that had the name before."""
        if commit.topic_id is not None and not isinstance(topic, Code):
            return position if topic.topic_id == commit.topic_id else Code.UNKNOWN_TOPIC_ID
        begun = self._tenure.begun(position.group, place)
        is_other = begun is not None and begun.identity != position.cursor.identity
        return Code.UNKNOWN_TOPIC_OR_PARTITION if is_other else position

    def _began(
        self, group: str, positions: Mapping[Place, Position], states: Mapping[str, TopicState | Code]
    ) -> dict[LogId, Cursor | None]:
        """By log, from where members have read."""
        before, began = self._stored(group, [position.log for position in positions.values()]), {}
        for place, position in positions.items():
            state, begun = _known(states[place[0]]), self._tenure.begun(group, place)
            began[position.log] = began_at(before[position.log], begun, state, state.log(place[1]))
        return began

    def look_anew(self, logs: Collection[LogId]) -> Mapping[TopicName, TopicState]:
        """The topics of these logs, as they are now, as far as they can be read."""
        names = self._topics.names()
        states = self._states_anew({name for log in logs if (name := kafka_name(log.topic)) in names})
        return {state.name: state for state in states.values() if isinstance(state, TopicState)}

    def check(self, group: str, began: Mapping[LogId, Cursor], states: Mapping[TopicName, TopicState]) -> None:
        """Compares positions once more, in states that were looked for after they were committed."""
        marked = []
        for log, cursor in began.items():
            state, stored = states.get(log.topic), self._tenure.stored(group, [log])
            position = None if stored is None else stored[log]
            if state is not None and position is not None and is_of(position.cursor, log.partition, state):
                now = told(position, cursor, state)
                marked += [now] if now != position else []
        if marked and not self._groups.commit(marked, self._tenure.owner):
            self._tenure.note_stored(group, {position.log: position for position in marked})

    def _stored(self, group: str, logs: Collection[LogId]) -> Mapping[LogId, Position | None]:
        """The positions in these logs, from memory if this gateway has stored them."""
        if (known := self._tenure.stored(group, logs)) is not None:
            return known
        found = {position.log: position for position in self._groups.positions(group)}
        self._tenure.note_stored(group, before := {log: found.get(log) for log in logs})
        return before

    def fetch(self, groups: Mapping[str, Collection[Place] | None]) -> dict[str, dict[Place, Committed] | Code]:
        """By group, the offsets of these partitions, or of all, as far as there are any.

        While a topic cannot be read its members have to wait: without an offset they would begin anew.
        """
        names = self._topics.names()
        asked: dict[str, list[tuple[Place, Position]]] = {group: [] for group in groups}
        for position in self._groups.positions_of([*groups]):
            places = groups[position.group]
            some = ((name, position.log.partition) for name in names_of(position, names))
            asked[position.group] += [(place, position) for place in some if places is None or place in places]
        every = [one for some in asked.values() for one in some]
        states = {name: self._state(name) for name in sorted({name for (name, _), _ in every})}
        # Another gateway may know a later version: one that has it, or one that is cut, by whose epoch members read.
        starting = {name for group, some in asked.items() if groups[group] is not None for (name, _), _ in some}
        lost = {name for (name, _), position in every if is_lost(position, states[name])}
        states |= self._states_anew(starting | lost)
        self._note_begun(groups, states)
        return {group: committed(some, states, once=groups[group] is None) for group, some in asked.items()}

    def _note_begun(
        self, groups: Mapping[str, Collection[Place] | None], known: Mapping[str, TopicState | Code]
    ) -> None:
        """Those who ask for the offsets of partitions by name are about to read them, if the group has members here."""
        names, states = self._topics.names(), {**known}
        for group, places in groups.items():
            cursors: dict[Place, Cursor] = {}
            for name, number in places or ():
                if name in names and self._tenure.holds_log(group, LogId(names[name], number)):
                    if name not in states:
                        states[name] = self._state(name)
                    state = states[name]
                    if isinstance(state, TopicState) and number in state.partitions:
                        cursors[name, number] = Cursor.of(state, state.log(number), 0)
            self._tenure.begins(group, cursors)

    def topics(self, group: str) -> frozenset[str]:
        """The topics in which a group has an offset."""
        names, stored = self._topics.names(), {position.log.topic for position in self._groups.positions(group)}
        return frozenset(name for topic in stored if names.get(name := kafka_name(topic)) == topic)

    def groups(self) -> frozenset[str]:
        """All groups that have an offset."""
        return frozenset(position.group for position in self._groups.positions())

    def stored(self, groups: Collection[str]) -> frozenset[str]:
        """Those of these groups that have an offset."""
        return frozenset(position.group for position in self._groups.positions_of(groups))

    def delete(self, group: str, places: Collection[Place] | None) -> Code:
        """Deletes the offsets of these partitions, or of all."""
        names = self._topics.names()
        given = None if places is None else {LogId(names[name], number) for name, number in places if name in names}
        positions = self._groups.positions(group)
        if not positions:
            return Code.GROUP_ID_NOT_FOUND
        logs = {position.log for position in positions if given is None or position.log in given}
        self._tenure.forget_stored(group, logs)
        if logs and (self._tenure.hold(group, logs) or self._groups.delete(group, logs, self._tenure.owner)):
            return Code.NON_EMPTY_GROUP if self._tenure.holds(group) else Code.NOT_COORDINATOR
        return Code.NONE

    def topic(self, name: str, *, after: int = -1) -> Topic | Code:
        """The topic that clients know so."""
        try:
            topic = self._topics.topic(name, after=after)
        except LithifyError as error:
            LOGGER.warning("offsets in %s: %s", name, error)
            return Code.KAFKA_STORAGE_ERROR
        return Code.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic

    def _topics_anew(self, names: Collection[str]) -> dict[str, Topic | Code]:
        """These topics, by one check of the catalog that begins now."""
        begun = self._topics.begun
        return {name: self.topic(name, after=begun) for name in sorted(names)}

    def _states_anew(self, names: Collection[str]) -> dict[str, TopicState | Code]:
        return {name: _state_of(topic) for name, topic in self._topics_anew(names).items()}

    def _state(self, name: str) -> TopicState | Code:
        return _state_of(self.topic(name))


def _state_of(topic: Topic | Code) -> TopicState | Code:
    return topic if isinstance(topic, Code) else topic.state


def _known(state: TopicState | Code) -> TopicState:
    assert isinstance(state, TopicState)
    return state
