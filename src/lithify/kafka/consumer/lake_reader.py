"""Reads a consumer's records from the lake: the compacted records of a version (C33)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from lithify.kafka.consumer.cursors import log_of
from lithify.model.log import TopicState
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.reading.pieces import Reading
from lithify.service.documents import source_of
from lithify.service.read.fetch import open_log

TAKEN_AT_ONCE = 8192
"""Records that are in memory as Python objects at a time, at most."""


def compacted_records(
    warehouse: Warehouse, state: TopicState, partition: int, offset: int
) -> Iterator[Sequence[Record]]:
    """The records of a log from an offset on, up to the end of this version, in sequences."""
    log = log_of(state, partition)
    if offset < log.log_end_offset:
        start = max(offset, log.compacted_start)
        for batch in open_log(warehouse, state, partition, start, Reading(compacted=True)).poll():
            records = batch.records()
            while some := tuple(islice(records, TAKEN_AT_ONCE)):
                yield some


def copied_from(warehouse: Warehouse, state: TopicState, kafka_topic: str) -> str:
    """The id of the topic in Kafka that this one was copied from; empty where that is not known."""
    copied = source_of(warehouse.store, state)
    return copied.topic_id if copied is not None and copied.name == kafka_topic else ""
