"""Runs a cleaner: threads that take steps, one that renews the leases, and an orderly end.

    main      waits for the end, or for a signal; checks that looks make progress
    look      looks at the topics, wait, look ...     a thread of its own, as a round may take hours
    worker    step, step, step, wait, step ...        as many as there are threads
    heartbeat renews the leases, a few times in each lease
    count     counts the running cleaners as often, for a rate that they share

The supervisor keeps them running, and ends them (`daemons/supervisor.py`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.coordination.leases.outcomes import Refused, Registered, Registration, Waiting
from lithify.daemons.cleaner.chores import Chores
from lithify.daemons.cleaner.cleaner import Cleaner, Did, Waits
from lithify.daemons.cleaner.cleaner_count import CleanerCount
from lithify.daemons.cleaner.cleaner_options import CleanerOptions, EventListener
from lithify.daemons.cleaner.event_reporter import EventReporter
from lithify.daemons.cleaner.failures import Failures
from lithify.daemons.cleaner.note_writer import NoteWriter
from lithify.daemons.cleaner.rounds import Rounds
from lithify.daemons.cleaner.work_finder import WorkFinder
from lithify.daemons.outages import LEASES
from lithify.daemons.stop import Stop
from lithify.daemons.supervisor import HEARTBEATS_PER_LEASE, Looks, Step, Supervisor, joined
from lithify.errors import ConflictError, CoordinationError, LithifyError
from lithify.metrics.figures import CleanerFigures
from lithify.ports.engine import RewriteEngine
from lithify.ports.leases import Coordination
from lithify.ports.store import Warehouse
from lithify.reports.events import EventKind
from lithify.service.look.assessed_topic import SharedTopics

REGISTER_EVERY_S = 0.5
COUNT_WAIT_S = 5.0


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
        """Runs until a request to stop, or with `once` until there is nothing to do.

        Returns whether all threads have ended. Raises `RefusedError` if a cleaner with this id is running,
        `CoordinationError` if the database of leases cannot be used, or with `once` is away.
        """
        if not self._registered(waits=not once):
            self._report_stopped()
            return True
        work = self._until_idle if once else self._for_ever
        supervisor = Supervisor("the cleaner", self.stop, self.cleaner.clock.monotonic_ms, self._tell_defect)
        steps: list[Step] = [work] * self.options.threads
        if not once:
            notes = NoteWriter(self.coordination, self.options, self.reporter, self.cleaner.clock.now_ms())
            steps.append(partial(self._look, notes))
        workers = [supervisor.start(step, self.stop.asked) for step in steps]
        for beat in (self._heartbeat, self._count):
            supervisor.start(beat, self.stop.gives_up)
        cleaner = self.cleaner
        looks = Looks("the topics", self.options.interval_ms, lambda: cleaner.look_steps, lambda: cleaner.last_error)
        supervisor.watch(workers, looks)
        self.stop.ask("there is nothing left to do")
        return supervisor.end(partial(joined, workers), self._leave, self._report_stopped)

    def share(self, topics: SharedTopics) -> None:
        """What it reads of topics is shared with other watches of this process."""
        self.cleaner.finder.watch.shared = topics

    def figures(self) -> CleanerFigures:
        """What it knows now, from memory."""
        cleaner = self.cleaner
        return CleanerFigures(
            looked_ms=cleaner.last_look_ms,
            topics=cleaner.finder.figures.all(),
            running_topics=cleaner.running_topics,
            held_leases=self.leases.held(),
            cleaners=self.leases.cleaners(),
        )

    def _tell_defect(self, error: LithifyError) -> None:
        self.reporter.error(None, error)

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

        False after a request to stop meanwhile.
        """
        while not isinstance(registration := self._registration(waits=waits), Registered):
            if isinstance(registration, Refused):
                raise registration.error
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
            registration = self.leases.register(self.options.cleaner_id)
        except CoordinationError as error:
            if not (waits and error.is_outage):
                raise
            self.reporter.outage(LEASES, error)
            return Waiting(0)
        self.reporter.well(LEASES)
        return registration

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
            self.stop.fail(ConflictError(f"another cleaner has taken over the id of this one: {renewal.replaced_by}"))
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
    failures = Failures(warehouse, reporter.error)
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
