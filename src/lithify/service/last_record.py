"""The last record of some segments, which the metadata stores (C36), and the first message id from an offset on.

The position of the last message (PIP-429) is the last record's, which the metadata has. Only if that record may
be an encrypted batch, it is read: it has one id, and the last message in it another.
"""

from __future__ import annotations

from lithify.errors import DamagedError
from lithify.model.message import EARLIEST, NO_BATCH, MessageId, MessagePosition
from lithify.model.segment import Segment
from lithify.model.topic.log import LastRecord
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.pulsar.lake.last_index import last_index_in
from lithify.rules.reading.message_positions import check_has_ids
from lithify.rules.reading.pieces import Reading


def last_record(warehouse: Warehouse, segments: tuple[Segment, ...], known: LastRecord | None) -> LastRecord | None:
    """The last record of `segments`, which are in offset order; the file is read only if it is not `known`.

    A mask may hide the last records of its segment: then more of it is read, twice the amount each time.
    """
    if not segments:
        return None
    segment = segments[-1]
    offset = segment.end_offset - 1
    if known is not None and known.offset == offset and segment.mask is None:
        return known
    last, size = _last_from(warehouse, segment, offset), 1
    while last is None and segment.mask is not None and offset - size >= segment.base_offset:
        size *= 2
        last = _last_from(warehouse, segment, max(segment.base_offset, offset + 1 - size))
    if last is None:
        raise DamagedError(f"{segment.path}: its last record, at offset {offset}, cannot be read")
    return last


def _last_from(warehouse: Warehouse, segment: Segment, offset: int) -> LastRecord | None:
    last = None
    for batch in warehouse.files.read(segment, offset):
        *_, record = batch.records()
        assert record.offset is not None and record.timestamp is not None  # every stored record has them
        last = LastRecord(record.offset, record.timestamp, None if record.envelope is None else record.envelope.id)
    return last


def last_position(warehouse: Warehouse, state: TopicState, partition: int, how: Reading) -> MessagePosition:
    """The position of the last message that can be read, `EARLIEST` if there is none.

    Raises `RefusedError` for a topic without ids, `UnknownTopicError`, `DamagedError`.
    """
    check_has_ids(state)
    state.check_partition(partition)
    log = state.log(partition)
    last = how.last_record(log)
    if last is None:
        return EARLIEST
    position = last.position
    in_view = log.view if how.reads_view(log) and last.offset < log.first_dirty_offset else None
    volume = log.volume if in_view is None else in_view.volume
    if position.batch_index != NO_BATCH or not volume.passed_through:
        return position
    load = warehouse.store.segments if in_view is None else warehouse.store.view
    segments = load(state, [partition])
    return position._replace(batch_index=_last_index(warehouse, segments, last.offset))


def _last_index(warehouse: Warehouse, segments: tuple[Segment, ...], offset: int) -> int:
    """The index of the last message in the record at an offset whose own id has none."""
    for segment in segments:
        facts = segment.envelopes
        if facts is None or not facts.passed_through or not segment.base_offset <= offset < segment.end_offset:
            continue
        for batch in warehouse.files.read(segment, offset):
            for record in batch.records():
                return last_index_in(record)
    return NO_BATCH


def first_message_id(warehouse: Warehouse, segments: tuple[Segment, ...], offset: int) -> MessageId | None:
    """The id of the first record at or after `offset`; None if there is no such record, or records have no ids."""
    for segment in segments:
        if segment.envelopes is None or segment.end_offset <= offset:
            continue
        for batch in warehouse.files.read(segment, offset):
            for record in batch.records():
                assert record.envelope is not None  # all records of such a segment have one
                return record.envelope.id
    return None
