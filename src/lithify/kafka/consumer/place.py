"""Where somebody outside stands in a log of the lake, and that they can go on from there (C7, C49)."""

from __future__ import annotations

from lithify.errors import LogTruncatedError
from lithify.model.cursor import Place
from lithify.model.log import LogState, TopicState
from lithify.model.names import LogId
from lithify.reading.continuation import why_lost
from lithify.service.read.cursor import Reading

COMPACTED = Reading(compacted=True)
"""How somebody outside reads a log."""


def first_place(state: TopicState, partition: int) -> Place:
    """Before the first record of a version."""
    log = log_of(state, partition)
    return Place.of(state, log, log.compacted_start)


def check_place(place: Place, state: TopicState, partition: int) -> None:
    """Raises `LogTruncatedError` where going on from a place would miss something."""
    reason = why_lost(place, state, log_of(state, partition), compacted=True)
    if reason is not None:
        raise LogTruncatedError(f"{LogId(state.name, partition)}: {reason}", hint="start afresh, from the beginning")


def log_of(state: TopicState, partition: int) -> LogState:
    """The log of that partition; an empty one where only Kafka has the partition so far."""
    return state.log(partition) if partition in state.partitions else LogState(partition)
