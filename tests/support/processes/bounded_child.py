"""Runs a function in a process of its own that may take only so much memory, and may die of it."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

DEADLINE_S = 240


def in_bounded_child(function: Callable[..., Any], *arguments: object, more_bytes: int) -> Any:
    """What `function`, of a module below `support`, returns where it may take `more_bytes` beside its imports.

    Fails if the process ends without an answer: of a signal, or of memory that it did not get.
    """
    here, there = multiprocessing.get_context("spawn").Pipe(duplex=False)
    child = multiprocessing.get_context("spawn").Process(target=_run, args=(there, function, arguments, more_bytes))
    child.start()
    there.close()
    try:
        assert here.poll(DEADLINE_S), f"{function.__name__} did not come to an end"
        return here.recv()
    except EOFError:
        child.join(10)
        raise AssertionError(f"{function.__name__}: the process ended with {child.exitcode}") from None
    finally:
        child.kill()
        child.join()


def _run(answer: Connection, function: Callable[..., Any], arguments: tuple[Any, ...], more_bytes: int) -> None:
    import duckdb  # noqa: F401 - what is loaded by now does not count
    import pyarrow.parquet  # noqa: F401

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    answer.send(function(*arguments))
