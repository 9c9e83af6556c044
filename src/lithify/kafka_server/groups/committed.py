"""An offset that a client commits or asks for, and the position of the lake's group that it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.untold import is_of
from lithify.kafka_server.logs.kafka_names import kafka_name
from lithify.kafka_server.logs.leader_epochs import epoch_end
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import Position
from lithify.model.names import LogId, TopicName
from lithify.model.topic.state import TopicState
from lithify.rules.reading.pieces import Reading

METADATA_CHARACTERS = 4_096
"""As Kafka's `offset.metadata.max.bytes`. Metadata is not stored."""

Place = tuple[str, int]
"""A topic as clients name it, and a partition."""


@dataclass(frozen=True, slots=True)
class Commit:
    """An offset that a client commits. `leader_epoch` is -1 if it does not know it, `topic_id` is None."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    offset: int
    leader_epoch: int


def names_of(position: Position, names: Mapping[str, TopicName]) -> list[str]:
    """The names of a topic, first the one under which the group has read it, if it is served so."""
    topic = position.log.topic
    both = (kafka_name(topic, compacted=compacted) for compacted in (position.compacted, not position.compacted))
    return [name for name in both if names.get(name) == topic]


def committed(
    asked: Collection[tuple[Place, Position]], states: Mapping[str, TopicState | Code], *, once: bool
) -> dict[Place, Committed] | Code:
    """The offsets of one group: with `once` of each log under its first name that is served.

    Of a log that was cut below one since, it is the cut: librdkafka checks the epoch of an offset only while it reads.
    """
    found: dict[Place, Committed] = {}
    done = set[LogId]()
    for place, position in asked:
        if once and position.log in done:
            continue
        state = states[place[0]]
        if state is Code.KAFKA_STORAGE_ERROR:
            return Code.COORDINATOR_LOAD_IN_PROGRESS
        if isinstance(state, TopicState) and is_of(position.cursor, position.log.partition, state):
            found[place] = Committed(_uncut(position, state), position.cursor.generation)
            done.add(position.log)
    return found


def _uncut(position: Position, state: TopicState) -> int:
    cursor, log = position.cursor, state.log(position.log.partition)
    if cursor.generation == log.generation:
        return cursor.offset
    _, end = epoch_end(log, cursor.generation, Reading(compacted=position.compacted).start(log))
    return min(cursor.offset, end)


def is_lost(position: Position, state: TopicState | Code) -> bool:
    return isinstance(state, TopicState) and not is_of(position.cursor, position.log.partition, state)


def is_later(state: TopicState | Code, partition: int, commit: Commit) -> bool:
    """Whether a client knows a later version of the topic, by another gateway."""
    if isinstance(state, Code):
        return state is Code.UNKNOWN_TOPIC_OR_PARTITION
    return partition not in state.partitions or commit.leader_epoch > state.log(partition).generation


def position_of(group: str, state: TopicState | Code, place: Place, commit: Commit, now_ms: int) -> Position | Code:
    if isinstance(state, Code):
        return state
    name, partition = place
    if partition not in state.partitions:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    if len(commit.metadata) > METADATA_CHARACTERS:
        return Code.OFFSET_METADATA_TOO_LARGE
    log = state.log(partition)
    if commit.offset < 0 or commit.leader_epoch > log.generation:
        return Code.INVALID_REQUEST
    cursor = Cursor.of(state, log, commit.offset)
    if 0 <= commit.leader_epoch < log.generation:
        cursor = replace(cursor.without_run(), generation=commit.leader_epoch)
    return Position(group, LogId(state.name, partition), cursor, name != kafka_name(state.name), now_ms)
