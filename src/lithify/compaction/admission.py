"""Which records a log takes in (C16, and the settings on size and time).

The rule for one record. The bulk path checks whole columns by the same rule and is compared with
this one; a batch with one refused record is refused whole.
"""

from __future__ import annotations

from lithify.model.record import Record
from lithify.model.settings import TopicSettings


def refusal(record: Record, settings: TopicSettings, *, now_ms: int, keep_offsets: bool) -> str | None:
    """Why the topic refuses this record, for a person; None if it takes it."""
    if record.key is None and settings.null_key == "reject" and settings.compacts:
        return "it has no key, and null.key=reject"
    if record.size_bytes > settings.max_message_bytes:
        return f"it has {record.size_bytes} bytes, above max.message.bytes={settings.max_message_bytes}"
    if settings.message_timestamp_type == "LogAppendTime" and not keep_offsets:
        return None  # its own timestamp is replaced
    if record.timestamp is None or keep_offsets:
        return None
    if record.timestamp < 0:
        return f"its timestamp {record.timestamp} is before 1970"
    if record.timestamp > now_ms + settings.message_timestamp_after_max_ms:
        return f"its timestamp {record.timestamp} is further ahead than message.timestamp.after.max.ms allows"
    return None
