"""Ends the JVM of PySpark, and resets PySpark after that JVM has died or Spark has stopped in it.

A cleaner runs for months; its JVM may run out of memory or be killed, and Spark stops when its master is
unreachable. PySpark keeps the dead session, on which every call fails; once that is forgotten, the next round
starts another. Uses private attributes of PySpark, which may change between versions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseServer
from subprocess import Popen, TimeoutExpired
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lithify.errors import EngineError

JVM_GONE = (Py4JError, OSError)
"""Exceptions of calls to a JVM that has ended, also raised in the thread that waits for the job."""
ENDS_WITHIN_S = 5.0
"""Seconds that an abandoned JVM has to exit after its stdin was closed; then it is killed."""


def end_quietly(context: SparkContext) -> None:
    """Lets PySpark print no traceback once the JVM that sends it its accumulators has ended."""
    server: Any = context._accumulatorServer

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            BaseServer.handle_error(server, request, address)

    server.handle_error = handle_error


@contextmanager
def ending_first(stops: Callable[[], bool]) -> Iterator[None]:
    """The JVM may end before the block has: a supervisor's signal reaches it too. Once `stops()`, that is an end.

    Raises `EngineError` if the JVM has ended by itself.
    """
    try:
        yield
    except (Py4JError, ConnectionError, EngineError) as error:
        if stops():
            return
        if isinstance(error, Py4JJavaError | EngineError):
            raise
        hint = "start it again: nothing was lost, as committed data remains"
        raise EngineError("Spark's process has ended: it was killed, or ran out of memory", hint=hint) from error


def forget_dead_session() -> bool:
    """Makes PySpark forget a JVM that this process started, if it is dead or Spark stopped; returns whether it was."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None or (process.poll() is None and not _has_stopped(SparkContext._active_spark_context)):
        return False
    with SparkContext._lock:
        context = SparkContext._active_spark_context
        SparkContext._active_spark_context = None
        SparkContext._gateway = None
        SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    with suppress(Exception):  # its threads may fail without the JVM
        if context is not None:
            context._accumulatorServer.shutdown()
    _end(process, ENDS_WITHIN_S)
    return True


def _has_stopped(context: SparkContext | None) -> bool:
    """Whether Spark has stopped by itself in a live JVM; after a stop by PySpark there is no context."""
    if context is None:
        return False
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except Exception:  # the JVM does not answer
        return True


def end_started(within_s: float) -> None:
    """Ends the JVM that this process has started, if any: orderly within `within_s` seconds, else by a kill.

    It would exit by itself with this process, but waits for its Kafka clients, which may wait for brokers.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        _end(process, within_s)


def _end(process: Popen[bytes], within_s: float) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(within_s)
    except TimeoutExpired:
        process.kill()
        process.wait()
