"""What a running cleaner, or daemon of replicas, leaves in the database of leases by which cleaners are listed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CleanerNote:
    """The note of one running cleaner, or of one that did not end in order. Times in epoch ms."""

    cleaner: str
    scope: str
    """The catalog, as all its cleaners name it."""
    interval_ms: int
    """Time between two looks, unless they take longer."""
    started_ms: int
    looked_ms: int | None
    """When it last completed a check of the topics; None before the first one."""

    @property
    def last_ms(self) -> int:
        """When it last wrote, by the clock of its machine."""
        return self.started_ms if self.looked_ms is None else self.looked_ms
