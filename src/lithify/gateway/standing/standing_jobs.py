"""The standing jobs of a warehouse on one gateway: leases, threads, and notes in the database.

    beat   renews the leases, reads the jobs, takes leases, stores notes     every 2 s; may wait for the database
    step   starts and stops processes, and passes on how long leases last    5 times a second; waits for nothing

A process ends before its lease does, without this gateway's help (`guard.py`): SIGTERM comes a third of a lease before
the end of the lease, SIGKILL a little before it. Two processes of one job would only waste work: what each commits is
decided by the gate, as everywhere. After a request to stop, `step` ends the processes, and `close` those that remain.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from contextlib import suppress
from threading import Event, Lock, Thread, current_thread, main_thread

from lithify.coordination.leases.gateways.jobs_sql import SqlStandingJobs
from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.daemons.outages import LEASES
from lithify.daemons.stop import Stop
from lithify.daemons.supervisor import HEARTBEATS_PER_LEASE, Supervisor, joined, started
from lithify.errors import CoordinationError
from lithify.gateway.standing.child import LOST_MS
from lithify.gateway.standing.options import JobListener, StandingOptions
from lithify.gateway.standing.plan import Sight, claims, due_in_ms
from lithify.gateway.standing.reporter import JobReporter
from lithify.gateway.standing.runs import ENDING_MS, Runs
from lithify.model.jobs.definition import JobState, StandingJob, StoredJob
from lithify.ports.clock import Clock

BEAT_MS = 2_000
"""The longest time between two beats: so soon a job is paused."""
TICK_S = 0.2
HANGS_MS = 1_000
"""After so long without a `step`, it hangs or has ended, as where nobody reads what this program prints."""
FAREWELL_S = 1.0


class StandingJobs:
    """The jobs that one gateway runs, until its `stop` is asked for. `start` and `close` are called once."""

    def __init__(
        self, jobs: SqlStandingJobs, clock: Clock, options: StandingOptions, stop: Stop, listener: JobListener
    ) -> None:
        self._store, self._clock, self._options, self._stop = jobs, clock, options, stop
        self._owner = f"{options.gateway}/{clock.new_id()}"
        self._prefix = f"{jobs.scope}/"
        self._leases: LeaseKeeper | None = None
        """None until there is a job: a gateway without any writes nothing."""
        self._reporter = JobReporter(clock, options.gateway, listener)
        self._runs = Runs(options, clock, self._reporter, self._keep_note)
        self._stepped_ms = clock.monotonic_ms()
        """When `step` was last done."""
        self._closed = Event()
        self._threads: list[Thread] = []
        self._lock = Lock()
        self._jobs: dict[str, StoredJob] = {}
        self._taken: set[str] = set()
        """Jobs whose leases were taken, until they are released."""
        self._over: set[str] = set()
        """Taken jobs that are to be released."""
        self._notes: dict[str, tuple[StandingJob, JobState]] = {}
        self._due: dict[str, tuple[StoredJob, int]] = {}
        """From when on a job that no gateway has is due, by the monotonic clock. Of `beat` alone."""

    def start(self) -> None:
        """Begins, on threads of its own."""
        if current_thread() is main_thread() and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else, as a parent may leave it, exit codes are lost
        self._stepped_ms = self._clock.monotonic_ms()
        supervisor = Supervisor("standing jobs", self._stop, self._clock.monotonic_ms, self._reporter.defect)
        self._threads = [supervisor.start(step, self._closed) for step in (self.step, self.beat)]

    def close(self) -> bool:
        """Waits for the processes' ends, which begin with the request to stop, then kills the rest.

        It releases all leases. Returns whether every process has ended in order. It takes 10 s at most.
        """
        self._stop.ask("the standing jobs end")
        ends_ms = self._clock.monotonic_ms() + ENDING_MS + LOST_MS // 4
        while self._runs.names() and (now_ms := self._clock.monotonic_ms()) < ends_ms:
            if now_ms - self._stepped_ms > HANGS_MS:
                self._runs.end()
            self._clock.sleep(TICK_S / 4)
        orderly = not self._runs.names()
        self._runs.kill()
        self._closed.set()
        joined([*self._threads, started(self._leave)], FAREWELL_S)
        return orderly

    def running(self) -> tuple[str, ...]:
        """The jobs that this gateway runs now, by name."""
        return self._runs.names()

    def events(self, name: str) -> list[dict[str, object]]:
        """The last 100 lines of a job's processes on this gateway, oldest first: JSON, or anything else as `text`."""
        return self._runs.events(name)

    def step(self) -> bool:
        """Starts and stops processes as the last `beat` and the leases demand. Never waits for the database."""
        with self._lock:
            jobs, taken = self._jobs, self._taken - self._over
        held = {name: until_ms for name in taken if (until_ms := self._held_until_ms(name)) is not None}
        over = self._runs.step(jobs, taken, held, ending=self._stop.asked.is_set())
        self._stepped_ms = self._clock.monotonic_ms()
        with self._lock:
            self._over |= over
        self._closed.wait(TICK_S)
        return True

    def beat(self) -> bool:
        """Renews leases, reads what is to be done, and stores what was done. Waits for the database.

        Not while `step` stalls, as where nobody reads what this program prints: the leases end, as the processes do.
        """
        if self._closed.wait(min(BEAT_MS, self._options.lease_ms // HEARTBEATS_PER_LEASE) / 1000):
            return False
        if self._clock.monotonic_ms() - self._stepped_ms > self._options.lease_ms:
            return True
        try:
            self._share()
        except CoordinationError as error:
            self._reporter.outage(LEASES, error)
        else:
            self._reporter.well(LEASES)
        return True

    def _share(self) -> None:
        leases = self._leases
        if leases is None:
            if not self._read():
                return
            clock, lease_ms = self._clock, self._options.lease_ms
            leases = LeaseKeeper(self._store.leases, self._owner, lease_ms, clock.monotonic_ms, self._prefix)
            self._leases = leases
        elif (error := leases.renew().error) is not None:
            if leases.held() == 0:
                self._store.make_leases()
            raise error
        leases.observe()
        self._store_notes(leases)
        stored = self._read()  # after the leases: a job that is free was noted before it was released
        if self._stop.asked.is_set() or self._is_new(leases):
            return
        wanted = {self._lease(name): name for name in self._wanted(leases, stored)}
        if taken := leases.take(wanted.keys()):
            self._keep(leases, {wanted[lease]: stored[wanted[lease]] for lease in taken})

    def _keep(self, leases: LeaseKeeper, taken: Mapping[str, StoredJob]) -> None:
        """Has the jobs run whose leases were taken, as they were read, but for those that have changed since.

        Another gateway may have run such a job meanwhile: the next beat decides when it is due.
        """
        try:
            stored = self._read()
        except CoordinationError:
            leases.release([self._lease(name) for name in taken])  # which `take` would not find free any more
            raise
        changed = {name for name, one in taken.items() if stored.get(name) != one}
        leases.release([self._lease(name) for name in changed])
        with self._lock:
            self._taken |= taken.keys() - changed

    def _read(self) -> dict[str, StoredJob]:
        stored = {one.job.name: one for one in self._store.jobs()}
        with self._lock:
            self._jobs = stored
        return stored

    def _is_new(self, leases: LeaseKeeper) -> bool:
        """Whether the others do not know this gateway yet: then it takes nothing, as they all may just begin."""
        presence = f"{self._prefix}gateway/{self._owner}"
        if leases.holds(presence):
            return False
        leases.take([presence])
        return True

    def _wanted(self, leases: LeaseKeeper, stored: Mapping[str, StoredJob]) -> tuple[str, ...]:
        """The jobs whose leases are to be taken now."""
        others = {name for name, lease in leases.watched().items() if lease.left_ms > 0}
        now_ms, epoch_ms = self._clock.monotonic_ms(), self._clock.now_ms()
        with self._lock:
            here = set(self._taken)
        due: dict[str, tuple[StoredJob, int]] = {}
        for name, one in stored.items():
            if not one.job.paused and name not in here and self._lease(name) not in others:
                known = self._due.get(name)
                if known is None or known[0] != one:
                    known = one, now_ms + due_in_ms(one.job, one.state, epoch_ms)
                due[name] = known
        self._due = due
        free = {name: now_ms - due_ms for name, (_, due_ms) in due.items() if due_ms <= now_ms}
        elsewhere = sum(name.startswith(self._lease("")) for name in others)
        gateways = 1 + sum(name.startswith(f"{self._prefix}gateway/") for name in others)
        return claims(Sight(free, len(here), elsewhere, gateways), self._owner, self._options.lease_ms)

    def _store_notes(self, leases: LeaseKeeper) -> None:
        """Stores what happened, then releases the jobs whose runs are over."""
        with self._lock:
            over, notes = set(self._over), dict(self._notes)
        self._store.note([note for name, note in notes.items() if leases.holds(self._lease(name))])
        leases.release([self._lease(name) for name in over])
        with self._lock:
            self._notes = {name: note for name, note in self._notes.items() if notes.get(name) is not note}
            self._over -= over
            self._taken -= over

    def _leave(self) -> None:
        for thread in self._threads[:1]:
            thread.join()
        if self._leases is not None:
            with suppress(CoordinationError):
                self._store_notes(self._leases)
            self._leases.leave()

    def _held_until_ms(self, name: str) -> int | None:
        return None if self._leases is None else self._leases.held_until_ms(self._lease(name))

    def _lease(self, name: str) -> str:
        return f"{self._prefix}job/{name}"

    def _keep_note(self, job: StandingJob, state: JobState) -> None:
        with self._lock:
            self._notes[job.name] = (job, state)
