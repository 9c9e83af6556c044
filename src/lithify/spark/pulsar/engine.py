"""The engine of Pulsar rounds on Spark: views of all partitions of a run in one job.

    few new entries    ─► one task reads them, then the view, and writes ───────────────────────┐
    many               ─► a task per range of entries ─► a task per hash range ─► a task writes ─┴─► outcomes

A single task that finds too many keys, chunks or sealed batches reports it, and its partition gets a key pass.
Publishes nothing; it sends a row per partition to the driver (C38).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from lithify.columnar.keypass.winners import WinnerFinder
from lithify.errors import EngineError, LithifyError
from lithify.ports.engine import Progress, RunLimits
from lithify.ports.pulsar.views import PlannedView, ViewRules, WrittenView
from lithify.pulsar.compaction.rules import order_of
from lithify.pulsar.rounds.entry_reader import ReaderOf
from lithify.pulsar.rounds.entry_scan import numbered
from lithify.pulsar.rounds.round_messages import RoundRules
from lithify.pulsar.rounds.view_ledger import NewView, OpenLedgers
from lithify.rules.compaction.key_pass_shape import winners_memory
from lithify.spark.pulsar.keypass import key_pass
from lithify.spark.pulsar.round_tasks import FindTask, ScanTask, SharedRates, TaskTools, WriteTask
from lithify.spark.pulsar.written_views import NeedsShuffle, Outcome, collect_outcomes, not_sole, written_views
from lithify.spark.session.attempts import has_repeated_stages
from lithify.spark.session.job_progress import Watch, watched
from lithify.spark.tasks import Pace, job_errors, placed, task_frame

ONE_TASK_BYTES = 64 * 2**20
"""Of new entries, at most, for a round in one task: it reads them twice, and no other task helps it."""

FULL_BYTES = 64 * 2**20
"""New entries per hash range, if there are slots for this many."""

KEYS_PER_BYTE = 2
"""Bytes of memory that comparing the keys of a byte of entries takes, for keys of a third of their messages."""


@dataclass(frozen=True, slots=True)
class PulsarEngine:
    """Runs rounds; calls `session` when one first needs a Spark session. See `ports.pulsar.ViewEngine`.

    `new_id` returns unique, unpredictable ids.
    """

    session: Callable[[], SparkSession]
    reader_of: ReaderOf
    open_ledgers: OpenLedgers
    slots: int
    pace: Pace
    new_id: Callable[[], str]
    one_task_bytes: int = ONE_TASK_BYTES

    def write(
        self, views: Sequence[PlannedView], rules: ViewRules, limits: RunLimits, run_id: str, progress: Progress
    ) -> Mapping[str, WrittenView | LithifyError]:
        """See `ports.pulsar.ViewEngine`."""
        if not views:
            return {}
        round_rules = RoundRules(rules.retain_null_key, order_of(rules.order), rules.skip_damaged)
        finder = WinnerFinder(winners_memory(limits.task_memory_bytes), self.new_id())
        run = _Run(self, views, round_rules, limits, run_id, finder)
        alone = [unit for unit, view in enumerate(views) if self._fits_one_task(view, round_rules)]
        outcomes = run.outcomes(alone, [unit for unit in range(len(views)) if unit not in alone], progress)
        again = {unit: outcome for unit, outcome in outcomes.items() if isinstance(outcome, NeedsShuffle)}
        if again:
            outcomes |= run.outcomes([], [*again], progress)
            outcomes |= {unit: not_sole(outcomes[unit]) for unit in again if unit in outcomes and not again[unit].sole}
        return {view.partition: _settled(view, outcomes.get(unit)) for unit, view in enumerate(views)}

    def _fits_one_task(self, view: PlannedView, rules: RoundRules) -> bool:
        return not rules.by_event_time and _new_bytes(view) <= self.one_task_bytes


@dataclass(frozen=True, slots=True)
class _Run:
    """One call of the engine. Units are numbers of `views`."""

    engine: PulsarEngine
    views: Sequence[PlannedView]
    rules: RoundRules
    limits: RunLimits
    run_id: str
    finder: WinnerFinder

    def outcomes(self, alone: Sequence[int], shuffled: Sequence[int], progress: Progress) -> dict[int, Outcome]:
        """Runs one job for these units."""
        session = self.engine.session()
        units = [*alone, *shuffled]
        stages = [len(units)]
        with job_errors():
            writes = [replace(self._write(unit, at), finder=self.finder) for at, unit in enumerate(alone)]
            writes += [self._write(unit, at) for at, unit in enumerate(shuffled, len(alone))]
            key_results = None
            if shuffled:
                key_results, more = self._key_pass(session, shuffled, len(alone))
                stages += more
            work = task_frame(session, range(len(units)), writes)
            frame = written_views(work, key_results, len(units), self._tools(len(units)))
            size_bytes = sum(one.size_bytes for unit in units for one in self.views[unit].ranges)
            with watched(session, Watch(f"{self.run_id}-view", "view", tuple(stages), size_bytes, progress)):
                collected = collect_outcomes(frame)
        # A stage of several tasks may begin again while tasks of it still write; the new ones are first attempts, too.
        repeated = len(units) > 1 and has_repeated_stages(session, f"{self.run_id}-view")
        return {units[at]: not_sole(outcome) if repeated else outcome for at, outcome in collected.items()}

    def _write(self, unit: int, at: int) -> WriteTask:
        view = self.views[unit]
        new = NewView(view.partition, view.horizon, self.run_id)
        return WriteTask(at, new, numbered(view.ranges), view.small_entries, self.rules)

    def _key_pass(self, session: SparkSession, shuffled: Sequence[int], first: int) -> tuple[DataFrame, list[int]]:
        """The key pass of these units, numbered from `first`, and the numbers of tasks of its stages."""
        scans: list[ScanTask] = []
        finds: list[FindTask] = []
        for at, unit in enumerate(shuffled, first):
            view = self.views[unit]
            ranges, count = numbered(view.ranges), self._hash_ranges(view)
            parts = tuple(range(len(finds), len(finds) + count))
            finds += [FindTask(at, index, count, len(ranges), self.rules, self.finder) for index in range(count)]
            scans += [
                ScanTask(at, view.partition, view.small_entries, one, self.rules, parts, self.finder) for one in ranges
            ]
        at_most = len(scans) if self.limits.read_rate_bytes is None else min(len(scans), self.engine.slots)
        places = [number % at_most for number in range(len(scans))]
        sending = placed(task_frame(session, places, scans), at_most)
        finding = task_frame(session, range(len(finds)), finds)
        return key_pass(sending, finding, len(finds), self._tools(at_most)), [at_most, len(finds)]

    def _hash_ranges(self, view: PlannedView) -> int:
        by_memory = -(-KEYS_PER_BYTE * _new_bytes(view) // self.finder.memory_bytes)
        by_slots = min(self.engine.slots, -(-_new_bytes(view) // FULL_BYTES))
        return max(1, by_memory, by_slots)

    def _tools(self, tasks: int) -> TaskTools:
        """For `tasks` tasks, so that those that run at once keep to the run's rates together (C40)."""
        engine, limits, at_once = self.engine, self.limits, min(tasks, self.engine.slots)
        read, write = limits.read_rate_bytes, limits.write_rate_bytes
        shares = SharedRates(read and read / at_once, write and write / at_once, engine.pace)
        speculates = engine.session().conf.get("spark.speculation", "false") == "true"
        return TaskTools(engine.reader_of, engine.open_ledgers, shares, speculates)


def _new_bytes(view: PlannedView) -> int:
    return sum(one.size_bytes for one in view.ranges if not one.compacted)


def _settled(view: PlannedView, outcome: Outcome | None) -> WrittenView | LithifyError:
    if outcome is None or isinstance(outcome, NeedsShuffle):
        return EngineError(
            f"{view.partition}: no task has written the compacted view", hint="nothing was changed; run it again"
        )
    return outcome
