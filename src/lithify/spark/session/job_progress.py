"""Reports the progress of Spark jobs, by the status tracker that classic sessions have.

A thread polls the tracker for the tasks of the run's job group. Spark Connect has no tracker; there progress
jumps from 0 to all at once.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread, current_thread, main_thread
from types import FrameType

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.status import SparkStageInfo

from lithify.errors import LithifyError
from lithify.ports.engine import Progress
from lithify.spark.session.ended_session import JVM_GONE
from lithify.spark.session.executors import Executors, PythonWorkers

POLL_SECONDS = 0.2
POLLS_PER_LOOK = 5
"""Polls for each check of the executors: one check a second."""

_GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


@dataclass(frozen=True, slots=True)
class Watch:
    """One phase of a run: its job group, its name, the sizes of its stages in tasks, and the bytes that they read."""

    group: str
    phase: str
    stages: tuple[int, ...]
    size_bytes: int
    progress: Progress

    def tell(self, tasks: int) -> None:
        """Reports how many tasks are done."""
        self.progress(self.phase, self.size_bytes * tasks // (sum(self.stages) or 1), self.size_bytes)

    def tell_all(self) -> None:
        self.progress(self.phase, self.size_bytes, self.size_bytes)


@contextmanager
def watched(session: SparkSession, watch: Watch) -> Iterator[None]:
    """Reports `progress(phase, done, total)`, in bytes, while jobs started inside of it run.

    Cancels the jobs when the process is interrupted or `progress` raises a `LithifyError`.
    """
    watch.tell(0)
    try:
        context = session.sparkContext
    except PySparkException:
        yield
    else:
        with _polled(context, watch):
            yield
    watch.tell_all()


@contextmanager
def _polled(context: SparkContext, watch: Watch) -> Iterator[None]:
    before = {name: context.getLocalProperty(name) for name in _GROUP_PROPERTIES}  # of the caller, restored below
    context.setJobGroup(watch.group, f"lithify: {watch.phase}", interruptOnCancel=True)
    ended, interrupted = Event(), Event()
    refused: list[LithifyError] = []
    poller = Thread(target=_poll, args=(context, watch, ended, interrupted, refused), daemon=True)
    poller.start()
    try:
        with _interrupts_noted(interrupted):
            yield
    except BaseException as error:
        with suppress(*JVM_GONE):
            context.cancelJobGroup(watch.group)
        if interrupted.is_set():  # Spark's error only says that the job was cancelled
            raise KeyboardInterrupt from error
        if refused:
            raise refused[0] from error
        raise
    finally:
        ended.set()
        poller.join()
        with suppress(*JVM_GONE):
            for name, value in before.items():
                context.setLocalProperty(name, value)


@contextmanager
def _interrupts_noted(interrupted: Event) -> Iterator[None]:
    """Sets `interrupted` on SIGINT.

    After an interrupt PySpark waits until the job has ended, so the polling thread has to cancel it.
    """
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(before):
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            interrupted.set()
            raise

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _poll(context: SparkContext, watch: Watch, ended: Event, interrupted: Event, refused: list[LithifyError]) -> None:
    tracker, executors, workers, polls = context.statusTracker(), Executors(context), PythonWorkers(context), 0
    with suppress(*JVM_GONE):
        while not ended.wait(POLL_SECONDS):
            if interrupted.is_set() or refused:
                context.cancelJobGroup(watch.group)
                continue
            jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(watch.group))
            stages = {stage for job in jobs if job is not None for stage in job.stageIds}
            infos = [info for stage in sorted(stages) if (info := tracker.getStageInfo(stage)) is not None]
            polls += 1
            try:
                if polls % POLLS_PER_LOOK == 0 and executors.look():
                    workers.look([info for info in infos if info.numTasks in watch.stages])
                watch.tell(_done(infos, watch.stages))
            except LithifyError as error:
                refused.append(error)


def _done(infos: Sequence[SparkStageInfo], stages: Sequence[int]) -> int:
    """Completed tasks of the phase's stages, taken to be the newest stages with the expected numbers of tasks.

    Stages of one task are not counted, since `task_frame` has such stages too.
    """
    done = 0
    for size, times in Counter(stages).items():
        followed = [info.numCompletedTasks for info in infos if info.numTasks == size > 1]
        done += sum(followed[-times:])
    return done
