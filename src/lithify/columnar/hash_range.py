"""How the keys of a log are cut into hash ranges, so that each fits into one task's memory (C38)."""

from __future__ import annotations

from dataclasses import dataclass

HASH = "(hash(key) >> 24)"
"""What hash ranges are made of. The lowest bits place a key in DuckDB's own hash table, the highest
in its partitions: ranges made of those would crowd their keys together there."""


@dataclass(frozen=True, slots=True)
class HashRange:
    """The keys whose `HASH` modulo `count` is `index`. It is DuckDB's, the same on every machine."""

    index: int
    count: int

    def halves(self) -> tuple[HashRange, HashRange]:
        return HashRange(self.index, 2 * self.count), HashRange(self.index + self.count, 2 * self.count)

    @property
    def sql(self) -> str:
        return "true" if self.count == 1 else f"{HASH} % {self.count} = {self.index}"
