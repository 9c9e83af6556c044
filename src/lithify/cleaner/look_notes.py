"""Tells other processes when a cleaner last looked: beside the leases, for people only (C50)."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.cleaner.events import Teller
from lithify.cleaner.options import CleanerOptions
from lithify.errors import CoordinationError
from lithify.ports.leases import Coordination
from lithify.reports.cleaner_note import CleanerNote


@dataclass(slots=True)
class LookNotes:
    """For one thread. Trouble is told when it begins: the looks do not depend on it."""

    coordination: Coordination
    options: CleanerOptions
    teller: Teller
    started_ms: int
    _noted_ms: int | None = -1
    _trouble: str = ""

    def note(self, looked_ms: int | None) -> None:
        """The last look was completed then; None is that none was yet."""
        if looked_ms == self._noted_ms:
            return
        self._noted_ms, options = looked_ms, self.options
        note = CleanerNote(options.cleaner_id, options.scope, options.interval_ms, self.started_ms, looked_ms)
        try:
            self.coordination.put_note(note)
        except CoordinationError as error:
            if str(error) != self._trouble:
                self.teller.trouble(None, error)
            self._trouble = str(error)
        else:
            self._trouble = ""
