"""The streams of one copy, one after the other: a new one begins where the last has ended for a reason that passes.

    prepare ─► stream ─► ends: a new leader, or with `continuous` something that is away ─► it answers ─► prepare
                     └─► ends: all is copied, or an error

While the cluster or the warehouse does not answer it waits, for as long as that takes: narration says so. Where they
do answer, and the copy fails `FAILURES` times in a row all the same, that is its end.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.errors import BrokerError, EngineError, LithifyError, UnknownOutcomeError
from lithify.ports.clock import Clock
from lithify.ports.source import Source, SourceStream
from lithify.reports.ingest import IngestReport
from lithify.service.ingest.topic_ingest import TopicIngest

FAILURES = 3
AGAIN_MS = 1_000
"""Between the end of a stream and the next try."""
LIVED_MS = 600_000
"""A stream that lasted for so long did not fail in a row with the one before, nor did one that committed a batch."""


@dataclass(slots=True)
class CopyStreams:
    """The streams of `copy`."""

    copy: TopicIngest
    source: Source
    clock: Clock
    continuous: bool
    _stream: SourceStream | None = None
    _again_ms: int | None = None
    """When to try next; None while a stream runs, or at the end."""
    _error: LithifyError | None = None
    _begun: bool = False
    _begun_ms: int = 0
    _failures: int = 0
    _batches: int = 0
    """Of the copy, when its last stream began."""

    @property
    def goes_on(self) -> bool:
        return self._stream is not None or self._again_ms is not None

    def begin(self) -> None:
        """Starts a stream where the copy ends, or takes note of why it cannot."""
        self._again_ms, self._begun_ms, self._batches = None, self.clock.monotonic_ms(), self.copy.batches
        try:
            starts = self.copy.prepare()
            self._stream = self.source.stream(self.copy.topic, starts, self.clock.new_id(), self.copy.take)
            self._begun = True
        except LithifyError as error:
            self._after(error)

    def look(self) -> None:
        """Takes note of a stream that has ended, and starts the next one where that is due."""
        if self._stream is not None and not self._stream.is_active:
            stream, self._stream = self._stream, None
            self._after(stream.end())
        elif self._stream is not None:
            self.copy.look()  # so that a copy that has nothing to copy knows that (C71)
        elif self._again_ms is not None and self.clock.monotonic_ms() >= self._again_ms and not self.source.is_silent:
            self.begin()

    def stop(self) -> None:
        if self._stream is not None:
            self._stream.stop()

    def report(self, *, stopped: bool) -> IngestReport:
        """`stopped`: everything was to end. What made a stream end meanwhile is not an error of the copy, nor is what
        it waits for."""
        error = self._error if self._stream is None else self._stream.end()
        if stopped and (self._again_ms is not None or (self._stream is not None and _is_passing(error))):
            error = None
        return self.copy.report(error, begun=self._begun)

    def _after(self, error: LithifyError | None) -> None:
        self._error = error
        if error is None:
            return
        # A copy continues where its log ends, so the outcome of its last commit need not be known.
        if self.continuous and (error.is_outage or isinstance(error, UnknownOutcomeError)):
            self.copy.narration.warehouse.away(error)
            self._again_ms = self.clock.monotonic_ms() + AGAIN_MS
            return
        if not (self.copy.same.leader_moved or (self.continuous and isinstance(error, BrokerError))):
            return
        if self.copy.batches > self._batches or self.clock.monotonic_ms() - self._begun_ms >= LIVED_MS:
            self._failures = 0
        if not self.source.is_silent:
            self._failures += 1
        if self._failures < FAILURES:
            self._again_ms = self.clock.monotonic_ms() + AGAIN_MS


def _is_passing(error: LithifyError | None) -> bool:
    return isinstance(error, BrokerError | EngineError) or (error is not None and error.is_outage)
