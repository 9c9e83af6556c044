"""Entries that their producers wrote damaged, such as batches that lie about their count: a way round them (C74).

    messages_of(entries, damage) ──► such an entry is one row, as an encrypted one is, and is named in `damage`

Their checksums are right, so that they are what was sent: no bookie has a better copy. An entry that was damaged
since is an error, whatever is asked. Without a `Damage` every damage is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lithify.errors import DamagedError
from lithify.model.message import DAMAGED_NAMED_AT_MOST
from lithify.pulsar.format.batch import messages_of_batch
from lithify.pulsar.format.entry import RawEntry, entry_of
from lithify.pulsar.format.kinds import Kind, kind_of


@dataclass(slots=True)
class Damage:
    """How many entries were kept whole, and which: the first ones, as LEDGER:ENTRY."""

    count: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, raw: RawEntry) -> None:
        self.count += 1
        if len(self.named) < DAMAGED_NAMED_AT_MOST:
            self.named.append(raw.place)

    def places_in(self, entries: Iterable[RawEntry]) -> frozenset[tuple[int, int]]:
        """The places of batches that are to be kept whole. Raises `DamagedError` for what was damaged since."""
        places = set()
        for raw in entries:
            try:
                entry = entry_of(raw)
                if kind_of(entry) is Kind.BATCH:
                    messages_of_batch(entry)
            except DamagedError:
                entry_of(raw, any_metadata=True)
                self.add(raw)
                places.add((raw.ledger, raw.entry))
        return frozenset(places)
