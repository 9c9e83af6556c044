"""Writes views of few bytes in the process that calls it, without Spark (decision 40).

    views of few bytes together ─► read, judged and written here ─────┬─► written views
    more, and what cannot be judged here ─► the engine for all others ┘

What brokers say of sizes is an average of each ledger, so what is read is counted as well: more than that is left to
the other engine, too. So nothing here grows with the records of a topic (C38).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from lithify.columnar.files.spilled import spill_file
from lithify.columnar.pace import Throttle
from lithify.columnar.rewrite import Throttles
from lithify.errors import LithifyError
from lithify.ports.engine import Progress, RunLimits
from lithify.ports.pulsar.views import PlannedView, ViewEngine, ViewRules, WrittenView
from lithify.pulsar.compaction.rules import order_of
from lithify.pulsar.rounds.entry_reader import ReaderOf
from lithify.pulsar.rounds.entry_scan import numbered
from lithify.pulsar.rounds.kept import KeptEntries
from lithify.pulsar.rounds.one_task import NeedsShuffleError, OneTaskRound
from lithify.pulsar.rounds.round_messages import RoundRules
from lithify.pulsar.rounds.view_ledger import NewView, OpenLedgers, opened_early, write_view
from lithify.rules.compaction.key_pass_shape import winners_memory

NEW_BYTES: Final = 32 * 2**20
"""The most of a round's new entries."""
SMALL_BYTES: Final = 128 * 2**20
"""The most of all of a round's entries, including the earlier views': about two seconds of work."""
MEMORY_BYTES: Final = 64 * 2**20
"""For the new keys of a partition, at most."""
READS: Final = 2
"""How often new entries are read: to judge them, and to write them."""


@dataclass(frozen=True, slots=True)
class SmallViews:
    """See `ports.pulsar.ViewEngine`. `larger` is the engine of all that is not small.

    `clock` is monotonic, in seconds; `new_id` returns unique, unpredictable ids.
    """

    larger: ViewEngine
    reader_of: ReaderOf
    open_ledgers: OpenLedgers
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    new_id: Callable[[], str]
    new_bytes: int = NEW_BYTES
    small_bytes: int = SMALL_BYTES

    def write(
        self, views: Sequence[PlannedView], rules: ViewRules, limits: RunLimits, run_id: str, progress: Progress
    ) -> Mapping[str, WrittenView | LithifyError]:
        """See `ports.pulsar.ViewEngine`."""
        ranges = [one for view in views for one in view.ranges]
        size_bytes = sum(one.size_bytes for one in ranges)
        new_bytes = sum(one.size_bytes for one in ranges if not one.compacted)
        is_small = size_bytes <= self.small_bytes and new_bytes <= self.new_bytes
        round_rules = RoundRules(rules.retain_null_key, order_of(rules.order), rules.skip_damaged)
        if not views or not is_small or round_rules.by_event_time:
            return self.larger.write(views, rules, limits, run_id, progress)
        told = _Told(progress, size_bytes, READS * self.small_bytes)
        work = _SmallRound(self, round_rules, limits, run_id, told)
        try:
            told.add(0)
            outcomes = {view.partition: work.outcome(view) for view in views}
        except _RefusedError as refused:
            raise refused.error from None
        left = {name: found.left_ledger for name, found in outcomes.items() if isinstance(found, NeedsShuffleError)}
        settled = {name: found for name, found in outcomes.items() if not isinstance(found, NeedsShuffleError)}
        if left:
            rest = [view for view in views if view.partition in left]
            for name, found in self.larger.write(rest, rules, limits, run_id, progress).items():
                settled[name] = replace(found, sole=False) if isinstance(found, WrittenView) and left[name] else found
        return settled


@dataclass(frozen=True, slots=True)
class _SmallRound:
    """One call, in which the views are written one after the other."""

    engine: SmallViews
    rules: RoundRules
    limits: RunLimits
    run_id: str
    told: _Told

    def outcome(self, view: PlannedView) -> WrittenView | LithifyError | NeedsShuffleError:
        """Raises `_RefusedError`."""
        engine, throttles = self.engine, self._throttles()
        new = NewView(view.partition, view.horizon, self.run_id)
        memory_bytes = min(MEMORY_BYTES, winners_memory(self.limits.task_memory_bytes))
        alone = OneTaskRound(memory_bytes, engine.new_id())
        try:
            reader = engine.reader_of(view.partition, view.small_entries)
            with spill_file() as file, opened_early(engine.open_ledgers, partial(self.told.add, 0)) as open_ledgers:
                kept = KeptEntries(reader, file)
                ranges = alone.judge(kept, self.rules, numbered(view.ranges), throttles.read)
                return write_view(open_ledgers, new, kept, self.rules, ranges, throttles)
        except (LithifyError, NeedsShuffleError) as error:
            return error

    def _throttles(self) -> Throttles:
        """Throttles of the run, for one view at a time (C40); what is read is reported."""
        engine, limits = self.engine, self.limits
        read = Throttle(lambda: limits.read_rate_bytes, engine.clock, engine.sleep)
        write = Throttle(lambda: limits.write_rate_bytes, engine.clock, engine.sleep)

        def acquire(size_bytes: int) -> None:
            read.acquire(size_bytes)
            self.told.add(size_bytes)

        return Throttles(acquire, write.acquire)


class _RefusedError(Exception):
    """The round is to end with this error: `Progress` has raised it."""

    def __init__(self, error: LithifyError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True)
class _Told:
    """What a call has read so far, as `progress` is told it."""

    progress: Progress
    size_bytes: int
    most_bytes: int
    read_bytes: int = 0

    def add(self, size_bytes: int) -> None:
        """Raises `NeedsShuffleError` if more is read than a small round may, and `_RefusedError`."""
        self.read_bytes += size_bytes
        if self.read_bytes > self.most_bytes:
            raise NeedsShuffleError
        try:
            self.progress("view", min(self.read_bytes, self.size_bytes), self.size_bytes)
        except LithifyError as error:
            raise _RefusedError(error) from error
