"""Tells whether Spark has begun a stage again, by the status tracker that classic sessions have.

A stage that has lost its input is begun again while tasks of its first attempt may still run. The new tasks
have attempt number 0 again (`TaskContext.attemptNumber`), so tasks cannot tell.
"""

from __future__ import annotations

from threading import Event

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lithify.waits.deadline import Deadline

TRACKER_S = 10.0
POLL_S = 0.01
RUNNING = "RUNNING"


def has_repeated_stages(session: SparkSession, group: str) -> bool:
    """Of the jobs of a group, which have ended. Also True when Spark does not report it."""
    try:
        tracker = session.sparkContext.statusTracker()
    except PySparkException:  # Spark Connect has none
        return True
    deadline = Deadline(TRACKER_S)
    while True:  # the tracker gets to know of the end of a job after all of its stages
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        ended = [job for job in jobs if job is not None and job.status != RUNNING]
        if jobs and len(ended) == len(jobs):
            break
        try:
            Event().wait(min(POLL_S, deadline.left_s()))
        except TimeoutError:
            return True
    stages = [tracker.getStageInfo(stage) for job in ended for stage in job.stageIds]
    return any(stage is None or stage.currentAttemptId > 0 for stage in stages)
