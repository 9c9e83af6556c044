"""Runs a cleaner: threads that take steps, one that renews the leases, and an orderly end.

    main      waits for the end, or for a signal; checks that looks make progress
    look      looks at the topics, wait, look ...     a thread of its own, as a round may take hours
    worker    step, step, step, wait, step ...        as many as there are threads
    heartbeat renews the leases, a few times in each lease
    count     counts the running cleaners as often, for a rate that they share

After a request to stop no new step begins. Running rounds have `FINISH_S` to complete and are then
abandoned; the end of the process ends threads that still hang after `GIVE_UP_S`: a round that is not
committed has changed nothing. The process ends by itself, for its supervisor to restart it, if its looks
make no progress or if it can no longer report events (C50).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.coordination.leases.outcomes import Refused, Registered, Registration, Waiting
from lithify.daemons.cleaner.chores import Chores
from lithify.daemons.cleaner.cleaner import Cleaner, Did, Waits
from lithify.daemons.cleaner.events import EventReporter
from lithify.daemons.cleaner.failures import Failures
from lithify.daemons.cleaner.liveness import NoteWriter, Watchdog
from lithify.daemons.cleaner.options import CleanerOptions, EventListener
from lithify.daemons.cleaner.outages import LEASES
from lithify.daemons.cleaner.rounds import Rounds
from lithify.daemons.cleaner.sharing import CleanerCount
from lithify.daemons.cleaner.stop import Stop
from lithify.daemons.cleaner.work_finder import WorkFinder
from lithify.errors import ConflictError, CoordinationError, LithifyError, UnusableEnvironmentError
from lithify.errors.defects import as_lithify_error
from lithify.model.settings.units import format_duration
from lithify.ports.engine import RewriteEngine
from lithify.ports.leases import Coordination
from lithify.ports.store import Warehouse
from lithify.reports.events import EventKind

TICK_S = 0.1
FINISH_S = 4.0
GIVE_UP_S = 4.0
FAREWELL_S = 1.0
"""For the release of the leases and the last event."""
HEARTBEATS_PER_LEASE = 6
REGISTER_EVERY_S = 0.5
COUNT_WAIT_S = 5.0
AFTER_A_DEFECT_S = 5.0
"""How long a thread waits after an unexpected error."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One process of a cleaner."""

    cleaner: Cleaner
    leases: LeaseKeeper
    reporter: EventReporter
    stop: Stop
    options: CleanerOptions
    coordination: Coordination
    count: CleanerCount

    def run(self, *, once: bool = False) -> bool:
        """Runs until it is asked to stop, or with `once` until there is nothing to do.

        Returns whether all threads have ended. Raises `RefusedError` where a cleaner with this id is running,
        `CoordinationError` where the database of leases cannot be used, or with `once` is away.
        """
        if not self._registered(waits=not once):
            self._report_stopped()
            return True
        work = self._until_idle if once else self._for_ever
        steps = [partial(self._guarded, work, self.stop.asked) for _ in range(self.options.threads)]
        if not once:
            notes = NoteWriter(self.coordination, self.options, self.reporter, self.cleaner.clock.now_ms())
            steps.append(partial(self._guarded, partial(self._look, notes), self.stop.asked))
        workers = _started(*steps)
        _started(*(partial(self._guarded, beat, self.stop.gives_up) for beat in (self._heartbeat, self._count)))
        watchdog = Watchdog(self.options.interval_ms)
        while any(worker.is_alive() for worker in workers) and not self.stop.asked.wait(TICK_S):
            if watchdog.stands_still(self.cleaner.look_steps, self.cleaner.clock.monotonic_ms()):
                self.stop.fail(self._no_look(watchdog.limit_ms))
        self.stop.ask("there is nothing left to do")
        ended = _joined(workers, FINISH_S)
        if not ended:
            self.stop.gives_up.set()
            ended = _joined(workers, GIVE_UP_S)
        self.stop.gives_up.set()
        return _joined(_started(self._leave, self._report_stopped), FAREWELL_S) and ended

    def _no_look(self, limit_ms: int) -> LithifyError:
        trouble = self.cleaner.last_trouble
        return UnusableEnvironmentError(
            f"no look at the topics has been completed for {format_duration(limit_ms)}"
            f"{f': {trouble}' if trouble else ''}; this process ends so that another one is started"
        )

    def _leave(self) -> None:
        self.leases.leave()
        if not self.stop.failed:  # else the note shows `status` since when it did not look
            with suppress(CoordinationError):
                self.coordination.drop_note(self.options.cleaner_id)

    def _report_stopped(self) -> None:
        # The reader of the events may have closed the pipe.
        with suppress(OSError):
            self.reporter.report(EventKind.STOPPED, reason=self.stop.reason, last_look_ms=self.cleaner.last_look_ms)

    def _registered(self, *, waits: bool) -> bool:
        """Waits until no other cleaner has this id, at most for a lease, and for as long as the database is away.

        False if it is asked to stop meanwhile.
        """
        while not isinstance(found := self._registration(waits=waits), Registered):
            if isinstance(found, Refused):
                raise found.error
            if self.stop.asked.wait(REGISTER_EVERY_S):
                return False
        options = self.options
        self.count.observed.set()
        self.reporter.report(
            EventKind.STARTED,
            id=options.cleaner_id,
            threads=options.threads,
            interval_ms=options.interval_ms,
            lease_ms=options.lease_ms,
            shared=self.coordination.shared,
        )
        return True

    def _registration(self, *, waits: bool) -> Registration:
        try:
            found = self.leases.register(self.options.cleaner_id)
        except CoordinationError as error:
            if not (waits and error.is_outage):
                raise
            self.reporter.outage(LEASES, error)
            return Waiting(0)
        self.reporter.well(LEASES)
        return found

    def _for_ever(self) -> bool:
        return self._stepped(self.cleaner.step(looks=False))

    def _look(self, notes: NoteWriter) -> bool:
        notes.write(self.cleaner.last_look_ms)
        return self._stepped(self.cleaner.step(works=False))

    def _until_idle(self) -> bool:
        """A step of `once`: one look, then its work; False when that is done."""
        looked = self.cleaner.looks + self.cleaner.failed_looks > 0
        step = self.cleaner.step(looks=not looked)
        if isinstance(step, Waits) and looked and not self.cleaner.is_looking:
            return False
        return self._stepped(step)

    def _stepped(self, step: Did | Waits) -> bool:
        if isinstance(step, Waits):
            self.stop.asked.wait(step.ms / 1000)
        return True

    def _heartbeat(self) -> bool:
        if self.stop.gives_up.wait(self.options.lease_ms / 1000 / HEARTBEATS_PER_LEASE):
            return False
        renewal = self.leases.renew()
        if renewal.error is not None:
            self.reporter.outage(LEASES, renewal.error)
            return True
        if renewal.replaced_by is not None:
            self.stop.fail(ConflictError(f"another cleaner has taken over this one's id: {renewal.replaced_by}"))
        try:
            self.leases.observe()
        except CoordinationError as error:
            self.reporter.outage(LEASES, error)
        else:
            self.count.observed.set()
            self.reporter.well(LEASES)
        return True

    def _count(self) -> bool:
        self.count.store_when_observed(COUNT_WAIT_S)
        return True

    def _guarded(self, work: Callable[[], bool], ends: Event) -> None:
        """Repeats `work` while it returns true. A defect is reported and does not end the thread; if it cannot be
        reported, the process ends."""
        goes_on = True
        try:
            while goes_on and not ends.is_set():
                try:
                    goes_on = work()
                except Exception as error:
                    self.reporter.trouble(None, as_lithify_error(error, "a step of the cleaner"))
                    ends.wait(AFTER_A_DEFECT_S)
        except Exception as error:
            self.stop.fail(as_lithify_error(error, "its events cannot be written"))


