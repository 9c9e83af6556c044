"""Which records a log accepts (C16, and the settings on size and time), and how many partitions a topic.

`refusal` is the rule for one record. The bulk path checks whole columns by the same rule, and tests compare both;
a batch with one refused record is refused whole.
"""

from __future__ import annotations

from lithify.errors import OffsetOutOfRangeError, RefusedError
from lithify.model.message import NO_BATCH, MessageId
from lithify.model.names import LogId
from lithify.model.record import LAST_OFFSET, Record
from lithify.model.settings.table import MAX_PARTITIONS
from lithify.model.settings.topic_settings import TopicSettings


def refusal(record: Record, settings: TopicSettings, *, now_ms: int, keep_offsets: bool) -> str | None:
    """Why the topic refuses this record, for a person; None if it accepts it."""
    nameless = any(name is None for name, _ in record.headers)  # Arrow has such
    reason = "a header of it has no name" if nameless else _envelope_refusal(record, settings)
    if reason is not None:
        return reason
    if record.key is None and settings.null_key == "reject" and settings.compacts and not record.passed_through:
        return NO_KEY
    if record.size_bytes > settings.max_message_bytes:
        return f"it has {record.size_bytes} bytes, above max.message.bytes={settings.max_message_bytes}"
    if record.timestamp is None or keeps_times(settings, keep_offsets=keep_offsets):
        return None
    if settings.message_timestamp_type == "LogAppendTime":
        return None  # its own timestamp is replaced
    if record.timestamp < 0:
        return f"its timestamp {record.timestamp} is before 1970"
    if record.timestamp > now_ms + settings.message_timestamp_after_max_ms:
        return f"its timestamp {record.timestamp} is further ahead than message.timestamp.after.max.ms allows"
    return None


def keeps_times(settings: TopicSettings, *, keep_offsets: bool) -> bool:
    """Whether records are copies, which have the timestamps of their source, whatever these are."""
    return keep_offsets or settings.message_ids == "pulsar"


def _envelope_refusal(record: Record, settings: TopicSettings) -> str | None:
    if settings.message_ids == "none":
        return None if record.envelope is None else UNWANTED_MESSAGE_ID
    if record.envelope is None:
        return NO_MESSAGE_ID
    if record.partition is None:
        return "it has a message id, but no partition"
    if record.envelope.passed_through and record.key is not None:
        return "it is an entry that is passed through whole, but has a key"
    return None


NO_KEY = "it has no key, and null.key=reject"
UNWANTED_MESSAGE_ID = "it has a message id, but message.ids=none"
NO_MESSAGE_ID = "it has no message id, but message.ids=pulsar: only `lithify pulsar ingest` gives records ids"


def message_id_refusal(message_id: MessageId, before: MessageId | None) -> str | None:
    """Why a log refuses a record with this id, after `before` in the same batch (C52)."""
    if min(message_id.ledger, message_id.entry) < 0 or message_id.batch_index < NO_BATCH:
        return f"its message id {message_id} has a negative part"
    if before is not None and message_id <= before:
        return f"its message id {message_id} does not ascend: {before} came before it"
    return None


def partition_refusal(partition: int, count: int) -> str | None:
    """Why a topic of `count` partitions refuses a record for this one."""
    return None if 0 <= partition < count else f"there is no partition {partition} (the topic has {count}, from 0 on)"


def offset_refusal(partition: int | None, offset: int | None, before: int | None) -> str | None:
    """Why a log refuses a record that keeps its own offset, after `before` in the same batch."""
    if partition is None or offset is None:
        return f"it has no {'partition' if partition is None else 'offset'}, which is needed to keep offsets"
    if offset < 0:
        return f"its offset {offset} is below 0"
    if offset > LAST_OFFSET:
        return f"its offset {offset} is above {LAST_OFFSET}, the largest offset"
    if before is not None and offset <= before:
        return f"its offset {offset} does not ascend: {before} came before it in partition {partition}"
    return None


def timestamp_type_refusal(kind: object) -> str:
    """Why a record that keeps its own offset is refused for its timestamp type, a number that no type has."""
    return f"its timestamp_type {kind} is neither 0 (CreateTime) nor 1 (LogAppendTime)"


def check_offsets(log: LogId, first_offset: int, records: int) -> None:
    """Raises `OffsetOutOfRangeError` if the log has not enough offsets for the records."""
    if records > LAST_OFFSET - first_offset + 1:
        raise OffsetOutOfRangeError(
            f"{log}: the log has no offsets left for {records} records from {first_offset} on: {LAST_OFFSET} is the "
            "largest",
            hint="nothing was appended; `truncate` frees offsets at the end of the log",
        )


def check_partitions(count: int) -> None:
    """Raises `RefusedError`."""
    if not isinstance(count, int) or not 1 <= count <= MAX_PARTITIONS:
        raise RefusedError(f"partitions={count}: a topic has 1 to {MAX_PARTITIONS}")
