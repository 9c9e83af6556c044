"""Ends a wait for executors that never come: a standalone master starts those that exit at once again without end.

It counts executors that failed before they ran, and one whose process has begun counts as running. So its limit
(`spark.deploy.maxExecutorRetries`) does not end an application whose executors die in their first second. The
driver sees only that none of them registers. YARN and Kubernetes have limits of their own that hold.
"""

from __future__ import annotations

from pyspark import SparkContext

from lithify.errors import EngineUnavailableError

LOOKS_WITHOUT = 300
"""Looks in a row, one a second, that find no executor: a cluster that is busy has time to free a place."""

_STANDALONE = ("spark://", "local-cluster[")


class Executors:
    """The executors of one application, looked at once a second while its jobs run."""

    def __init__(self, context: SparkContext) -> None:
        self._context, self._looks = context, 0
        self._standalone = str(context.master).startswith(_STANDALONE)

    def look(self) -> None:
        """Raises `EngineUnavailableError` when none has been there for `LOOKS_WITHOUT` looks."""
        if not self._standalone:
            return
        of_the_driver = 1
        there = self._context._jsc.sc().getExecutorMemoryStatus().size() > of_the_driver
        self._looks = 0 if there else self._looks + 1
        if self._looks >= LOOKS_WITHOUT:
            raise EngineUnavailableError(
                f"no executor has registered at this driver for {self._looks} s, and the job was cancelled",
                hint="they exit as soon as they start, or the cluster has no room: the web page of the master lists"
                " them with their stderr, which says why (a Java option, a path, an address that they cannot reach);"
                " nothing was changed",
            )
