"""What an ingest says between its batches: where copies begin, that they wait, and that the source is away.

begins ─► batches ─► waiting, at most once in `QUIET_MS` for each topic
      └─► the source is silent ─► outage ─► recovered (`system_outages.py`)
"""

from __future__ import annotations

from lithify.model.sources.source import IngestRequest
from lithify.ports.clock import Clock
from lithify.ports.source import Source
from lithify.reports.ingest import (
    IngestBatch,
    IngestedEntries,
    IngestedLog,
    IngestNote,
    IngestReport,
    TellNote,
    lag_text,
)
from lithify.service.ingest.system_outages import Outages, Seldom, WarehouseOutages, begins_text

LOOK_MS = 1_000
"""Between two checks of whether the source answers."""

Logs = tuple[IngestedLog | IngestedEntries, ...]


class Narration:
    """The notes of one ingest."""

    def __init__(self, source: Source, request: IngestRequest, clock: Clock, notes: TellNote) -> None:
        self._source, self._continuous, self._clock, self._notes = source, request.continuous, clock, notes
        self._seldom = Seldom(clock)

        def tell(event: str, text: str) -> None:
            notes(IngestNote(event, text))

        self._outages = Outages(f"{source.system} at {source.where}", clock, tell)
        self.warehouse = WarehouseOutages(clock, tell)
        self._looked_ms = clock.monotonic_ms()

    def begins(self, source: str, topic: str, logs: Logs) -> None:
        """Before the first batch of a topic; `logs` are the copy's."""
        new = all(log.log_end_offset == 0 for log in logs)
        offset = logs[0].log_end_offset if len(logs) == 1 else None
        text = f"{source} → {topic}: {begins_text(offset, lag_text(logs), new=new)}"
        self._notes(IngestNote("begins", text, source, topic, logs))
        self._waits(source, topic, logs)

    def note(self, note: IngestNote) -> None:
        """Any other note."""
        self._notes(note)

    def copied(self, batch: IngestBatch) -> None:
        """After a batch."""
        self._waits(batch.source, batch.topic, batch.logs)

    def failed(self, report: IngestReport) -> None:
        """While others continue; what the last one ends with is in its report."""
        text = f"{report.source} → {report.topic}: error[{report.error_code}]: {report.error}"
        self._notes(IngestNote("failed", text, report.source, report.topic, error_code=report.error_code))

    def look(self) -> None:
        """Asks whether the source answers, often enough."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._looked_ms < LOOK_MS:
            return
        self._looked_ms = now_ms
        self._outages.look(silent=self._source.is_silent)

    def _waits(self, source: str, topic: str, logs: Logs) -> None:
        if not self._continuous or any(log.lag != 0 for log in logs):
            return
        if self._seldom.may_tell(topic):
            text = f"{source} → {topic}: everything is copied; waiting for new records"
            self._notes(IngestNote("waiting", text, source, topic, logs))
