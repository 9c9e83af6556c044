"""Serialises tasks from the driver to executors, and returns their errors to the driver.

    driver: packed task ──► row (part, payload) ──► task ──► rows of results ──► driver: counts

A task that gets a `LithifyError`, such as a damaged file, returns it as its result, so that the other logs
of the run continue. Other exceptions fail the task, which Spark may retry: tasks only read, or write files
whose names are unique to the attempt.
"""

from __future__ import annotations

import builtins
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from heapq import heapreplace
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from lithify.columnar.files.access import FileAccess
from lithify.columnar.pace import FollowedRates, TaskRates, Throttle
from lithify.columnar.rewrite import Throttles
from lithify.errors import EngineError, EngineUnavailableError, LithifyError
from lithify.errors.defects import OF_THE_MACHINE
from lithify.model.settings.rates import Rates
from lithify.ports.engine import RunLimits
from lithify.ports.profile import Gauges
from lithify.spark.payloads import packed
from lithify.spark.session.reasons import ended_application, reason
from lithify.spark.task_meter import TaskMeter

PART = "part"
PAYLOAD = "payload"

Batches = Iterator[pa.RecordBatch]
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Pace:
    """The clock (monotonic, seconds) and the sleep function of throttles in tasks."""

    clock: Callable[[], float]
    sleep: Callable[[float], None]


@dataclass(frozen=True, slots=True)
class TaskPace:
    """The rate limits of a job's tasks (C40); serialised to each task."""

    pace: Pace
    rates: TaskRates
    access: FileAccess
    gauges: Gauges | None = None
    """Of tasks that are profiled."""

    def meter(self) -> TaskMeter:
        """A new meter for one Spark partition."""
        return TaskMeter(self.gauges, self.pace.sleep)

    def throttles(self, meter: TaskMeter | None = None) -> Throttles:
        """New throttles for one Spark partition, whose tasks run one after the other; a meter counts their waits."""
        clock, sleep = self.pace.clock, self.pace.sleep if meter is None else meter.sleep
        followed = FollowedRates(self.rates, self.access, clock)
        return Throttles(
            read=Throttle(followed.read, clock, sleep).acquire, write=Throttle(followed.write, clock, sleep).acquire
        )


@dataclass(frozen=True, slots=True)
class Workers:
    """The environment of tasks: file access, the number that run at once, clock and sleep.

    `new_id` returns unique, unpredictable ids.
    """

    access: FileAccess
    slots: int
    pace: Pace
    new_id: Callable[[], str]
    gauges: Gauges | None = None
    """Of rounds that are profiled."""
    one_machine: bool = False
    """Whether all slots are cores of one machine, so that a task can use the cores of another slot."""

    def task_pace(self, limits: RunLimits, tasks: int) -> TaskPace:
        """The pace of each of `tasks` tasks, so that concurrent ones together keep to the run's rates (C40)."""
        rates = Rates(limits.read_rate_bytes, limits.write_rate_bytes)
        at_once = min(tasks, self.slots) * limits.sharing
        return TaskPace(self.pace, TaskRates(rates, at_once, limits.notes), self.access, self.gauges)


def in_worker(run: Callable[Concatenate[Batches, P], Batches]) -> Callable[Concatenate[Batches, P], Batches]:
    """Excludes objects that exist when a Python worker's first task begins from garbage collection.

    PySpark runs a collection after each task. With all imported modules that took 40 ms each time, a twelfth
    of a round of ten tasks.
    """

    @wraps(run)
    def begun(batches: Batches, /, *more: P.args, **named: P.kwargs) -> Batches:
        _leave_out_imports()
        return run(batches, *more, **named)

    return begun


@cache
def _leave_out_imports() -> None:
    gc.freeze()


def attempt() -> str:
    """An id that is unique among all task attempts of this Spark application, for names of files."""
    context = TaskContext.get()
    assert context is not None  # this runs in a task
    return str(context.taskAttemptId())


def is_first_attempt() -> bool:
    """Whether Spark starts this task for the first time."""
    context = TaskContext.get()
    assert context is not None  # this runs in a task
    return int(context.attemptNumber()) == 0


