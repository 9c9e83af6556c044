"""Pulsar's questions to a compacted topic, answered from the lake: the two of its compaction service (PIP-429).

    find_by_publish_time    ledger:entry of the first record that was published at or after a time
    last_message_position   that of the last record, EARLIEST without one

The first reads one segment, found by the bounds in the manifests; the second only metadata.
"""

from __future__ import annotations

from lithify.model.cursor import AtTime
from lithify.model.log import TopicState
from lithify.model.message import EARLIEST, MessagePosition
from lithify.ports.store import Warehouse
from lithify.reading.pieces import Reading
from lithify.service.read.fetch import open_log
from lithify.service.read.version_reader import check_has_ids


def find_by_publish_time(
    warehouse: Warehouse, state: TopicState, partition: int, publish_time_ms: int, *, compacted: bool
) -> MessagePosition | None:
    """The position of the first record, in order, that was published at or after that time; None without one.

    Raises `RefusedError` for a topic without message ids, `UnknownTopicError` or `DamagedError`.
    """
    check_has_ids(state)
    reader = open_log(warehouse, state, partition, AtTime(publish_time_ms), Reading(compacted=compacted))
    found = reader.read_next()
    if found is None:
        return None
    assert found.envelope is not None and found.timestamp is not None  # every record of such a topic has them
    return MessagePosition(*found.envelope.id, found.timestamp)


def last_message_position(state: TopicState, partition: int, *, compacted: bool) -> MessagePosition:
    """The position of the last record that can be read. Raises as `find_by_publish_time`."""
    check_has_ids(state)
    state.check_partition(partition)
    last = Reading(compacted=compacted).last_record(state.log(partition))
    return EARLIEST if last is None else last.position
