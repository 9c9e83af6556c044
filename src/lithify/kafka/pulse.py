"""Whether the cluster answers while `publish` and `hydrate` work, and what they do where it does not.

a thread that asks the cluster every second ─► outage ─► recovered; what failed is tried again
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Self

from lithify.errors import BrokerError, LithifyError
from lithify.kafka_client.client import SLICE_S, Cluster, Conf
from lithify.ports.clock import Clock
from lithify.service.ingest.system_outages import Outages
from lithify.service.snapshot.consumer_narration import WAIT_S, KafkaNote, TellNote

FAILURES = 3


class Pulse(AbstractContextManager["Pulse"]):
    """Asks the cluster for `topic` again and again, in a thread of its own, and notes when it does not answer.

    A topic that is not there and a refusal are answers. If it cannot continue, as when its notes cannot be printed, the
    cluster does not count as silent, and `check` raises why.
    """

    def __init__(self, conf: Conf, topic: str, clock: Clock, notes: TellNote) -> None:
        self._cluster, self._topic = Cluster(conf, SLICE_S), topic
        who = f"Kafka at {self._cluster.servers}"
        self._outages = Outages(who, clock, lambda event, text: notes(KafkaNote(event, text)))
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.is_silent = False
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def check(self) -> None:
        """Raises what has ended the thread."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._ask()
        except Exception as error:
            self._failure = error
        finally:
            self.is_silent = False  # else a continuous run would wait for ever

    def _ask(self) -> None:
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
    """What a continuous run does about a cluster that fails: it waits until the cluster answers, and continues.

    It gives up where a cluster that answers fails it `FAILURES` times in a row. A run that is to end does not wait.
    """

    pulse: Pulse
    continuous: bool
    clock: Clock
    stops: Callable[[], bool]
    failures: int = 0

    def after(self, error: BrokerError) -> None:
        """Returns when it is time for the next try. Raises the error if there is to be none, or why the pulse ended."""
        self.failures = 0 if self.pulse.is_silent else self.failures + 1
        if not self.continuous or self.failures >= FAILURES:
            raise error
        self.clock.sleep(SLICE_S)
        while self.pulse.is_silent and not self.stops():
            self.clock.sleep(WAIT_S)
        self.pulse.check()

    def succeeded(self) -> None:
        self.failures = 0
