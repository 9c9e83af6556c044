"""Lets go of a local session whose JVM has died, so that the next round starts another.

A cleaner runs for months; a JVM may end of memory, or be ended by somebody. PySpark goes on holding
the dead one, and every call of it fails. Leans on names of PySpark that it gives no promise about.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark import SparkContext
from pyspark.sql import SparkSession


def forget_dead_session() -> bool:
    """Whether there was a JVM that this process had started, and that is no more: PySpark then knows of none."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None or process.poll() is None:
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
    return True
