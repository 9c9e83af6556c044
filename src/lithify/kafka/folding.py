"""A plain dict as the table of a topic: the latest record of every live key (C9 to C12, C17)."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field

from lithify.compaction.rules import table_rules
from lithify.compaction.versions import version_of
from lithify.model.log import LogState
from lithify.model.record import Record
from lithify.model.settings import TopicSettings

Table = MutableMapping[bytes, Record]


@dataclass(slots=True)
class Folding:
    """Puts records of a topic with these settings into tables, in offset order.

    Where a late record may lose to an older one (C10), it remembers which versions deleted keys.
    """

    settings: TopicSettings
    _versioned: bool = field(init=False)
    _empty_deletes: bool = field(init=False)
    _deleted: dict[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._versioned = self.settings.compaction_strategy != "offset"
        self._empty_deletes = self.settings.empty_is_tombstone

    def put(self, table: Table, record: Record) -> None:
        """`record` wins its key in `table`, deletes it, or is older than what won. Keyless ones count for nothing."""
        key = record.key
        if key is None:
            return
        deletes = record.value is None or (self._empty_deletes and not record.value)  # C17
        if self._versioned and not self._wins(table, key, record, deletes=deletes):
            return
        if deletes:
            table.pop(key, None)
        else:
            table[key] = record

    def _wins(self, table: Table, key: bytes, record: Record, *, deletes: bool) -> bool:
        rules = table_rules(LogState(0), self.settings)
        version, held = version_of(record, rules), table.get(key)
        before = self._deleted.get(key) if held is None else version_of(held, rules)
        if before is not None and version < before:
            return False
        if deletes:
            self._deleted[key] = version  # C11: an older value must not come back
        else:
            self._deleted.pop(key, None)
        return True
