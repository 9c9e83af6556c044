"""A round that ends when Spark has: its own error is raised, and a round that was done stays done."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lithify.columnar.files.access import FileAccess
from lithify.errors import EngineUnavailableError
from lithify.ports.engine import RunLimits
from lithify.spark.engine import SparkEngine
from lithify.spark.tasks import Pace, Workers


class GonePositions:
    """Dead positions in a JVM that has ended."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def unpersist(self) -> None:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [Py4JError("NullPointerException"), Py4JNetworkError("gone"), ConnectionRefusedError(), PySparkException("x")],
)
def test_dead_positions_that_went_with_spark_hide_no_error_and_are_none(error: Exception) -> None:
    workers = Workers(FileAccess(), 1, Pace(time.monotonic, time.sleep), lambda: "seed")
    engine = SparkEngine(lambda: cast(Any, None), workers)

    with engine.open_round((), RunLimits(), "run", lambda *_: None) as done:
        done._dead = cast(DataFrame, GonePositions(error))

    with (
        pytest.raises(EngineUnavailableError, match="its own"),
        engine.open_round((), RunLimits(), "run", lambda *_: None) as failed,
    ):
        failed._dead = cast(DataFrame, GonePositions(error))
        raise EngineUnavailableError("its own")
