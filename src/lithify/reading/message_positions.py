"""Pulsar's questions to a compacted topic, answered from the lake: the two of its compaction service (PIP-429).

    find_by_publish_time    a reader that starts at a time: the position of its next record
    last_message_position   that of the last record, EARLIEST without one

The first reads one segment, found by the bounds in the manifests; the second only metadata.
"""

from __future__ import annotations

from lithify.errors import RefusedError
from lithify.model.message import EARLIEST, MessagePosition
from lithify.model.record import Record
from lithify.model.topic.state import TopicState
from lithify.reading.pieces import Reading


def check_has_ids(state: TopicState) -> None:
    """Raises `RefusedError` for a topic whose records have no message ids."""
    if state.settings.message_ids == "none":
        raise RefusedError(
            f"{state.name}: its records have no message ids",
            hint="a topic copied with `lithify pulsar ingest` has them; others have offsets",
        )


def message_position(record: Record) -> MessagePosition:
    """The position of a stored record that has a message id."""
    assert record.envelope is not None and record.timestamp is not None
    return MessagePosition(*record.envelope.id, record.timestamp)


def last_message_position(state: TopicState, partition: int, *, compacted: bool) -> MessagePosition:
    """The position of the last record that can be read. Raises `RefusedError` without ids, `UnknownTopicError`."""
    check_has_ids(state)
    state.check_partition(partition)
    last = Reading(compacted=compacted).last_record(state.log(partition))
    return EARLIEST if last is None else last.position
