"""Engines for tests: two tasks at once, real time."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from lithify.columnar.files.access import FileAccess
from lithify.spark.engine import SparkEngine
from lithify.spark.tasks import Pace, Workers

SLOTS = 2


def engine_on(session: Callable[[], SparkSession]) -> SparkEngine:
    """An engine on whatever gives a session."""
    return SparkEngine(session, Workers(FileAccess(), SLOTS, Pace(time.monotonic, time.sleep), lambda: "seed"))


def engine_without_session() -> SparkEngine:
    """An engine for rounds that must start nothing."""

    def refuse() -> SparkSession:
        raise AssertionError("a session was asked for")

    return engine_on(refuse)
