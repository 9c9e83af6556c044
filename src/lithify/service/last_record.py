"""The last record of some segments, which the metadata stores (C36), and the first message id from an offset on."""

from __future__ import annotations

from lithify.errors import DamagedError
from lithify.model.message import MessageId
from lithify.model.segment import Segment
from lithify.model.topic.log import LastRecord
from lithify.ports.store import Warehouse


def last_record(warehouse: Warehouse, segments: tuple[Segment, ...], known: LastRecord | None) -> LastRecord | None:
    """The last record of `segments`, which are in offset order; the file is read only if it is not `known`."""
    if not segments:
        return None
    offset = segments[-1].end_offset - 1
    if known is not None and known.offset == offset:
        return known
    for batch in warehouse.files.read(segments[-1], offset):
        for record in batch.records():
            assert record.timestamp is not None  # every stored record has one
            return LastRecord(offset, record.timestamp, None if record.envelope is None else record.envelope.id)
    raise DamagedError(f"{segments[-1].path}: its last record, at offset {offset}, cannot be read")


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
