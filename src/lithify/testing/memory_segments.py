"""The facts of segments in memory: what a manifest would have of their records."""

from __future__ import annotations

from collections.abc import Sequence

from lithify.model.message import EnvelopeFacts
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.testing.memory_batches import offset_of

RECORD_BYTES = 16
"""What a record takes in this store beyond its payload."""


def segment_of(path: str, records: Sequence[Record]) -> Segment:
    """The facts of a segment that holds these records."""
    timestamps = [r.timestamp for r in records if r.timestamp is not None]
    keys = [r.key for r in records if r.key is not None]
    sizes = [len(r.value) for r in records if r.value is not None]
    partition = records[0].partition
    assert partition is not None
    return Segment(
        path=path,
        partition=partition,
        base_offset=offset_of(records[0]),
        end_offset=offset_of(records[-1]) + 1,
        records=len(records),
        size_bytes=sum(r.size_bytes + RECORD_BYTES for r in records),
        scan_bytes=sum(len(r.key or b"") + RECORD_BYTES for r in records),
        min_timestamp_ms=min(timestamps),
        max_timestamp_ms=max(timestamps),
        null_keys=len(records) - len(keys),
        null_values=len(records) - len(sizes),
        min_value_size=min(sizes, default=None),
        min_key=min(keys, default=None),
        max_key=max(keys, default=None),
        envelopes=_envelope_facts(records),
        only_chunks=_only_chunks(records),
    )


def _envelope_facts(records: Sequence[Record]) -> EnvelopeFacts | None:
    ids = [r.envelope.id for r in records if r.envelope is not None]
    if not ids:
        return None
    ledgers, entries = [i.ledger for i in ids], [i.entry for i in ids]
    passed_through = sum(r.passed_through for r in records)
    return EnvelopeFacts(min(ledgers), max(ledgers), min(entries), max(entries), passed_through)


def _only_chunks(records: Sequence[Record]) -> bool:
    whole = [r for r in records if r.passed_through]
    return bool(whole) and all(r.chunk is not None for r in whole)
