"""Checks, before the first job on a session, that its Python workers can run Lithify's tasks.

    driver ──► one task ──► Python's and Lithify's versions ──► the same as here?

Workers that lack Lithify, or have another Python, fail deep in a job otherwise. A session that Lithify has started on
this machine runs the Python that runs Lithify, and is not checked.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from threading import Lock
from typing import Any
from weakref import WeakSet

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lithify.errors import EngineUnavailableError, LithifyError
from lithify.spark.session.job_progress import Watch, watched
from lithify.spark.session.reasons import ended_application, reason

_SCHEMA = "python string, version string"
_LACKING = re.compile(r"No module named '([^'.]+)")
_NO_DAEMON = re.compile(r"Error from python worker:\s*\n(.*?)\n\s*PYTHONPATH was", re.DOTALL)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"[^\n]*error=\d+, ([^\n]+)')
_OTHER_PYTHON = "PYTHON_VERSION_MISMATCH"

_checked: WeakSet[Any] = WeakSet()
_checking = Lock()


def trust_workers(session: SparkSession) -> None:
    """Its workers run the Python that runs this."""
    _checked.add(_application(session))


def check_workers(session: SparkSession) -> None:
    """Runs one task, once for each Spark application. Raises `EngineUnavailableError` with what the workers need."""
    with _checking:
        if _application(session) in _checked:
            return
        here = (_python(), _version())
        try:
            with watched(session, Watch("lithify-workers", "check_workers", (), 0, lambda *_: None)):
                (row,) = session.range(1, numPartitions=1).mapInArrow(_versions, _SCHEMA).collect()
        except LithifyError:
            raise
        except Exception as error:
            if ended := ended_application(str(error)):
                raise EngineUnavailableError(ended[0], hint=ended[1]) from error
            raise _unusable(_wanting(str(error)) or reason(error)) from error
        if (row.python, row.version) != here:
            raise _unusable(f"they have Lithify {row.version} on Python {row.python}")
        trust_workers(session)


def _application(session: SparkSession) -> Any:
    """What is the same for all sessions of a Spark application."""
    try:
        return session.sparkContext
    except PySparkException:  # Spark Connect has none
        return session


def _python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _version() -> str:
    """Lithify's, which was imported with this module."""
    return str(sys.modules["lithify"].__version__)


def _versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [_python()], "version": [_version()]})


def _wanting(text: str) -> str:
    """What the text of a failed task says that its worker lacks, if it is that."""
    if lacking := _LACKING.search(text):
        return f"they lack the module {lacking[1]}"
    if _OTHER_PYTHON in text:
        return "they have another Python"
    if no_program := _NO_PROGRAM.search(text):
        return f"there is no Python at {no_program[1]}: {no_program[2].strip()}"
    no_daemon = _NO_DAEMON.search(text)
    return f"they do not start: {no_daemon[1].strip().splitlines()[-1].strip()}" if no_daemon else ""


def _unusable(what: str) -> EngineUnavailableError:
    return EngineUnavailableError(
        f"the Python workers of this Spark session cannot run Lithify: {what}; the driver has Lithify {_version()} on "
        f"Python {_python()}",
        hint="install the same version on every worker and set PYSPARK_PYTHON to that Python, or send an "
        "environment: PYSPARK_DRIVER_PYTHON=python PYSPARK_PYTHON=./env/bin/python with --archives env.tar.gz#env",
    )
