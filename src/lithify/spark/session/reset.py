"""Resets PySpark after its local JVM has died or Spark has stopped in it, so that the next round starts another.

A cleaner runs for months; a JVM may run out of memory, or be killed, and Spark stops in it when its
master is unreachable. PySpark keeps the dead session, and every call of it fails. Uses private names of
PySpark that it gives no promise about.
"""

from __future__ import annotations

from contextlib import suppress
from subprocess import Popen, TimeoutExpired

from pyspark import SparkContext
from pyspark.sql import SparkSession

ENDS_WITHIN_S = 5.0
"""Seconds for an abandoned JVM with closed input to end; then it is killed."""


def forget_dead_session() -> bool:
    """Makes PySpark forget a JVM that this process started and that is of no use; returns whether there was one."""
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
    with suppress(Exception):  # its threads wait for a JVM that is not there
        if context is not None:
            context._accumulatorServer.shutdown()
    _end(process)
    return True


def _has_stopped(context: SparkContext | None) -> bool:
    """Whether Spark has stopped in a JVM that is there, without us; stopped by us there is no context."""
    if context is None:
        return False
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except Exception:  # it does not even answer
        return True


def _end(process: Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(ENDS_WITHIN_S)
    except TimeoutExpired:
        process.kill()
        process.wait()
