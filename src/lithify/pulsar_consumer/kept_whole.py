"""Counts and names the entries of a partition that their producer wrote damaged, for a consumer that skips them (C74).


A consumer that is interrupted reads entries again, so each counts once: those at or below the last one that was counted
were seen before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lithify.pulsar.columns import Damage
from lithify.pulsar.format.entry import RawEntry

_NOWHERE = (-1, -1)


@dataclass(slots=True)
class KeptWhole(Damage):
    """Of one partition, however often it is read. Entries are added in any order, and counted by `count_new`."""

    counted: tuple[int, int] = _NOWHERE
    """The place of the last one."""
    new: dict[tuple[int, int], RawEntry] = field(default_factory=dict)
    """Of the entries that are read at once."""

    def add(self, raw: RawEntry) -> None:
        if (place := (raw.ledger, raw.entry)) > self.counted:
            self.new[place] = raw

    def count_new(self) -> None:
        """Counts those that were added, before others behind them are."""
        for place, raw in sorted(self.new.items()):
            Damage.add(self, raw)
            self.counted = place
        self.new.clear()
