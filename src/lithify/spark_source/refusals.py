"""Errors of a source are told as their own line, without a Python traceback, also those of its tasks.

Spark asks the source in a Python worker, which ends with the error that it reports.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

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
