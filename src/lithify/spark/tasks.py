"""What travels between the driver and the tasks of a run, and how an error comes back.

    driver: packed task ──► row (part, payload) ──► task ──► rows of results ──► driver: counts

A task that gets a `LithifyError` (a damaged file, say) returns it as its result, so that the
other logs of the run continue. Anything else fails the Spark job, which may retry the task: every
task only reads, or writes files that no other attempt writes.
"""

from __future__ import annotations

import builtins
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lithify.columnar.files.access import FileAccess
from lithify.columnar.pace.rates import FollowedRates, TaskRates
from lithify.columnar.pace.throttle import Throttle
from lithify.columnar.rewrite import Throttles
from lithify.defects import OF_THE_MACHINE
from lithify.errors import EngineError, EngineUnavailableError, LithifyError
from lithify.model.settings.rates import Rates
from lithify.ports.engine import RunLimits
from lithify.spark.payloads import packed

PART = "part"
PAYLOAD = "payload"

Batches = Iterator[pa.RecordBatch]
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Pace:
    """Monotonic time in seconds, and how to wait: what a throttle in a task needs."""

    clock: Callable[[], float]
    sleep: Callable[[float], None]


@dataclass(frozen=True, slots=True)
class TaskPace:
    """How fast each task of a job may go (C40); it travels to them."""

    pace: Pace
    rates: TaskRates
    access: FileAccess

    def throttles(self) -> Throttles:
        """Those of one Spark partition, whose tasks come one after the other."""
        clock, sleep = self.pace.clock, self.pace.sleep
        followed = FollowedRates(self.rates, self.access, clock)
        return Throttles(
            read=Throttle(followed.read, clock, sleep).acquire, write=Throttle(followed.write, clock, sleep).acquire
        )


@dataclass(frozen=True, slots=True)
class Workers:
    """What tasks work with: how they open files, how many run at once, the time they go by.

    `new_id` gives unique, unpredictable ids.
    """

    access: FileAccess
    slots: int
    pace: Pace
    new_id: Callable[[], str]

    def task_pace(self, limits: RunLimits, tasks: int) -> TaskPace:
        """That of each of so many tasks, so that those that run at once keep to the rates of the run (C40)."""
        rates = Rates(limits.read_rate_bytes, limits.write_rate_bytes)
        at_once = min(tasks, self.slots) * limits.sharing
        return TaskPace(self.pace, TaskRates(rates, at_once, limits.notes), self.access)


def in_worker(run: Callable[Concatenate[Batches, P], Batches]) -> Callable[Concatenate[Batches, P], Batches]:
    """For Spark's Python workers: objects imported by then are left out of later garbage collections.

    PySpark looks for garbage after every task. With all modules to look through that took 40 ms each time,
    a twelfth of a round of ten tasks; what is there when a worker's first task begins is left out of it.
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
    """What no other attempt of any task of this Spark application has: for the names of files that a task writes."""
    context = TaskContext.get()
    assert context is not None  # this runs in a task
    return str(context.taskAttemptId())


def task_frame(session: SparkSession, parts: Sequence[int], payloads: Sequence[Any]) -> DataFrame:
    """(part, payload): the pickled work of each Spark partition. Few rows, of no record's size."""
    table = pa.table(
        {
            PART: pa.array(parts, pa.int32()),
            PAYLOAD: pa.array([packed(payload) for payload in payloads], pa.binary()),
        }
    )
    return session.createDataFrame(table).coalesce(1).select(PART, PAYLOAD)


def placed(frame: DataFrame, parts: int) -> DataFrame:
    """`frame` with every row on the one of so many Spark partitions that its `part` names."""
    return frame.repartitionById(parts, F.col(PART))


def columns(batches: Batches, *names: str) -> Iterator[tuple[Any, ...]]:
    """Rows as tuples of plain values, one at a time."""
    for batch in batches:
        for row in range(batch.num_rows):
            yield tuple(batch.column(name)[row].as_py() for name in names)


@contextmanager
def job_errors() -> Iterator[None]:
    """Turns any exception of a Spark job into one clear line, with what caused it (`Blame`)."""
    try:
        yield
    except LithifyError:
        raise
    except Exception as error:
        reason = _reason(error)
        raised = isinstance(error, PythonException) and not _is_of_the_machine(reason)
        kind = EngineError if raised else EngineUnavailableError
        raise kind(
            f"a Spark job failed: {reason}",
            hint="the log is as it was before; run it again with --debug for the whole story",
        ) from error


_OF_PY4J = "An error occurred while calling "
_ABORTED = "Job aborted"


def _reason(error: Exception) -> str:
    """The line that says what went wrong: what a task raised, else the first line there is."""
    _, traceback, raised = str(error).rpartition("Traceback (most recent call last):")
    lines = [line for line in raised.splitlines() if line.strip()]
    if lines and lines[0].startswith(_OF_PY4J):  # then the Java error, and what caused it
        lines = [line for line in lines if _ABORTED in line] or [line.lstrip(": ") for line in lines[1:]]
    if traceback:  # what a traceback ends with is the first line that is not indented
        lines = [line for line in lines if not line[0].isspace()] or lines
    return (lines[0].strip() if lines else type(error).__name__)[:300]


def _is_of_the_machine(reason: str) -> bool:
    """Whether a task's exception, of which only the text comes back, is of a class for errors of the machine."""
    name = reason.partition(":")[0].rpartition(".")[2]
    kinds = (getattr(module, name, None) for module in (builtins, pa))
    return any(isinstance(kind, type) and issubclass(kind, OF_THE_MACHINE) for kind in kinds)


def spread(costs: Sequence[int], full: int, at_most: int | None = None) -> list[int]:
    """The Spark partition of each piece of work: large ones alone and first, small ones together.

    A partition is full at cost `full`. With `at_most` there are no more than that, evenly filled.
    """
    order = sorted(range(len(costs)), key=lambda i: -costs[i])
    loads: list[int] = []
    parts = [0] * len(costs)
    for i in order:
        if not loads or loads[-1] + costs[i] > full:
            loads.append(0)
        loads[-1] += costs[i]
        parts[i] = len(loads) - 1
    if at_most is None or len(loads) <= at_most:
        return parts
    evened = [0] * at_most
    for i in order:
        parts[i] = evened.index(min(evened))
        evened[parts[i]] += costs[i]
    return parts


def partitions(parts: Sequence[int]) -> int:
    """How many Spark partitions these are; they are numbered from 0 without gaps."""
    return max(parts, default=-1) + 1
