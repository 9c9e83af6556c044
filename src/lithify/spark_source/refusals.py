"""Errors of a source that Spark's planner asks are told as their own line, without a Python traceback.

Spark asks the source in a Python worker on the driver, which ends with the error that it reports.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from lithify.errors import LithifyError

P = ParamSpec("P")
T = TypeVar("T")

_HIDES, _IN_WORKER = "SPARK_HIDE_TRACEBACK", "SPARK_PYTHON_RUNTIME"
"""PySpark's variables: workers read the first when they report an exception; the second is set in workers."""


def told_alone(ask: Callable[P, T]) -> Callable[P, T]:
    """The same method, whose `LithifyError` a worker reports without its traceback."""

    @wraps(ask)
    def asked(*given: P.args, **named: P.kwargs) -> T:
        try:
            return ask(*given, **named)
        except LithifyError:
            if _IN_WORKER in os.environ:
                os.environ[_HIDES] = "1"
            raise

    return asked
