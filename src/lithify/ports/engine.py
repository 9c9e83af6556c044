"""The port of a round's engine: it finds winners, and rewrites segments.

    plans of any number of logs, of any topics ─► find_survivors ─► counts
                 decisions to rewrite segments ─► rewrite        ─► new segments

An engine never commits. A log that it cannot read or write has its error instead of a result; the work
on the others continues (C8, C31).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from lithify.errors import LithifyError
from lithify.model.names import LogId
from lithify.model.segment import Segment
from lithify.model.settings.rates import RatesNote
from lithify.model.topic.state import TopicState
from lithify.rules.compaction.decisions import AddMask, Rewrite
from lithify.rules.compaction.outcome import LogFindings
from lithify.rules.compaction.planner import LogPlan

Progress = Callable[[str, int, int], None]
"""Called as (phase, done, total) during a round, in bytes to read for a phase of `IN_BYTES`, else in steps. It may
raise `RoundAbandonedError`: the engine then stops its work within a second or so, and the round raises the error."""


def silent(_phase: str, _done: int, _total: int) -> None:
    """Progress that is not shown."""


def unsaid(_text: str) -> None:
    """For what a round reports before it begins, which is not shown."""


START_SPARK = "start_spark"
"""The phase in which a Spark session is started, where none is given or active: of one step."""
STARTING_SPARK = "starting Spark: its JVM takes some seconds"
SPARK_STARTED = "Spark started in {}; its Python workers start with the first job"
"""What people see before and after it."""
WAITS = logging.getLogger("lithify.spark")
"""What jobs wait for, for people: the command line prints it, Python on stderr by default what is a warning."""
OVER = {"is_over": True}
"""What records of a wait that is over have more than others."""
COMMIT = "commit"
"""The phase of commits: after its first report, logs may have changed."""
IN_BYTES = frozenset({"key_pass", "rewrite", "view", "verify"})
"""Phases that read files or entries. Each task of such a phase counts as an equal share of the bytes."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Bounds on the work itself: bytes, and bytes per second over the whole run (C38, C40).

    `notes` name documents that may change the rates during the run: a document with another id than
    noted counts, the last such of them. `sharing` is how many runs share the rates. A log's round rewrites at most
    `rewrite_bytes` and leaves the rest to later rounds (C42); None is unlimited.
    """

    task_memory_bytes: int = 2**30
    read_rate_bytes: int | None = None
    write_rate_bytes: int | None = None
    notes: tuple[RatesNote, ...] = ()
    sharing: int = 1
    rewrite_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedLog:
    """One log of a run: the version of its topic that the plan was made on, and the plan."""

    topic: TopicState
    plan: LogPlan

    @property
    def id(self) -> LogId:
        return LogId(self.topic.name, self.plan.partition)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What came of a `Rewrite`, its new segments in offset order, or of an `AddMask`, and the bytes read for it."""

    segments: tuple[Segment, ...]
    bytes_read: int


Rewrites = Mapping[LogId, Sequence[Rewrite | AddMask]]
"""By log, what to rewrite and to mask."""

Written = Mapping[LogId, tuple[Rewritten | LithifyError, ...]]
"""By log, the result of each of its rewrites, in their order."""


class Round(Protocol):
    """A running round. What it finds out about single records remains in the engine."""

    def find_survivors(self) -> Mapping[LogId, LogFindings | LithifyError]:
        """The key pass: by log, what survives in every scanned segment."""
        ...

    def rewrite(self, rewrites: Rewrites) -> Written:
        """Writes the survivors of each, or the mask that hides the others."""
        ...


class RewriteEngine(Protocol):
    """Finds winners and rewrites segments; never commits."""

    def open_round(
        self, logs: Sequence[PlannedLog], limits: RunLimits, run_id: str, progress: Progress
    ) -> AbstractContextManager[Round]:
        """A round of all these logs together.

        Raises `EngineError`, `DamagedError` or `JavaNotFoundError`, and what `progress` raises.
        """
        ...
