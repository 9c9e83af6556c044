"""What `publish` and `hydrate` say on their way, and whether the cluster answers while they work.

begins ─► progress, at most each `PROGRESS_MS` ─► waiting, at most once in `QUIET_MS`
a thread that asks the cluster every second    ─► outage ─► recovered; what failed is tried again
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Self

from lithify.errors import BrokerError, LithifyError
from lithify.kafka.notes import FollowedLog, KafkaNote, TellNote, lag_text
from lithify.kafka_client.client import SLICE_S, Cluster, Conf
from lithify.model.settings.units import plural
from lithify.ports.clock import Clock
from lithify.service.ingest.outages import Outages, Seldom, begins_text

PROGRESS_MS = 5_000
FAILURES = 3
WAIT_S = 0.2
"""Between two looks whether a wait is over."""

Logs = Callable[[], Sequence[FollowedLog]]
"""How far a run is, asked for only where it is told."""


class Narration:
    """The notes of one run. `done` says what happened to the records: `published`, `stored`."""

    def __init__(self, topic: str, to: str, done: str, clock: Clock, notes: TellNote) -> None:
        self._topic, self._to, self._done, self._clock, self._notes = topic, to, done, clock, notes
        self._records = 0
        self._since_ms = clock.monotonic_ms()
        self._seldom = Seldom(clock)
        self._begun = False

    def begins(self, logs: Sequence[FollowedLog], *, new: bool) -> None:
        """Once, though a run may connect again. `new`: there is nothing of earlier runs."""
        if self._begun:
            return
        self._begun = True
        offset = logs[0].offset if len(logs) == 1 else None
        self._tell("begins", begins_text(offset, lag_text(logs), new=new), logs)
        self._since_ms = self._clock.monotonic_ms()

    def progress(self, records: int, logs: Logs) -> None:
        """After so many more records, or none."""
        self._records += records
        took_ms = self._clock.monotonic_ms() - self._since_ms
        if self._records and took_ms >= PROGRESS_MS:
            now = logs()
            self._tell(self._done, f"{plural(self._records, 'record')} {self._done}, {lag_text(now)}", now)
            self._records, self._since_ms = 0, self._clock.monotonic_ms()

    def waiting(self, logs: Logs) -> None:
        """That there is nothing more to do for now."""
        if self._seldom.may_tell("waiting"):
            self._tell("waiting", f"everything is {self._done}; waiting for new records", logs())

    def busy(self, reason: str) -> None:
        """That another program keeps it from storing."""
        if self._seldom.may_tell("busy"):
            self._tell("busy", f"{reason}; waiting for it", ())

    def _tell(self, event: str, text: str, logs: Sequence[FollowedLog]) -> None:
        whole = f"{self._topic} → {self._to}: {text}"
        self._notes(KafkaNote(event, whole, self._topic, self._to, tuple(logs)))


class Pulse(AbstractContextManager["Pulse"]):
    """Asks the cluster for `topic` again and again, in a thread of its own, and notes when it does not answer.

    A topic that is not there and a refusal are answers.
    """

    def __init__(self, conf: Conf, topic: str, clock: Clock, notes: TellNote) -> None:
        self._cluster, self._topic = Cluster(conf, SLICE_S), topic
        who = f"Kafka at {self._cluster.servers}"
        self._outages = Outages(who, clock, lambda event, text: notes(KafkaNote(event, text)))
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.is_silent = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with self._cluster.asking() as consumer:
            while not self._ended.wait(SLICE_S):
                self._cluster.last_error = None
                try:
                    self._cluster.wait(lambda slice_s: consumer.list_topics(self._topic, timeout=slice_s), consumer)
                except LithifyError:
                    self.is_silent = self._cluster.refused() is None
                else:
                    self.is_silent = False
                if not self._ended.is_set():
                    self._outages.look(silent=self.is_silent)


@dataclass(slots=True)
class Retries:
    """What a continuous run does about a cluster that fails: it waits until the cluster answers, and goes on.

    It gives up where a cluster that answers fails it `FAILURES` times in a row. A run that is to end does not wait.
    """

    pulse: Pulse
    continuous: bool
    clock: Clock
    stops: Callable[[], bool]
    failures: int = 0

    def after(self, error: BrokerError) -> None:
        """Returns when it is time for the next try. Raises the error if there is to be none."""
        self.failures = 0 if self.pulse.is_silent else self.failures + 1
        if not self.continuous or self.failures >= FAILURES:
            raise error
        self.clock.sleep(SLICE_S)
        while self.pulse.is_silent and not self.stops():
            self.clock.sleep(WAIT_S)

    def succeeded(self) -> None:
        self.failures = 0
