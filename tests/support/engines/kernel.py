"""`RewriteEngine` without Spark: the kernels of `columnar` called one after the other.

What it shows of a log, the Spark engine must show as well; and it takes no JVM to try a thousand.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyroaring import BitMap

from lithify.api.topic import Topic
from lithify.columnar.files.access import FileAccess
from lithify.columnar.keypass.findings import log_findings
from lithify.columnar.keypass.key_blocks import Spool, SpooledKeys
from lithify.columnar.keypass.key_scan import KeyScan, LogScan, keys_schema
from lithify.columnar.keypass.sizing import KeyPassShape
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.keys.hash_range import HashRange
from lithify.columnar.keys.ranks import Portion
from lithify.columnar.rewrite import Source, rewrite
from lithify.columnar.segment.positions import MarkSet, ordinal_starts
from lithify.columnar.segment.writer import SegmentSpec
from lithify.compaction.decisions import CountedSegment, Rewrite
from lithify.compaction.outcome import LogFindings
from lithify.compaction.planner import LogPlan
from lithify.errors import LithifyError
from lithify.model.names import LogId
from lithify.ports.engine import PlannedLog, Progress, Rewrites, Rewritten, RunLimits, Written
from lithify.reports.round import RoundReport
from lithify.service.round.compact import RunRequest, compact
from lithify.spark.keypass.job import LogWork


@dataclass(frozen=True, slots=True)
class KernelEngine:
    """Cuts the keys of every log into `ranges` hash ranges; `shuffled` ones get theirs in blocks.

    `access` opens the warehouse's files where they are not local.
    """

    ranges: int = 1
    shuffled: bool = False
    access: FileAccess = FileAccess()
    seed: str = "seed"

    @contextmanager
    def open_round(
        self, logs: Sequence[PlannedLog], limits: RunLimits, run_id: str, progress: Progress
    ) -> Iterator[KernelRound]:
        yield KernelRound(self, logs, limits, run_id)

    def key_ranges(self, plans: Sequence[LogPlan], limits: RunLimits) -> Mapping[int, int]:
        return {plan.partition: self.ranges for plan in plans}


class KernelRound:
    """Keeps the marks of every scanned segment by its path."""

    def __init__(self, engine: KernelEngine, logs: Sequence[PlannedLog], limits: RunLimits, run_id: str) -> None:
        self._engine = engine
        self._logs = {log.id: log for log in logs}
        self._limits = limits
        self._run_id = run_id
        self._marks: dict[str, BitMap] = {}
        self._dirty = {s.path for log in logs for s in log.plan.dirty}

    def find_survivors(self) -> Mapping[LogId, LogFindings | LithifyError]:
        return {log.id: self._find(log.plan) for log in self._logs.values()}

    def rewrite(self, rewrites: Rewrites) -> Written:
        return {
            log: tuple(self._rewrite(log, number, one) for number, one in enumerate(mine))
            for log, mine in rewrites.items()
        }

    def _find(self, plan: LogPlan) -> LogFindings | LithifyError:
        ranges = self._engine.ranges
        log = LogWork(0, 0, plan, KeyPassShape(ranges, shuffled=False)).scan
        marks = MarkSet(ordinal_starts(log.segments))
        tallies = []
        finder = WinnerFinder(self._limits.task_memory_bytes // 2, self._engine.seed)
        with tempfile.TemporaryDirectory() as folder:
            spools = [Spool(Path(folder) / str(index)) for index in range(ranges)]
            if self._engine.shuffled:
                sending = Sending(self._engine.access, finder, spools, marks)
                tallies = [sending.send(alone, portion) for portion, alone in log.pieces()]
            for index in range(ranges if plan.scanned else 0):
                part, found = finder.find(
                    lambda r, log=log, spool=spools[index]: (
                        SpooledKeys(spool, keys_schema(log.rules), ordinal_starts(log.segments))
                        if self._engine.shuffled
                        else KeyScan(self._engine.access, log, settles=r.index == 0)
                    ),
                    HashRange(index, ranges),
                )
                tallies.append(part)
                marks.update(found)
        self._marks |= {log.segments[i].path: bitmap for i, bitmap in marks.bitmaps().items()}
        return log_findings(plan, tallies, {path: len(bitmap) for path, bitmap in self._marks.items()})

    def _rewrite(self, log: LogId, number: int, decided: Rewrite) -> Rewritten | LithifyError:
        spec = SegmentSpec.of(self._logs[log].topic, decided.partition, self._run_id)
        try:
            sources = [self._source(s) for s in decided.sources]
            return Rewritten(*rewrite(self._engine.access, spec, sources, attempt=str(number)))
        except LithifyError as error:
            return error

    def _source(self, counted: CountedSegment) -> Source:
        path = counted.segment.path
        marks = self._marks.get(path, BitMap())
        return Source(counted.segment, counted.survivors, marks, marks_losers=path not in self._dirty)


@dataclass(frozen=True, slots=True)
class Sending:
    """Sends keys to the spools of their ranges; marks are those that need no comparing."""

    access: FileAccess
    finder: WinnerFinder
    spools: Sequence[Spool]
    marks: MarkSet

    def send(self, alone: LogScan, portion: Portion) -> Tally:
        """Those of one segment; what was settled on the way."""
        scan = KeyScan(self.access, alone, settles=True)
        for index, block in self.finder.blocks(scan.keys(portion), len(self.spools)):
            self.spools[index].add(block, portion)
        for bitmap in scan.change_tokens.bitmaps().values():
            self.change_tokens.add(np.array(bitmap, np.int64) + alone.first_ordinal)
        return scan.tally


def compact_without_spark(topic: Topic, now_ms: int | None = None) -> RoundReport:
    """A round of a topic of a lake, for what is about something else than how Spark does it."""
    engine = KernelEngine(access=topic.warehouse.files.access)
    report = compact(topic.warehouse, engine, topic.topic_name, RunRequest(None, now_ms))
    assert report.failed == ()
    return report
