"""What the first job of a session waits for: executors, and then their Python workers. Each is reported once.

    no executor yet ─► executors, whose tasks start Python workers ─► the first task has ended

It ends a wait for executors that never come: a standalone master starts those that exit at once again without end.
It counts executors that failed before they ran, and one whose process has begun counts as running. So its limit
(`spark.deploy.maxExecutorRetries`) does not end an application whose executors die in their first second. The
driver sees only that none of them registers. YARN and Kubernetes have limits of their own that hold.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from weakref import WeakSet

from pyspark import SparkContext
from pyspark.status import SparkStageInfo

from lithify.errors import EngineUnavailableError
from lithify.model.settings.units import format_duration, plural
from lithify.ports.engine import OVER, WAITS

LOOKS_WITHOUT = 300
"""Looks in a row, one a second, that find no executor: a cluster that is busy has time to free a place."""

REPORTED_AFTER_LOOKS = 5
"""Looks in a row after which a wait is reported."""

_STANDALONE = ("spark://", "local-cluster[")
_warm: WeakSet[SparkContext] = WeakSet()
"""Contexts in which a Python task has ended: Spark keeps the workers for the tasks that follow."""


class Executors:
    """The executors of one application, checked once a second while its jobs run. Local masters have none."""

    def __init__(self, context: SparkContext) -> None:
        self._context, self._wait, self._master = context, _Wait(), str(context.master)
        self._has_some = self._master != "local" and not self._master.startswith("local[")
        self._has_no_limit = self._master.startswith(_STANDALONE)

    def look(self) -> bool:
        """Whether there are any.

        Raises `EngineUnavailableError` when a standalone master has given none for `LOOKS_WITHOUT` looks.
        """
        if not self._has_some:
            return True
        of_the_driver = 1
        there = bool(self._context._jsc.sc().getExecutorMemoryStatus().size() > of_the_driver)
        limit = f"; the job ends after {LOOKS_WITHOUT} s without executors" if self._has_no_limit else ""
        begins = f"waiting for executors: {self._master} has not provided any{limit}"
        self._wait.look(begins, "executors have registered", over=there)
        if self._has_no_limit and self._wait.looks >= LOOKS_WITHOUT:
            raise EngineUnavailableError(
                f"no executor has registered at this driver for {self._wait.looks} s, and the job was cancelled",
                hint="see their stderr, which the web page of the master lists: they exit at once (because of a Java "
                "option, a path or an address), or the cluster has no room; nothing was changed",
            )
        return there


class PythonWorkers:
    """The workers of the first tasks of an application, each of which starts one; checked once a second."""

    def __init__(self, context: SparkContext) -> None:
        self._context, self._wait = context, _Wait()

    def look(self, stages: Sequence[SparkStageInfo]) -> None:
        """`stages` are the job's that run Python."""
        if self._context in _warm:
            return
        running = sum(stage.numActiveTasks for stage in stages)
        over = any(stage.numCompletedTasks for stage in stages)
        if running or over:
            begins = f"waiting for the first task to end: {running} of {_tasks(stages)} are starting Python workers"
            self._wait.look(begins, "the first task has ended", over=over, is_usual=True)
        if over:
            _warm.add(self._context)


class _Wait:
    """Tells that it has begun, once it has taken some looks in a row, and that it is over; not a second one."""

    def __init__(self) -> None:
        self.looks = 0
        self._is_reported: bool | None = False

    def look(self, begins: str, ends: str, *, over: bool, is_usual: bool = False) -> None:
        waited, self.looks = self.looks, 0 if over else self.looks + 1
        if over and self._is_reported:
            self._is_reported = None
            WAITS.info("%s, after %s", ends, format_duration(waited * 1000), extra=OVER)
        elif self.looks == REPORTED_AFTER_LOOKS and self._is_reported is False:
            self._is_reported = True
            WAITS.log(logging.INFO if is_usual else logging.WARNING, begins)


def _tasks(stages: Sequence[SparkStageInfo]) -> str:
    return plural(sum(stage.numTasks for stage in stages), "task")
