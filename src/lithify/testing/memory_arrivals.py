"""Records on their way into the memory store: refused and completed one by one (C16)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lithify.columnar.arrivals.arrived_columns import refused_record
from lithify.columnar.arrivals.partitioner import partition_of
from lithify.model.record import TIMESTAMP_TYPES, Record
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.admission import (
    keeps_times,
    message_id_refusal,
    offset_refusal,
    partition_refusal,
    refusal,
    timestamp_type_refusal,
)
from lithify.testing.memory_batches import RecordArrivals, offset_of


def keyless_of(state: TopicState) -> int:
    """Where the round robin of keyless records continues."""
    return sum(log.log_end_offset for log in state.logs)


def received(
    state: TopicState, records: Iterable[Record], keyless: int, *, now_ms: int, keep_offsets: bool
) -> tuple[dict[int, RecordArrivals], int]:
    """The records by partition, and where the round robin of keyless ones is after them.

    Raises `InvalidRecordError` for the first refused record, or `InvalidInputError`.
    """
    arriving: dict[int, list[Record]] = {}
    for index, record in enumerate(records):
        partition = record.partition
        if partition is None and record.key is not None:
            partition = partition_of(record.key, len(state.logs))
        elif partition is None:
            partition, keyless = keyless % len(state.logs), keyless + 1
        log = arriving.setdefault(partition, [])
        reason = _refusal(record, partition, log, state, now_ms=now_ms, keep_offsets=keep_offsets)
        if reason is not None:
            raise refused_record(index, reason)
        log.append(_completed(record, partition, state.settings, now_ms=now_ms, keep_offsets=keep_offsets))
    return {p: RecordArrivals(tuple(log)) for p, log in sorted(arriving.items())}, keyless


def _refusal(
    record: Record, partition: int, before: Sequence[Record], state: TopicState, *, now_ms: int, keep_offsets: bool
) -> str | None:
    reason = partition_refusal(partition, len(state.logs))
    reason = reason or refusal(record, state.settings, now_ms=now_ms, keep_offsets=keep_offsets)
    if reason is None and record.envelope is not None:
        last = before[-1].envelope if before else None
        reason = message_id_refusal(record.envelope.id, None if last is None else last.id)
    if reason is not None or not keep_offsets:
        return reason
    reason = offset_refusal(record.partition, record.offset, offset_of(before[-1]) if before else None)
    if reason is None and record.timestamp_type not in TIMESTAMP_TYPES:
        reason = timestamp_type_refusal(record.timestamp_type)
    return reason


def _completed(record: Record, partition: int, settings: TopicSettings, *, now_ms: int, keep_offsets: bool) -> Record:
    timestamp = now_ms if record.timestamp is None else record.timestamp
    if keep_offsets:
        return record._replace(partition=partition, timestamp=timestamp)
    own_times = keeps_times(settings, keep_offsets=keep_offsets)
    by_log = settings.message_timestamp_type == "LogAppendTime" and not own_times
    return record._replace(
        partition=partition,
        offset=None,
        timestamp=now_ms if by_log else timestamp,
        timestamp_type="LogAppendTime" if by_log else "CreateTime",
    )
