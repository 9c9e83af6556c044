"""A plain dict as the table of a topic: the latest record of every live key (C9 to C12, C17)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import InitVar, dataclass, field

from lithify.model.record import Record, is_tombstone
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState
from lithify.rules.compaction.survivor_rules import SurvivorRules, order_of, table_rules

Table = MutableMapping[bytes, Record]


@dataclass(slots=True)
class TableFold:
    """Puts records of a topic with these settings into tables, in offset order.

    Where a later record may lose to an earlier one (C10), it keeps the orders of the tombstones of deleted keys.
    """

    settings: InitVar[TopicSettings]
    _rules: SurvivorRules = field(init=False)
    _deleted: dict[bytes, int] = field(default_factory=dict)

    def __post_init__(self, settings: TopicSettings) -> None:
        # The rules of any log: offsets of the log do not decide which record wins and which deletes.
        self._rules = table_rules(LogState(0), settings)

    @property
    def by_order(self) -> bool:
        """Whether tombstones decide about late records (C10, C11): then a table alone cannot be continued."""
        return self._rules.is_ordered

    def put_all(self, table: Table, records: Iterable[Record]) -> None:
        """Each record wins its key, deletes it, or is older than the winner. Records without a key are ignored."""
        by_order = self.by_order
        for record in records:
            if record.key is None or not record.value or by_order:
                self._put(table, record)
            else:  # the common case: a value with bytes is no tombstone
                table[record.key] = record

    def _put(self, table: Table, record: Record) -> None:
        key = record.key
        if key is None:
            return
        size = None if record.value is None else len(record.value)
        deletes = is_tombstone(size, empty_is_tombstone=self._rules.empty_is_tombstone)
        if self.by_order and not self._wins(table, key, record, deletes=deletes):
            return
        if deletes:
            table.pop(key, None)
        else:
            table[key] = record

    def _wins(self, table: Table, key: bytes, record: Record, *, deletes: bool) -> bool:
        order, held = order_of(record, self._rules), table.get(key)
        before = self._deleted.get(key) if held is None else order_of(held, self._rules)
        if before is not None and order < before:
            return False
        if deletes:
            self._deleted[key] = order  # C11: an older value must not come back
        else:
            self._deleted.pop(key, None)
        return True


def refill(table: Table, fill: Callable[[Table], int]) -> int:
    """Replaces what a table has by what `fill` puts into an empty one: deletes of its keys may be gone (C12)."""
    if not table:
        return fill(table)
    contents: dict[bytes, Record] = {}
    taken = fill(contents)
    for key in [key for key in table if key not in contents]:
        del table[key]
    table.update(contents)
    return taken
