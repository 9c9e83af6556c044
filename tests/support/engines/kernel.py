"""`RewriteEngine` without Spark: the kernels of `columnar` called one after the other.

What it shows of a log, the Spark engine must show as well; and it takes no JVM to try a thousand.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from lithify.api.topic import Topic
from lithify.columnar.files.access import FileAccess
from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass.key_blocks import Spool, SpooledKeys
from lithify.columnar.keypass.key_comparison import KeyComparison
from lithify.columnar.keypass.key_scan import KeyScan, LogScan, keys_schema
from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.keypass.tally import Tally, log_findings
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.rewrite import Source, mask, rewrite
from lithify.columnar.segment.dead_records import DeadPositions, DeadRecords, Integers, ordinal_starts
from lithify.columnar.segment.writer import SegmentSpec
from lithify.errors import LithifyError
from lithify.model.names import LogId
from lithify.ports.engine import PlannedLog, Progress, Rewrites, Rewritten, RunLimits, Written
from lithify.reports.rounds.round import RoundReport
from lithify.rules.compaction.decisions import AddMask, CountedSegment, Rewrite
from lithify.rules.compaction.key_pass_shape import KeyPassShape
from lithify.rules.compaction.outcome import LogFindings
from lithify.rules.compaction.planner import LogPlan
from lithify.service.round.compact import RunRequest, compact
from lithify.spark.keypass.job import LogWork


@dataclass(frozen=True, slots=True)
class KernelEngine:
    """Cuts the keys of every log into `ranges` hash ranges; `shuffled` ones get theirs in blocks, or they read `ahead`.

    `access` opens the warehouse's files where they are not local.
    """

    ranges: int = 1
    shuffled: bool = False
    access: FileAccess = FileAccess()
    seed: str = "seed"
    ahead: bool = False

    @contextmanager
    def open_round(
        self, logs: Sequence[PlannedLog], limits: RunLimits, run_id: str, progress: Progress
    ) -> Iterator[KernelRound]:
        yield KernelRound(self, logs, limits, run_id)


class KernelRound:
    """Keeps the dead positions of every scanned segment by its path."""

    def __init__(self, engine: KernelEngine, logs: Sequence[PlannedLog], limits: RunLimits, run_id: str) -> None:
        self._engine = engine
        self._logs = {log.id: log for log in logs}
        self._limits = limits
        self._run_id = run_id
        self._dead: dict[str, DeadPositions] = {}

    def find_survivors(self) -> Mapping[LogId, LogFindings | LithifyError]:
        return {log.id: self._found(log.plan) for log in self._logs.values()}

    def rewrite(self, rewrites: Rewrites) -> Written:
        return {
            log: tuple(self._rewrite(log, number, one) for number, one in enumerate(mine))
            for log, mine in rewrites.items()
        }

    def _found(self, plan: LogPlan) -> LogFindings | LithifyError:
        """What one log meets is its own, as on Spark."""
        try:
            return self._find(plan)
        except LithifyError as error:
            return error

    def _find(self, plan: LogPlan) -> LogFindings | LithifyError:
        ranges = self._engine.ranges
        log = LogWork(0, 0, plan, KeyPassShape(ranges, shuffled=False)).scan
        dead = DeadRecords(ordinal_starts(log.segments))
        tallies = []
        compare = partial(KeyComparison, ahead=self._engine.ahead)
        finder = WinnerFinder(self._limits.task_memory_bytes // 2, self._engine.seed, compare)
        with tempfile.TemporaryDirectory() as folder:
            spools = [Spool(Path(folder) / str(index)) for index in range(ranges)]
            if self._engine.shuffled:
                sending = Sending(self._engine.access, finder, spools, dead)
                tallies = [sending.send(index, alone, portion) for index, (portion, alone) in enumerate(log.pieces())]
            for index in range(ranges if plan.scanned else 0):
                part, found = finder.find(
                    lambda r, log=log, spool=spools[index]: (
                        SpooledKeys(spool, keys_schema(log.rules), ordinal_starts(log.segments))
                        if self._engine.shuffled
                        else KeyScan(self._engine.access, log, settles=r.is_first)
                    ),
                    HashRange(index, ranges),
                )
                tallies.append(part)
                dead.update(found)
        self._dead |= {log.segments[i].path: positions for i, positions in dead.by_segment().items()}
        return log_findings(plan, tallies, {path: positions.change for path, positions in self._dead.items()})

    def _rewrite(self, log: LogId, number: int, decided: Rewrite | AddMask) -> Rewritten | LithifyError:
        spec = SegmentSpec.of(self._logs[log].topic, decided.partition, self._run_id)
        try:
            if isinstance(decided, AddMask):
                masked, read = mask(self._engine.access, spec, self._source(decided.source), attempt=str(number))
                return Rewritten((masked,), read)
            sources = [self._source(s) for s in decided.sources]
            return Rewritten(*rewrite(self._engine.access, spec, sources, attempt=str(number)))
        except LithifyError as error:
            return error

    def _source(self, counted: CountedSegment) -> Source:
        dead = self._dead.get(counted.segment.path, DeadPositions())
        return Source(counted.segment, counted.survivors, dead)


@dataclass(frozen=True, slots=True)
class Sending:
    """Sends keys to the spools of their ranges; `dead` are those that need no comparing."""

    access: FileAccess
    finder: WinnerFinder
    spools: Sequence[Spool]
    dead: DeadRecords

    def send(self, number: int, alone: LogScan, portion: Portion) -> Tally:
        """Those of segment `number`; what was settled on the way."""
        scan = KeyScan(self.access, alone, settles=True)
        for index, block in self.finder.blocks(scan.keys(portion), len(self.spools)):
            self.spools[index].add(block, portion)
        for positions in scan.dead.by_segment().values():
            self.dead.add_part(number, positions)
        return scan.tally


def goes_and_stays(found: DeadRecords, starts: Integers) -> tuple[list[int], list[int]]:
    """Of a clean segment the records that go, of a dirty one behind it those that stay, each numbered from 0."""
    clean, dirty = np.diff(starts)
    dead = found.by_segment()
    goes = np.flatnonzero(dead[0].flags(0, clean)) if 0 in dead else []
    stays = np.flatnonzero(~dead[1].flags(0, dirty)) if 1 in dead else []
    return list(goes), list(stays)


def compact_without_spark(topic: Topic, now_ms: int | None = None) -> RoundReport:
    """A round of a topic of a lake, for what is about something else than how Spark does it."""
    engine = KernelEngine(access=topic.warehouse.files.access)
    report = compact(topic.warehouse, engine, topic.topic_name, RunRequest(None, now_ms))
    assert report.failed == ()
    return report