def _started(*works: Callable[[], None]) -> list[Thread]:
    threads = [Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    return threads


def _joined(threads: list[Thread], timeout_s: float) -> bool:
    """Waits for all of them together; returns whether all have ended."""
    ended = Event()

    def join() -> None:
        for thread in threads:
            thread.join()
        ended.set()

    Thread(target=join, daemon=True).start()
    return ended.wait(timeout_s)


def make_cleaner(
    warehouse: Warehouse,
    engine: RewriteEngine,
    leases: LeaseKeeper,
    options: CleanerOptions,
    stop: Stop,
    listener: EventListener,
) -> Cleaner:
    """A cleaner that takes steps, under leases that a keeper renews."""
    reporter = EventReporter(warehouse.clock, options.cleaner_id, listener)
    failures = Failures(warehouse, reporter.trouble)
    finder = WorkFinder(warehouse, failures, reporter)
    rounds = Rounds(warehouse, engine, leases, failures, finder, reporter, options.limits, stop)
    chores = Chores(warehouse, leases, finder, reporter, f"role:upkeep@{options.scope}", options.sweep_interval_ms)
    return Cleaner(warehouse.clock, finder, rounds, chores, reporter, options.interval_ms, options.threads)


def make_loop(
    warehouse: Warehouse,
    engine: RewriteEngine,
    coordination: Coordination,
    options: CleanerOptions,
    listener: EventListener,
) -> Loop:
    """A cleaner with its threads, not started yet."""
    stop = Stop()
    owner = f"{options.cleaner_id}/{warehouse.clock.new_id()}"
    leases = LeaseKeeper(coordination, owner, options.lease_ms, warehouse.clock.monotonic_ms)
    cleaner = make_cleaner(warehouse, engine, leases, options, stop, listener)
    count = CleanerCount(warehouse.store, coordination, leases, options.scope)
    return Loop(cleaner, leases, cleaner.reporter, stop, options, coordination, count)
