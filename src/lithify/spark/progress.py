"""Tells how far a Spark job is, where Spark says: classic sessions have a status tracker.

A thread asks the tracker for the tasks of the run's job group. Over Spark Connect there is none,
and progress goes from nothing to all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.status import SparkStageInfo

from lithify.ports import Progress

POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Watch:
    """One phase of a run: its job group, what to call it, and the sizes of its stages in tasks."""

    group: str
    phase: str
    stages: tuple[int, ...]
    progress: Progress

    @property
    def total(self) -> int:
        return sum(self.stages)


@contextmanager
def watched(session: SparkSession, watch: Watch) -> Iterator[None]:
    """Reports `progress(phase, done, total)`, in tasks, while the jobs started inside of it run.

    When the caller is interrupted the jobs are cancelled.
    """
    watch.progress(watch.phase, 0, watch.total)
    try:
        context = session.sparkContext
    except PySparkException:
        yield
    else:
        with _polled(context, watch):
            yield
    watch.progress(watch.phase, watch.total, watch.total)


@contextmanager
def _polled(context: SparkContext, watch: Watch) -> Iterator[None]:
    context.setJobGroup(watch.group, f"lithify: {watch.phase}", interruptOnCancel=True)
    ended = Event()
    poller = Thread(target=_poll, args=(context, watch, ended), daemon=True)
    poller.start()
    try:
        yield
    except BaseException:
        context.cancelJobGroup(watch.group)
        raise
    finally:
        ended.set()
        poller.join()
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def _poll(context: SparkContext, watch: Watch, ended: Event) -> None:
    tracker = context.statusTracker()
    while not ended.wait(POLL_SECONDS):
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(watch.group))
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        infos = [info for stage in sorted(stages) if (info := tracker.getStageInfo(stage)) is not None]
        watch.progress(watch.phase, _done(infos, watch.stages), watch.total)


def _done(infos: Sequence[SparkStageInfo], stages: Sequence[int]) -> int:
    """Tasks completed of the stages that do the work: the newest ones of their sizes.

    What feeds them is one task each (`task_frame`), so a stage of one is not followed.
    """
    done = 0
    for size, times in Counter(stages).items():
        followed = [info.numCompletedTasks for info in infos if info.numTasks == size > 1]
        done += sum(followed[-times:])
    return done
