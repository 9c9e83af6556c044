"""Notes in the database of leases when a cleaner's last look was completed, for `status` to read (C50)."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.daemons.cleaner.cleaner_options import CleanerOptions
from lithify.daemons.cleaner.event_reporter import EventReporter
from lithify.errors import CoordinationError
from lithify.model.cleaner_note import CleanerNote
from lithify.ports.leases import Coordination


@dataclass(slots=True)
class NoteWriter:
    """Stores when the cleaner last completed a look. For one thread. An error is reported once, not each time."""

    coordination: Coordination
    options: CleanerOptions
    reporter: EventReporter
    started_ms: int
    _noted_ms: int | None = -1
    _failed_with: str = ""

    def write(self, looked_ms: int | None) -> None:
        """`looked_ms` is when the last look was completed; None if none was yet."""
        if looked_ms == self._noted_ms:
            return
        self._noted_ms, options = looked_ms, self.options
        note = CleanerNote(options.cleaner_id, options.scope, options.interval_ms, self.started_ms, looked_ms)
        try:
            self.coordination.put_note(note)
        except CoordinationError as error:
            if str(error) != self._failed_with:
                self.reporter.error(None, error)
            self._failed_with = str(error)
        else:
            self._failed_with = ""