def task_frame(
    session: SparkSession,
    parts: Sequence[int],
    payloads: Sequence[Any],
    more: Mapping[str, pa.Array] = MappingProxyType({}),
) -> DataFrame:
    """(part, payload, the columns of `more`): pickled tasks with their Spark partitions. Few and small rows.

    A row whose payload is None has no task.
    """
    pickled = [None if payload is None else packed(payload) for payload in payloads]
    table = pa.table({PART: pa.array(parts, pa.int32()), PAYLOAD: pa.array(pickled, pa.binary()), **more})
    return session.createDataFrame(table).coalesce(1).select(*table.column_names)


def placed(frame: DataFrame, parts: int) -> DataFrame:
    """`frame` with each row on the Spark partition, of `parts`, that its column `part` gives."""
    return frame.repartitionById(parts, F.col(PART))


def placed_tasks(frame: DataFrame, parts: int) -> DataFrame:
    """`placed` for rows of `task_frame`: few enough to be read where they run. One Spark partition needs no shuffle."""
    return placed(frame, parts) if parts > 1 else frame.coalesce(1)


@dataclass(frozen=True, slots=True)
class Stage:
    """The tasks of one stage of a job: `run` turns batches of what they are given into batches of `schema`."""

    run: Callable[[Batches], Batches]
    schema: pa.Schema


def shuffled(senders: DataFrame, send: Stage, finders: DataFrame, find: Stage, parts: int) -> DataFrame:
    """What `find` returns for `finders`, rows of `task_frame`, and the rows that `send` returns for placed `senders`.

    Both come to the Spark partition, of `parts`, that their column `part` gives: the task of a finder as a payload,
    what was sent as rows without one, in any order.
    """
    sent = senders.select(PAYLOAD).mapInArrow(send.run, from_arrow_schema(send.schema))
    together = sent.unionByName(finders.select(PART, PAYLOAD), allowMissingColumns=True)
    names = [name for name in send.schema.names if name != PART]
    return placed(together, parts).select(PAYLOAD, *names).mapInArrow(find.run, from_arrow_schema(find.schema))


def columns(batches: Batches, *names: str) -> Iterator[tuple[Any, ...]]:
    """Rows as tuples of Python values."""
    for batch in batches:
        for row in range(batch.num_rows):
            yield tuple(batch.column(name)[row].as_py() for name in names)


@contextmanager
def job_errors() -> Iterator[None]:
    """Turns exceptions of a Spark job into `EngineError` if a task's code failed, else `EngineUnavailableError`."""
    try:
        yield
    except LithifyError:
        raise
    except Exception as error:
        if ended := ended_application(str(error)):
            raise EngineUnavailableError(ended[0], hint=ended[1]) from error
        why = reason(error)
        raised = isinstance(error, PythonException) and not _is_of_the_machine(why)
        kind = EngineError if raised else EngineUnavailableError
        raise kind(
            f"a Spark job failed: {why}",
            hint="see the traceback; the log is as it was before",
        ) from error


def _is_of_the_machine(why: str) -> bool:
    """Whether a task's exception, known only by its text, is of a class in `OF_THE_MACHINE`."""
    name = why.partition(":")[0].rpartition(".")[2]
    kinds = (getattr(module, name, None) for module in (builtins, pa))
    return any(isinstance(kind, type) and issubclass(kind, OF_THE_MACHINE) for kind in kinds)


def spread(
    costs: Sequence[int], full: int, slots: int = 1, *, least: int | None = None, at_most: int | None = None
) -> list[int]:
    """The Spark partition of each piece of work: the largest first, small ones together, all as even as they can be.

    A partition is full at cost `full`, and each of `slots` tasks at once gets as many. Where that is less than one,
    partitions of cost `least` (by default `full`) keep slots busy. With `at_most` there are at most that many.
    """
    whole = sum(costs)
    count = max(1, -(-whole // full))
    count = max(count, min(slots, whole // (least or full))) if count < slots else -(-count // slots) * slots
    count = min(len(costs), count if at_most is None else min(count, at_most))
    loads = [(0, part) for part in range(count)]
    parts = [0] * len(costs)
    for i in sorted(range(len(costs)), key=lambda i: -costs[i]):
        load, parts[i] = loads[0]
        heapreplace(loads, (load + costs[i], parts[i]))
    return parts


def partitions(parts: Sequence[int]) -> int:
    """The number of Spark partitions in `parts`, which number them from 0 without gaps."""
    return max(parts, default=-1) + 1
