"""Whether groups that read the source go on at the replica, where they are and with what is left to read (C68)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from lithify.api.lake import Lake
from lithify.api.wiring import groups_of
from lithify.model.groups.copies import at_replica
from lithify.model.groups.positions import Position
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.ports.groups import Groups
from lithify.rules.reading.continuation import Continues, continuation
from lithify.rules.reading.pieces import Reading
from lithify.service.read.fetch import open_log
from soak.checks import AT_ONCE


def position_differences(source: Lake, target: Lake, names: Sequence[TopicName]) -> tuple[list[str], int]:
    """In words, which positions are not those of the source, and how many were compared."""
    theirs, ours = (groups_of(lake.warehouse, None) for lake in (source, target))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda name: _of_topic(source, target, theirs, ours, name), names))
    return [text for texts, _ in found for text in texts], sum(positions for _, positions in found)


def _of_topic(source: Lake, target: Lake, theirs: Groups, ours: Groups, name: TopicName) -> tuple[list[str], int]:
    wanted, stored = theirs.positions(topic=name), ours.positions(topic=name)
    here, there = (lake.warehouse.store.load(name) for lake in (source, target))
    found = []
    if tuple(at_replica(position, here.identity, there) for position in wanted) != stored:
        found.append(f"positions in the replica of {name}: {stored}, not {wanted}")
    else:
        for pair in zip(wanted, stored, strict=True):
            found += _of_position(source, target, *pair)
    return found, len(wanted)


def _of_position(source: Lake, target: Lake, theirs: Position, ours: Position) -> Iterator[str]:
    """A reader at both gets the same, or the same error."""
    how, left = Reading(compacted=theirs.compacted), list[tuple[object, tuple[Record, ...]]]()
    for lake, position in ((source, theirs), (target, ours)):
        state, partition = lake.warehouse.store.load(position.log.topic), position.log.partition
        if partition not in state.partitions:  # of an earlier topic of that name, which had more
            left.append((None, ()))
            continue
        found = continuation(position.cursor, state, state.log(partition), compacted=position.compacted)
        goes_on = isinstance(found, Continues)
        left.append((found, tuple(open_log(lake.warehouse, state, partition, position.cursor, how)) if goes_on else ()))
    if left[0] != left[1]:
        counts = [(found, len(records)) for found, records in left]
        yield f"group {theirs.group} at the replica of {theirs.log}: {counts[1]}, not {counts[0]}"
