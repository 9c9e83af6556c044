"""Errors of a source, including its tasks', are reported on a line of their own, without a Python traceback.

Spark calls the source in a Python worker, which ends with the error that it reports.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from lithify.errors import LithifyError

_HIDES, _IN_WORKER = "SPARK_HIDE_TRACEBACK", "SPARK_PYTHON_RUNTIME"
"""PySpark's variables: workers read the first when they report an exception; the second is set in workers."""


@contextmanager
def without_traceback() -> Iterator[None]:
    """A worker reports a `LithifyError` without its traceback. Also a decorator, though not of generators."""
    try:
        yield
    except LithifyError:
        if _IN_WORKER in os.environ:
            os.environ[_HIDES] = "1"
        raise


class RefusedStream(DataSourceStreamReader):  # type: ignore[misc]
    """In place of the reader of a stream that cannot be: raises why, whatever Spark asks it first.

    Where `streamReader` itself raises, PySpark 4.2 stops a reader that it does not have, and tells of that instead.
    """

    def __init__(self, error: LithifyError) -> None:
        self._error = error

    def initialOffset(self) -> NoReturn:  # noqa: N802 - Spark's names
        """Asked first by a query without a checkpoint."""
        self._refuse()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> NoReturn:  # noqa: N802
        """Asked first by a query with a checkpoint."""
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> NoReturn:
        """Asked first where a batch is planned again."""
        self._refuse()

    def read(self, partition: InputPartition) -> NoReturn:
        """Never asked: there are no partitions."""
        self._refuse()

    @without_traceback()
    def _refuse(self) -> NoReturn:
        raise self._error
