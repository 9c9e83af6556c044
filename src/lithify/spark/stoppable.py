"""Jobs of Spark whose caller may be told to end: `StopAsked` (C50).

    caller: is it to end? ─► cancels what runs by now, again and again ─► `StopAsked`
    thread: the jobs ─► their result

A thread that waits for Spark itself does not notice a signal before the job has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lithify.ports.source import StopAsked
from lithify.spark.session.ended_session import JVM_GONE

T = TypeVar("T")
LOOK_S = 0.2


def stoppable(session: SparkSession, jobs: Callable[[], T], stops: Callable[[], bool]) -> T:
    """What `jobs` returns or raises. Raises `StopAsked` once `stops()`, when Spark has ended them."""
    if stops():
        raise StopAsked
    tag, context = f"lithify-{id(jobs)}", session.sparkContext  # no other call of this process has that id now

    def run() -> T:
        context.addJobTag(tag)
        return jobs()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        while not wait([running], LOOK_S).done:
            if stops():  # it cancels those that run by now: others may follow
                with suppress(PySparkException, *JVM_GONE):
                    context.cancelJobsWithTag(tag)
        if stops():
            raise StopAsked
        return running.result()
