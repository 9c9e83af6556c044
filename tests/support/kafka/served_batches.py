"""What clients of Kafka find in batches that are served."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from aiokafka.record.memory_records import MemoryRecords

from lithify.kafka_log.batches.decoding import header_of, records_of
from lithify.kafka_log.batches.frames import frames_of
from lithify.kafka_log.batches.header import BatchHeader
from lithify.kafka_server.logs.served_log import ServedLog
from lithify.model.record import Record

Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Offset, timestamp, key, value and headers of a record."""


def row_of(record: Record) -> Row:
    assert record.offset is not None and record.timestamp is not None
    return record.offset, record.timestamp, record.key, record.value, record.headers


def headers_in(buffers: Iterable[memoryview]) -> list[BatchHeader]:
    """The headers of all batches; their checksums are right."""
    return [header_of(frame) for frame in frames_of(io.BytesIO(b"".join(buffers)))]


def rows_in(buffers: Sequence[memoryview]) -> list[Row]:
    """The records, which our reader and another one find alike."""
    data = b"".join(buffers)
    ours = [record for frame in frames_of(io.BytesIO(data)) for record in records_of(frame)]
    theirs, found = MemoryRecords(data), []
    while theirs.has_next():
        batch = theirs.next_batch()
        assert batch is not None and batch.validate_crc()
        found += [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert all(record.timestamp_type == 0 for record in ours)
    assert found == [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in ours]
    return found


def read_on(log: ServedLog, offset: int, max_bytes: int = 2**20) -> list[Row]:
    """What a client reads from an offset to the log end, response by response."""
    rows = []
    while offset < log.end:
        buffers = log.batches(offset, max_bytes)
        headers = headers_in(buffers)
        assert headers, f"a client waits at {offset} of {log.end} for ever"
        assert len(headers) == 1 or sum(map(len, buffers)) <= max_bytes
        assert {header.leader_epoch for header in headers} == {log.leader_epoch}
        rows += [row for row in rows_in(buffers) if row[0] >= offset]
        assert headers[-1].last_offset >= offset
        offset = headers[-1].last_offset + 1
    assert offset == log.end
    return rows
