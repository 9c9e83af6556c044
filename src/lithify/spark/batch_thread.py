"""A stream of an ingest that is a thread of the driver, whose Spark jobs end with it (`SourceStream`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from threading import Event, Thread

from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lithify.errors import BrokerError, EngineError, LithifyError
from lithify.errors.redaction import one_line
from lithify.ports.source import StopAsked
from lithify.spark.session.ended_session import JVM_GONE

STOPS_WITHIN_S = 5.0
"""Seconds to wait for a batch that was given up."""
ASKS_AGAIN_S = 0.25


class BatchThread(ABC):
    """Copies one batch after the other. `job` names the thread, and the group of its Spark jobs."""

    def __init__(self, session: SparkSession, job: str) -> None:
        self._session, self._job = session, job
        self._stopping = Event()
        self._failure: Exception | None = None
        self._thread: Thread = InheritableThread(target=self._run, name=job, daemon=True)

    @abstractmethod
    def _copy(self) -> None:
        """Copies until there is no more, or `_stopping` is set."""

    def start(self) -> None:
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ends it in bounded time. A running batch is abandoned, unless its commit has begun.

        Spark cancels the jobs that run by then, and the thread may be about to start one: so it is asked again.
        """
        self._stopping.set()
        for _ in range(round(STOPS_WITHIN_S / ASKS_AGAIN_S)):
            with suppress(PySparkException, *JVM_GONE):
                self._session.sparkContext.cancelJobGroup(self._job)
            self._thread.join(ASKS_AGAIN_S)
            if not self.is_active:
                return

    def end(self) -> LithifyError | None:
        """The error that ended the stream, or None."""
        match self._failure:
            case None | LithifyError():
                return self._failure
            case error:
                return EngineError(f"{self._job}: {type(error).__name__}: {one_line(str(error), 300)}")

    def _run(self) -> None:
        try:
            self._copy()
        except StopAsked:
            pass
        except Exception as error:
            given_up = isinstance(error, BrokerError) or not isinstance(error, LithifyError)
            if not (self._stopping.is_set() and given_up):
                self._failure = error
