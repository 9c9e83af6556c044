"""A session that is started before it is needed, with the Python workers of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession


def warm(make: Callable[[], SparkSession], tasks: int) -> None:
    """Starts the session, and a worker for each of `tasks`. Raises what `make` raises."""
    make().range(0, tasks, 1, tasks).mapInArrow(_as_it_is, "id long").count()


def _as_it_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
