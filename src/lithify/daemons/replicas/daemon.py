"""The daemon that keeps replicas up: looks, a worker for each target, and an orderly end.

    main      waits for the end, or for a signal; checks that looks make progress
    look      definitions and the source's change tokens ─► an offer to the worker of each target, every interval
    workers   one for each target, with threads of its own (`target_worker.py`)
    heartbeat renews the leases, reads the definitions and stores the notes, a few times in each lease

The supervisor keeps them running, and ends them (`daemons/supervisor.py`).
"""

from __future__ import annotations

from contextlib import suppress
from itertools import groupby
from threading import Event, Lock

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.daemons.outages import LEASES
from lithify.daemons.replicas.context import ReplicaContext
from lithify.daemons.replicas.daemon_options import DaemonOptions, EventListener
from lithify.daemons.replicas.groups import TokensOfSource
from lithify.daemons.replicas.notes import ProgressNotes
from lithify.daemons.replicas.passes import DaemonParts
from lithify.daemons.replicas.replica_rate import SharedThrottle
from lithify.daemons.replicas.reporter import LOOKS, ReplicaReporter
from lithify.daemons.replicas.status import daemon_scope
from lithify.daemons.replicas.target_worker import Offer, TargetWorker
from lithify.daemons.stop import Stop
from lithify.daemons.supervisor import HEARTBEATS_PER_LEASE, TICK_S, Looks, Supervisor
from lithify.errors import CoordinationError
from lithify.errors.defects import as_lithify_error
from lithify.metrics.figures import ReplicaFigures
from lithify.model.cleaner_note import CleanerNote
from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.reports.replicas.replica_events import ReplicaEventKind

STORE_MS = 2_000
"""The longest time between two heartbeats: so soon the others see notes, and a pass that its replica was paused."""


