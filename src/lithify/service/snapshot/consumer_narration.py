"""What a run says on its way that brings records of a topic somewhere else: `publish`, `hydrate`. Field names of
notes are the JSON keys.

begins ─► progress, each `PROGRESS_MS` and before waiting ─► waiting, at most once in `QUIET_MS`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lithify.model.settings.units import plural
from lithify.ports.clock import Clock
from lithify.reports.report import with_lags
from lithify.service.ingest.system_outages import Seldom, WarehouseOutages, begins_text

PROGRESS_MS = 5_000
WAIT_S = 0.2
"""Between two looks whether a wait is over."""


@dataclass(frozen=True, slots=True)
class FollowedLog:
    """One partition: everything below `offset` is what it has to read; the log ends at `end_offset`."""

    partition: int
    offset: int
    end_offset: int

    @property
    def lag(self) -> int:
        return max(0, self.end_offset - self.offset)


class Following:
    """What says how far each log is: a dataclass with `logs`."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        return with_lags(self)


@dataclass(frozen=True, slots=True)
class KafkaNote(Following):
    """A note, for example that it waits for a broker. `text` is for people.

    `topic` is the lake's and `to` what its records are written to; both are None in a note about the cluster.
    """

    event: str
    text: str
    topic: str | None = None
    to: str | None = None
    logs: tuple[FollowedLog, ...] = ()
    """How far it is, in notes that say so."""


TellNote = Callable[[KafkaNote], None]


def lag_text(logs: Sequence[FollowedLog]) -> str:
    """How far it is behind, in offsets: removed records and transaction markers count."""
    return f"lag {plural(sum(log.lag for log in logs), 'offset')}"


Logs = Callable[[], Sequence[FollowedLog]]
"""How far a run is, read only if it is reported."""


class Narration:
    """The notes of one run. `done` says what happened to the records: `published`, `stored`."""

    def __init__(self, topic: str, to: str, done: str, clock: Clock, notes: TellNote) -> None:
        self._topic, self._to, self._done, self._clock, self._notes = topic, to, done, clock, notes
        self._records = 0
        self._since_ms = clock.monotonic_ms()
        self._seldom = Seldom(clock)
        self._begun = False
        self.warehouse = WarehouseOutages(clock, lambda event, text: notes(KafkaNote(event, text)))

    def begins(self, logs: Sequence[FollowedLog], *, new: bool) -> None:
        """Once, though a run may connect again. `new`: there is nothing of earlier runs."""
        if self._begun:
            return
        self._begun = True
        offset = logs[0].offset if len(logs) == 1 else None
        self._tell("begins", begins_text(offset, lag_text(logs), new=new), logs)
        self._since_ms = self._clock.monotonic_ms()

    def progress(self, records: int, logs: Logs) -> None:
        """After this number of further records, or none."""
        self._records += records
        took_ms = self._clock.monotonic_ms() - self._since_ms
        if self._records and took_ms >= PROGRESS_MS:
            self._tell_done(logs())

    def waiting(self, logs: Logs) -> None:
        """That there is nothing more to do for now, behind what was done until then."""
        if self._seldom.may_tell("waiting"):
            now = logs()
            if self._records:
                self._tell_done(now)
            self._tell("waiting", f"everything is {self._done}; waiting for new records", now)

    def busy(self, reason: str) -> None:
        """That another program keeps it from storing."""
        if self._seldom.may_tell("busy"):
            self._tell("busy", f"{reason}; waiting for it", ())

    def _tell_done(self, now: Sequence[FollowedLog]) -> None:
        self._tell(self._done, f"{plural(self._records, 'record')} {self._done}, {lag_text(now)}", now)
        self._records, self._since_ms = 0, self._clock.monotonic_ms()

    def _tell(self, event: str, text: str, logs: Sequence[FollowedLog]) -> None:
        whole = f"{self._topic} → {self._to}: {text}"
        self._notes(KafkaNote(event, whole, self._topic, self._to, tuple(logs)))
