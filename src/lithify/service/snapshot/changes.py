"""What records change in a table that has a row for every partition and live key (C9 to C12, C17).

    records, in offset order ─► Changes: the winner of every key ─► one change of the table, whatever its size

`TableFold` does it to a dict; this is for a table elsewhere, which must hear of deletes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field

from lithify.model.record import Record, is_tombstone
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState
from lithify.rules.compaction.survivor_rules import SurvivorRules, order_of, table_rules

LogKey = tuple[int, bytes]
"""A partition, and a key in it."""


@dataclass(slots=True)
class Changes:
    """The winners among the records since the last `clear`. Records without a key are ignored."""

    settings: InitVar[TopicSettings]
    winners: dict[LogKey, Record] = field(default_factory=dict)
    _rules: SurvivorRules = field(init=False)

    def __post_init__(self, settings: TopicSettings) -> None:
        # The rules of any log: offsets of the log do not decide which record wins and which deletes.
        self._rules = table_rules(LogState(0), settings)

    @property
    def by_order(self) -> bool:
        """Whether a later record may lose to an earlier one (C10): the orders of deletes must be kept then (C11)."""
        return self._rules.is_ordered

    @property
    def strategy(self) -> str:
        """What decides which record wins: a table that another one has filled cannot be continued."""
        return str(self._rules.order or "offset")

    def put_all(self, records: Iterable[Record]) -> None:
        winners, by_order = self.winners, self.by_order
        for record in records:
            key, partition = record.key, record.partition
            if key is None:
                continue
            assert partition is not None
            place = partition, key
            if by_order and (held := winners.get(place)) is not None and self.order(record) < self.order(held):
                continue
            winners[place] = record

    def drop_losers(self, orders: Mapping[LogKey, int]) -> None:
        """Drops those that lose to what the table has, or has had before a delete: `orders`, where it knows them."""
        for place, order in orders.items():
            if self.order(self.winners[place]) < order:
                del self.winners[place]

    def order(self, record: Record) -> int:
        return order_of(record, self._rules)

    def deletes(self, record: Record) -> bool:
        size = None if record.value is None else len(record.value)
        return is_tombstone(size, empty_is_tombstone=self._rules.empty_is_tombstone)

    def clear(self) -> None:
        self.winners.clear()
