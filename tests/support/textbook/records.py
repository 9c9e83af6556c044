"""Records as the contract judges them: which of a key wins, and which delete (C9, C10, C17)."""

from __future__ import annotations

from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings

Records = tuple[Record, ...]
UNORDERED = -(2**63) - 1


def at(record: Record) -> int:
    """The offset of a record that has one."""
    assert record.offset is not None
    return record.offset


def deletes(record: Record, settings: TopicSettings) -> bool:
    """C17."""
    return record.value is None or (record.value == b"" and settings.empty_value == "tombstone")


def is_old(record: Record, oldest_ms: int | None) -> bool:
    """C24: whether its timestamp is below the limit, if there is one."""
    return oldest_ms is not None and (record.timestamp or 0) < oldest_ms


def key_in(record: Record) -> bytes | None:
    """The key of a record, or that of the message which it is a chunk of (C53)."""
    return record.key if record.chunk is None else record.chunk.key


def order(record: Record, settings: TopicSettings) -> int:
    """What decides before the offset does (C10)."""
    if settings.compaction_strategy == "offset":
        return 0
    if settings.compaction_strategy == "timestamp":
        return record.timestamp or 0
    assert settings.compaction_strategy == "header"
    named = [value for name, value in record.headers if name == settings.compaction_strategy_header]
    if not named or named[-1] is None or len(named[-1]) != 8:
        return UNORDERED
    return int.from_bytes(named[-1], "big", signed=True)


def winners_of(records: Records, settings: TopicSettings) -> dict[bytes, Record]:
    """By key: sorted by what decides, the last (C9, C10)."""
    ordered = sorted(records, key=lambda r: (order(r, settings), at(r)))
    return {r.key: r for r in ordered if r.key is not None}