class ReplicaDaemon:
    """One process that keeps the replicas of one warehouse up. `run` is called once."""

    def __init__(self, context: ReplicaContext, options: DaemonOptions, listener: EventListener) -> None:
        self.stop = Stop()
        self.failed = False
        """Whether, with `once`, a replica has not caught up."""
        clock = context.warehouse.clock
        self._context, self._options, self._clock = context, options, clock
        self._reporter = ReplicaReporter(clock, options.daemon_id, listener)
        self._supervisor = Supervisor("the replica daemon", self.stop, clock.monotonic_ms, self._reporter.defect)
        owner = f"{options.daemon_id}/{clock.new_id()}"
        self._leases = LeaseKeeper(context.replicas.leases, owner, options.lease_ms, clock.monotonic_ms)
        self._notes = ProgressNotes(context.replicas)
        self._tokens = TokensOfSource(context.groups, clock.monotonic_ms, self._reporter)
        self._workers: dict[str, TargetWorker] = {}
        self._current: dict[str, ReplicaDefinition] = {}
        self._throttles: dict[tuple[str, int], SharedThrottle] = {}
        self._looks, self._last_error = 0, ""
        self._looked_ms: int | None = None
        self._started_ms = self._noted_ms = clock.now_ms()
        self._lock = Lock()

    def run(self, *, once: bool = False) -> bool:
        """Runs until a request to stop, or with `once` until every replica has caught up or failed.

        Returns whether all threads have ended. Raises `CoordinationError`, of an outage only with `once`.
        """
        if not self._reached(waits=not once):
            self._report_stopped()
            return True
        self._reporter.report(
            ReplicaEventKind.STARTED,
            id=self._options.daemon_id,
            threads=self._options.threads,
            interval_ms=self._options.interval_ms,
            lease_ms=self._options.lease_ms,
        )
        work = self._until_caught_up if once else self._for_ever
        looking = self._supervisor.start(work, self.stop.asked)
        self._supervisor.start(self._heartbeat, self.stop.gives_up)
        looks = Looks("the replicas", self._options.interval_ms, lambda: self._looks, lambda: self._last_error)
        self._supervisor.watch([looking], None if once else looks)
        self.stop.ask("every replica has caught up, is paused or has failed")
        for worker in self._all_workers():
            worker.end()
        return self._supervisor.end(self._idle_within, self._leave, self._report_stopped)

    def figures(self) -> ReplicaFigures:
        """What it knows now, from memory."""
        topics, failed, behind = 0, 0, dict[str, int]()
        for worker in self._all_workers():
            topics += len(worker.outcome.wanted)
            failed += len(worker.outcome.failed)
            for (_, name), since_ms in dict(worker.behind_ms).items():
                behind[str(name)] = min(since_ms, behind.get(str(name), since_ms))
        return ReplicaFigures(self._looked_ms, topics, failed, behind)

    def _leave(self) -> None:
        with suppress(CoordinationError):
            self._notes.store()
            self._context.replicas.leases.drop_note(_note_id(self._options))
        self._leases.leave()

    def _report_stopped(self) -> None:
        with suppress(OSError):  # the reader of the events may have closed the pipe
            self._reporter.report(ReplicaEventKind.STOPPED, reason=self.stop.reason)

    def _reached(self, *, waits: bool) -> bool:
        """Reads the definitions, once the database is there; False after an earlier request to stop."""
        while True:
            try:
                self._refresh()
                self._leases.observe()
                self._reporter.well(LEASES)
                return True
            except CoordinationError as error:
                if not (waits and error.is_outage):
                    raise
                self._reporter.outage(LEASES, error)
            if self.stop.asked.wait(TICK_S):
                return False

    def _idle_within(self, seconds: float) -> bool:
        """Whether all passes have ended; waits until then, or until they are to give up."""
        ends = Event() if self.stop.gives_up.is_set() else self.stop.gives_up
        ends_ms = self._clock.monotonic_ms() + round(seconds * 1000)
        while not all(worker.is_idle for worker in self._all_workers()):
            if self._clock.monotonic_ms() >= ends_ms or ends.wait(TICK_S / 2):
                return False
        return True

    def _for_ever(self) -> bool:
        begun_ms = self._clock.monotonic_ms()
        self._look_or_report(ignores_waits=False)
        took_ms = self._clock.monotonic_ms() - begun_ms
        self.stop.asked.wait(max(self._options.interval_ms - took_ms, took_ms, 1) / 1000)
        return True

    def _until_caught_up(self) -> bool:
        """A look of `once`; False when every topic has had a pass of this daemon, or failed."""
        if not self._look_or_report(ignores_waits=self._looks == 0):
            self.failed = True
            return False
        while not all(worker.is_idle for worker in self._all_workers()):
            if self.stop.asked.wait(TICK_S):
                return False
        outcomes = [worker.outcome for worker in self._all_workers()]
        self.failed = self._tokens.failed or any(outcome.failed or outcome.without_positions for outcome in outcomes)
        if not any(outcome.wanted - outcome.caught_up - outcome.failed for outcome in outcomes):
            return False
        self.stop.asked.wait(self._options.interval_ms / 1000)  # other daemons copy the rest
        return True

    def _look_or_report(self, *, ignores_waits: bool) -> bool:
        try:
            self._look(ignores_waits)
        except Exception as error:  # the next look is tried
            look_error = as_lithify_error(error, "the check of the replicas")
            self._last_error = str(look_error)
            self._reporter.outage(LEASES if isinstance(look_error, CoordinationError) else LOOKS, look_error)
            return False
        self._reporter.well(LOOKS)
        self._looks, self._last_error = self._looks + 1, ""
        self._looked_ms = self._clock.now_ms()
        return True

    def _look(self, ignores_waits: bool) -> None:
        """Offers the replicas of each target, and what the source has, to its worker."""
        self._refresh()
        self._notes.refresh()
        active = sorted((d for d in self._current.values() if not d.paused), key=lambda d: (d.target, d.name))
        streams: dict[str, dict[TopicName, str | None]] = {}
        for name, token in self._context.warehouse.store.change_tokens() if active else ():
            streams.setdefault(name.stream, {})[name] = token
        tokens = self._tokens.look(active, now=ignores_waits)
        offers = {
            target: Offer(tuple(some), streams, ignores_waits, tokens)
            for target, some in groupby(active, key=lambda d: d.target)
        }
        for target, worker in list(self._workers.items()):
            if target not in offers:
                worker.end()
                del self._workers[target]
        for target, offer in offers.items():
            self._worker(target).offer(offer)
        self._note_presence()

    def _worker(self, target: str) -> TargetWorker:
        """The worker of a target, with its thread."""
        if target not in self._workers:
            parts = DaemonParts(
                self._context.warehouse,
                self._context.groups,
                self._context.scope.where,
                self._leases,
                self._notes,
                self._reporter,
                self.stop,
                self._options.daemon_id,
                self._current_definition,
                self._throttle,
            )
            worker = TargetWorker(parts, self._context.open_place, target, self._options.threads)
            self._workers[target] = worker
            self._supervisor.start(worker.run, self.stop.gives_up)
        return self._workers[target]

    def _all_workers(self) -> list[TargetWorker]:
        return list(self._workers.values())

    def _refresh(self) -> None:
        """Reads the definitions, so that running passes notice those that were changed. Raises `CoordinationError`."""
        self._current = {definition.name: definition for definition in self._context.replicas.definitions()}
        known = {(definition.name, definition.created_ms) for definition in self._current.values()}
        with self._lock:
            self._throttles = {key: throttle for key, throttle in self._throttles.items() if key in known}

    def _current_definition(self, name: str) -> ReplicaDefinition | None:
        return self._current.get(name)

    def _throttle(self, definition: ReplicaDefinition) -> SharedThrottle:
        """The one that all passes of a replica share."""

        def rate_bytes() -> int | None:
            return self._current.get(definition.name, definition).throttle_bytes

        with self._lock:
            key = definition.name, definition.created_ms
            return self._throttles.setdefault(key, SharedThrottle(rate_bytes, self._clock.monotonic_ms))

    def _heartbeat(self) -> bool:
        wait_ms = min(STORE_MS, self._options.lease_ms // HEARTBEATS_PER_LEASE)
        if self.stop.gives_up.wait(wait_ms / 1000):
            return False
        try:
            renewal = self._leases.renew()
            if renewal.error is not None:
                raise renewal.error
            self._leases.observe()
            self._refresh()
            self._notes.store()
            if self._looks:
                self._note_presence()
        except CoordinationError as error:
            self._reporter.outage(LEASES, error)
        else:
            self._reporter.well(LEASES)
        return True

    def _note_presence(self) -> None:
        """Notes that this daemon is there: for `replica status`, to which each note has to look different."""
        with self._lock:
            self._noted_ms = max(self._clock.now_ms(), self._noted_ms + 1)
            noted_ms = self._noted_ms
        options, scope = self._options, daemon_scope(self._context.replicas.scope)
        note = CleanerNote(_note_id(options), scope, options.interval_ms, self._started_ms, noted_ms)
        self._context.replicas.leases.put_note(note)


def _note_id(options: DaemonOptions) -> str:
    """Beside the ids of cleaners, whose notes are in the same table."""
    return f"replicas:{options.daemon_id}"
