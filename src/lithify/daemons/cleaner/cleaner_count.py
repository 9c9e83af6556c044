"""Divides the rates that all cleaners of a catalog share: each keeps count of those that are running (C40).

    leases of ids, at heartbeats ─► how many? ─► cleaners.json, unless it says so ─► tasks of every cleaner

All of them divide by the one stored number, so that what they move together remains below the rate. A cleaner
that starts is counted by its own first heartbeat; one that died, once the lease of its id has ended. While the
database of leases cannot be reached, the number remains as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.errors import CoordinationError, LithifyError
from lithify.ports.documents import Documents
from lithify.ports.leases import Coordination
from lithify.service.documents import put_cleaners


@dataclass(slots=True)
class CleanerCount:
    """Of one cleaner. For one thread, as requests to the store may take long."""

    store: Documents
    coordination: Coordination
    leases: LeaseKeeper
    scope: str
    observed: Event = field(default_factory=Event, init=False)
    """Set once the leases were observed: while the database is away, the others would seem to have ended."""
    _stored: int | None = field(default=None, init=False)

    def store_when_observed(self, wait_s: float) -> None:
        """Stores the number of running cleaners, where it is another one, once the leases were observed again.

        What fails is tried at the next call.
        """
        if not self.observed.wait(wait_s):
            return
        self.observed.clear()
        if not self.coordination.shared:
            return
        try:
            count = 1 + len(self.leases.other_cleaners() - self._of_other_catalogs())
            if count == self._stored == 1:
                return  # alone, so that no other cleaner has stored another number
            put_cleaners(self.store, count)
            self._stored = count
        except LithifyError:
            self._stored = None

    def _of_other_catalogs(self) -> frozenset[str]:
        """Ids of cleaners that share the database of leases, and no topics."""
        try:
            notes = self.coordination.notes() if self.leases.other_cleaners() else ()
        except CoordinationError:
            return frozenset()  # counting too many moves less than the rate, and never more
        return frozenset(note.cleaner for note in notes if note.scope != self.scope)
