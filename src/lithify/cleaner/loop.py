"""Keeps a cleaner going: threads that take steps, one that keeps the leases, and a clean end.

    main      waits for the end, or for a signal
    worker    step, step, step, wait, step ...        as many as there are threads
    beats     renews the leases, a few times in each lease

When it is to stop, no new step begins; rounds under way have `FINISH_S` to end by themselves, are
then given up, and whatever hangs after `GIVE_UP_S` is left to the end of the process: a round that
is not committed has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Thread

from lithify.cleaner.cleaner import Cleaner, Waits
from lithify.cleaner.lease_keeper import LeaseKeeper, Refused, Registered
from lithify.cleaner.options import CleanerOptions
from lithify.cleaner.stop import Stop
from lithify.cleaner.telling import Teller
from lithify.coordination import Coordination
from lithify.errors import CoordinationError, LithifyError
from lithify.model.cleaning import EventKind

FINISH_S = 4.0
GIVE_UP_S = 4.0
BEATS_PER_LEASE = 6
REGISTER_EVERY_S = 0.5
AFTER_A_DEFECT_S = 5.0
"""How long a thread waits that met an error that nobody foresaw."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One process of a cleaner."""

    cleaner: Cleaner
    leases: LeaseKeeper
    teller: Teller
    stop: Stop
    options: CleanerOptions
    coordination: Coordination

    def run(self, *, once: bool = False) -> bool:
        """Goes on until it is asked to stop, or `once`, until there is nothing to do.

        Returns whether all threads have ended. Raises `RefusedError` where a cleaner with this id is
        running, `CoordinationError` where the database of leases cannot be reached.
        """
        if not self._registered():
            return True
        work = self._until_idle if once else self._for_ever
        workers = [Thread(target=self._guarded, args=(work,), daemon=True) for _ in range(self.options.threads)]
        beats = Thread(target=self._beat, daemon=True)
        for thread in (*workers, beats):
            thread.start()
        while any(worker.is_alive() for worker in workers) and not self.stop.asked.wait(0.1):
            pass
        self.stop.ask("there is nothing left to do")
        ended = _joined(workers, FINISH_S)
        if not ended:
            self.stop.gives_up.set()
            ended = _joined(workers, GIVE_UP_S)
        self.leases.leave()
        self.teller.say(EventKind.STOPPED, reason=self.stop.reason)
        return ended

    def _registered(self) -> bool:
        """Waits until no other cleaner has this id, at most for a lease; False if it is asked to stop meanwhile."""
        while not isinstance(found := self.leases.register(self.options.cleaner_id), Registered):
            if isinstance(found, Refused):
                raise found.error
            if self.stop.asked.wait(REGISTER_EVERY_S):
                return False
        options = self.options
        self.teller.say(
            EventKind.STARTED,
            id=options.cleaner_id,
            threads=options.threads,
            interval_ms=options.interval_ms,
            lease_ms=options.lease_ms,
            shared=self.coordination.shared,
        )
        return True

    def _for_ever(self) -> bool:
        step = self.cleaner.step()
        if isinstance(step, Waits):
            self.stop.asked.wait(step.ms / 1000)
        return True

    def _until_idle(self) -> bool:
        """One look, and what it has found."""
        looked = self.cleaner.looks + self.cleaner.failed_looks > 0
        step = self.cleaner.step(may_look=not looked)
        if isinstance(step, Waits) and looked and not self.cleaner.is_looking:
            return False
        if isinstance(step, Waits):
            self.stop.asked.wait(step.ms / 1000)
        return True

    def _guarded(self, work: Callable[[], bool]) -> None:
        """A defect stops no thread for good."""
        goes_on = True
        while goes_on and not self.stop.asked.is_set():
            try:
                goes_on = work()
            except Exception as error:
                self.teller.trouble(None, LithifyError(f"{type(error).__name__}: {error}", hint="this is a defect"))
                self.stop.asked.wait(AFTER_A_DEFECT_S)

    def _beat(self) -> None:
        while not self.stop.gives_up.wait(self.options.lease_ms / 1000 / BEATS_PER_LEASE):
            beat = self.leases.beat()
            if beat.error is not None:
                self.teller.trouble(None, beat.error)
                continue
            if beat.replaced_by is not None:
                self.stop.ask(f"another cleaner has the id of this one now: {beat.replaced_by}", failed=True)
            try:
                self.leases.observe()
            except CoordinationError as error:
                self.teller.trouble(None, error)


def _joined(threads: list[Thread], timeout_s: float) -> bool:
    """Waits for all of them together; returns whether all have ended."""
    ended = Event()

    def join() -> None:
        for thread in threads:
            thread.join()
        ended.set()

    Thread(target=join, daemon=True).start()
    return ended.wait(timeout_s)
