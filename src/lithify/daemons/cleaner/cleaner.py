"""The cleaner: each step is a look, a chore, or a batch of rounds (C28, C29, C31).

    step ─► look at all topics, when it is time ─► agenda
         ─► a chore, and a batch of rounds, in turn
         ─► nothing: how long to wait

Threads of a `loop` call `step` concurrently; one lock guards their shared state. A step never waits, and
a cleaner that ends between two steps or during one loses no data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from lithify.daemons.cleaner.chores import Chores
from lithify.daemons.cleaner.event_reporter import LOOKS, EventReporter
from lithify.daemons.cleaner.rounds import Rounds
from lithify.daemons.cleaner.work_finder import Look, WorkFinder
from lithify.errors.defects import as_lithify_error
from lithify.model.names import TopicName
from lithify.ports.clock import Clock
from lithify.reports.events import EventKind
from lithify.rules.schedule.agenda import TopicWork, in_order, next_batch, without

BUSY_WAIT_MS = 200
"""Between two steps of a thread without work while another thread checks the topics."""

REPORT_MS = 600_000
"""Between two reports of looks that found nothing to do, at most, so that silence means a fault."""


@dataclass(frozen=True, slots=True)
class Waits:
    """There was nothing to do; the next step is due in `ms`."""

    ms: int


@dataclass(frozen=True, slots=True)
class Did:
    """A step was done; there may be more to do."""


@dataclass(slots=True)
class Cleaner:
    """Cleans all topics of a catalog. Made by `make_cleaner`."""

    clock: Clock
    finder: WorkFinder
    rounds: Rounds
    chores: Chores
    reporter: EventReporter
    interval_ms: int
    threads: int
    """Of this cleaner; the others are assumed to have as many."""
    looks: int = 0
    failed_looks: int = 0
    last_look_ms: int | None = None
    """When the last look was completed, in epoch ms."""
    last_error: str = ""
    """The error of the last look, if it failed."""
    is_looking: bool = False
    _agenda: list[TopicWork] = field(default_factory=list)
    _retaining: list[TopicWork] = field(default_factory=list)
    _busy: list[TopicWork] = field(default_factory=list)
    """The batches of rounds that are under way."""
    _retained: set[TopicName] = field(default_factory=set)
    """The topics whose retention is under way."""
    _next_look_ms: int = 0
    """By the monotonic clock."""
    _reported_ms: int | None = None
    _chores_turn: bool = True
    _lock: Lock = field(default_factory=Lock)

    @property
    def look_steps(self) -> int:
        """Grows while looks make progress."""
        return self.looks + self.finder.watch.steps

    @property
    def running_topics(self) -> int:
        """Topics whose rounds are under way."""
        with self._lock:
            return len(self._busy)

    def step(self, *, looks: bool = True, works: bool = True) -> Did | Waits:
        """Does a look if the caller `looks`, or a chore or a batch of rounds if it `works`."""
        action = self._next(looks, works)
        if isinstance(action, Waits):
            return action
        action()
        return Did()

    def _next(self, looks: bool, works: bool) -> Callable[[], None] | Waits:
        """Chooses the next action and marks its topics as busy."""
        with self._lock:
            wait_ms = self._next_look_ms - self.clock.monotonic_ms()
            if looks and not self.is_looking and wait_ms <= 0:
                self.is_looking = True
                return self._look
            choosers = [self._chore, self._batch] if self._chores_turn else [self._batch, self._chore]
            self._chores_turn = not self._chores_turn
            for choose in choosers if works else ():
                action = choose()
                if action is not None:
                    return action
            return Waits(BUSY_WAIT_MS if self.is_looking else max(BUSY_WAIT_MS, wait_ms))

    def _chore(self) -> Callable[[], None] | None:
        while self._retaining:
            work = self._retaining.pop(0)
            if work.name not in self._retained and all(busy.name != work.name for busy in self._busy):
                return self._retaining_of(work)
        name = self.chores.next_upkeep(self.clock.now_ms())
        return None if name is None else partial(self.chores.upkeep, name)

    def _batch(self) -> Callable[[], None] | None:
        free = [work for work in without(self._agenda, self._busy) if work.name not in self._retained]
        batch = next_batch(free, self.threads * self.rounds.leases.cleaners())
        if not batch:
            return None
        self._agenda = without(self._agenda, batch)
        self._busy += batch

        def do() -> None:
            try:
                self.rounds.do(batch)
            finally:
                with self._lock:
                    self._busy = [work for work in self._busy if work not in batch]

        return do

    def _retaining_of(self, work: TopicWork) -> Callable[[], None]:
        """Retention of a topic, during which no thread of this cleaner does a round of it."""
        self._retained.add(work.name)

        def do() -> None:
            try:
                self.chores.retain(work)
            finally:
                with self._lock:
                    self._retained.discard(work.name)

        return do

    def _look(self) -> None:
        begun_ms = self.clock.monotonic_ms()
        look = None
        try:
            look = self.finder.look(self.clock.now_ms())
            versions = {name: known.version for name, known in self.finder.watch.known.items()}
            self.chores.seen(versions, self.clock.now_ms())
            self.reporter.well(LOOKS)
        except Exception as error:  # the next look is tried
            look_error = as_lithify_error(error, "the check of all topics")
            self.last_error = str(look_error)
            self.reporter.look_failed(look_error, self.last_look_ms)
        finally:
            self._looked(look, begun_ms)

    def _looked(self, look: Look | None, begun_ms: int) -> None:
        """Schedules the next look; `look` is None for one that failed."""
        ended_ms = self.clock.monotonic_ms()
        with self._lock:
            self.is_looking = False
            # Long looks take at most half of the time, so that rounds get theirs.
            self._next_look_ms = begun_ms + max(self.interval_ms, 2 * (ended_ms - begun_ms))
            if look is None:
                self.failed_looks += 1
                return
            self.looks += 1
            self.last_look_ms, self.last_error = self.clock.now_ms(), ""
            self._agenda = in_order([work for work in look.work if work.required.rounds])
            self._retaining = [work for work in look.work if work.required.retains]
        reported_ms = begun_ms if self._reported_ms is None else self._reported_ms
        if look.work or ended_ms - reported_ms >= REPORT_MS:
            reported_ms = ended_ms
            self._report(look, ended_ms - begun_ms)
        self._reported_ms = reported_ms

    def _report(self, look: Look, duration_ms: int) -> None:
        self.reporter.report(
            EventKind.LOOKED,
            topics=look.topics,
            due=len(look.work),
            overdue_ms=max((work.required.overdue_ms for work in look.work), default=0),
            metadata_read=look.read,
            manifests_opened=look.opened,
            duration_ms=duration_ms,
        )
