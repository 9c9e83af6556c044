"""Tells how far a Spark job is, where Spark says: classic sessions have a status tracker.

A thread asks the tracker for the tasks of the run's job group. Over Spark Connect there is none,
and progress goes from nothing to all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lithify.ports import Progress

POLL_SECONDS = 0.2


@contextmanager
def watched(session: SparkSession, group: str, phase: str, total: int, progress: Progress) -> Iterator[None]:
    """Reports `progress(phase, done, total)` while the jobs started inside of it run.

    `total` is the number of tasks that do the work. When the caller is interrupted the jobs are
    cancelled.
    """
    progress(phase, 0, total)
    context = _context(session)
    if context is None:
        yield
    else:
        yield from _watched_classic(context, group, phase, total, progress)
    progress(phase, total, total)


def _watched_classic(context: SparkContext, group: str, phase: str, total: int, progress: Progress) -> Iterator[None]:
    context.setJobGroup(group, f"lithify: {phase}", interruptOnCancel=True)
    ended = Event()
    poller = Thread(target=_poll, args=(context, group, phase, total, progress, ended), daemon=True)
    poller.start()
    try:
        yield
    except BaseException:
        context.cancelJobGroup(group)
        raise
    finally:
        ended.set()
        poller.join()
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def _context(session: SparkSession) -> SparkContext | None:
    try:
        return session.sparkContext
    except PySparkException:
        return None


def _poll(context: SparkContext, group: str, phase: str, total: int, progress: Progress, ended: Event) -> None:
    tracker = context.statusTracker()
    while not ended.wait(POLL_SECONDS):
        stages = {
            stage
            for job in tracker.getJobIdsForGroup(group)
            if (info := tracker.getJobInfo(job)) is not None
            for stage in info.stageIds
        }
        infos = [info for stage in stages if (info := tracker.getStageInfo(stage)) is not None]
        # The stage with the work is the one with as many tasks; what feeds it is over in no time.
        done = max((info.numCompletedTasks for info in infos if info.numTasks == total), default=0)
        progress(phase, min(done, total), total)
