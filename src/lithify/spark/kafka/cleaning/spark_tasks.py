"""The work of a round over a log directory, as tasks of Spark (`kafka_log.cleaning.directory_cleaner`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pyspark.sql import SparkSession

from lithify.columnar.segment.dead_records import DeadPositions
from lithify.errors import EngineError
from lithify.kafka_log.cleaning.segment_keys import KeysOfFile
from lithify.ports.engine import RunLimits
from lithify.spark.kafka.cleaning.key_pass import dead_positions
from lithify.spark.kafka.directories.log_tasks import done
from lithify.spark.tasks import Workers, is_first_attempt

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SparkTasks:
    """Calls `session` for each job."""

    session: Callable[[], SparkSession]
    workers: Workers
    limits: RunLimits

    @property
    def slots(self) -> int:
        return self.workers.slots

    def run(self, function: Callable[[T], R], tasks: Sequence[T], *, once: bool = False) -> list[R]:
        return done(self.session(), tasks, partial(_once, function) if once else function)

    def dead(self, files: Sequence[KeysOfFile]) -> Mapping[int, DeadPositions]:
        return dead_positions(self.session(), self.workers, self.limits, files)


def _once(function: Callable[[T], R], task: T) -> R:
    if not is_first_attempt():
        raise EngineError("Spark has started a task again that writes files", hint="run the same command again")
    return function(task)
