"""One pass over one topic of a replica: it copies what the replica lacks, and notes how that went.

    begin ─► mirror ─► caught up       noted, the next error is its first one; positions that are due are stored
                   ─► asked to stop    reported; what was copied is used by the next pass
                   ─► failed           noted with the time of the next try, which is later each time
                   ─► no such source   a topic that was promoted or deleted at the target is forgotten

A pass stops when the daemon does, when its lease is lost, and when its definition is paused, removed or replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from zlib import crc32

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.daemons.replicas.context import OpenGroups
from lithify.daemons.replicas.groups import PositionsPass
from lithify.daemons.replicas.notes import Key, ProgressNotes
from lithify.daemons.replicas.replica_rate import SharedThrottle
from lithify.daemons.replicas.reporter import ReplicaReporter
from lithify.daemons.stop import Stop
from lithify.errors import LithifyError, UnknownTopicError
from lithify.errors.defects import as_lithify_error
from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.replica_progress import ReplicaStanding, TopicProgress
from lithify.ports.source import StopAsked
from lithify.ports.store import Warehouse
from lithify.reports.replicas.replica_events import ReplicaEventKind
from lithify.rules.lifecycle.replicas import check_replicates, is_current
from lithify.rules.schedule.replication import retry_after_ms
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror

ERROR_LENGTH = 1_000
"""Of an error, how much is noted."""
TELL_MS = 5_000
"""Between two notes and events of a copy that is under way."""


@dataclass(frozen=True, slots=True)
class DaemonParts:
    """What all passes of a daemon share."""

    source: Warehouse
    groups: OpenGroups
    where: str
    """The warehouse of the source, for people."""
    leases: LeaseKeeper
    notes: ProgressNotes
    reporter: ReplicaReporter
    stop: Stop
    daemon_id: str
    current: Callable[[str], ReplicaDefinition | None]
    """The definition of a name as it was read last."""
    throttle: Callable[[ReplicaDefinition], SharedThrottle]


@dataclass(frozen=True, slots=True)
class Item:
    """A topic of a replica whose pass is due."""

    definition: ReplicaDefinition
    name: TopicName
    is_first: bool
    """Whether the target has no such topic yet."""
    behind_since_ms: int
    positions: PositionsPass | None = None
    """The positions of groups, where the definition wants them."""

    @property
    def has_due_positions(self) -> bool:
        return self.positions is not None and self.positions.is_due

    @property
    def key(self) -> Key:
        return self.definition.name, self.name

    @property
    def lease(self) -> str:
        return self.definition.lease(self.name)


class ReplicaPass:
    """One pass. `run` is called once."""

    def __init__(self, parts: DaemonParts, target: Warehouse, item: Item) -> None:
        self._parts, self._target, self._item = parts, target, item
        self._before = parts.notes.of(item.key)
        self._reported_ms: int | None = None
        self._groups_error = _groups_error(item, self._before)

    def is_caught_up(self) -> bool:
        """Whether there is nothing to do; anything unusual is left to `run`. Needs no lease."""
        if self._item.has_due_positions or (self._before is not None and self._before.error is not None):
            return False
        try:
            theirs, ours = self._parts.source.store.load(self._item.name), self._target.store.load(self._item.name)
            known = check_replicates(theirs, self._parts.where, ours)
        except Exception:
            return False
        if not is_current(known, theirs, compact=self._item.definition.compact):
            return False
        self._parts.notes.note([self._noted(ReplicaStanding.REPLICATING, version=known.version)])
        return True

    def run(self) -> bool | None:
        """Whether the replica has caught up; None if it was asked to stop. Raises `CoordinationError`."""
        parts, item = self._parts, self._item
        request = MirrorRequest(parts.where, self._acquire, self._stops, self._tell, item.definition.compact)
        if item.positions is not None:
            request = replace(request, load=item.positions.load)
        try:
            report = mirror(parts.source, self._target, item.name, request)
        except UnknownTopicError as error:
            return self._without_source(error)
        except Exception as error:
            return self._failed(as_lithify_error(error, f"the replica of {item.name}"))
        if report.stopped:
            parts.reporter.report(ReplicaEventKind.ABANDONED, *item.key, reason=self._why_stopped())
            return None
        if item.positions is not None and item.positions.is_copied:
            self._store(item.positions)
        parts.notes.note([self._noted(ReplicaStanding.REPLICATING, version=report.replica_version)])
        if report.changed:
            parts.reporter.copied(*item.key, report)
        return True

    def _store(self, positions: PositionsPass) -> None:
        """Stores the positions, unless they are not to be copied any more. What fails does not fail the pass."""
        current = self._parts.current(self._item.definition.name)
        if self._stops() or current is None or not current.sync_groups:
            return
        positions.store()
        about = f"the groups at {self._item.definition.target}"
        if positions.error is None:
            self._groups_error = None
            self._parts.reporter.well(about)
        else:
            self._groups_error = str(positions.error)[:ERROR_LENGTH]
            self._parts.reporter.outage(about, positions.error)

    def _acquire(self, size_bytes: int) -> None:
        """Waits for the rate of the replica. Raises `StopAsked`."""
        parts = self._parts
        if not parts.throttle(self._item.definition).acquire(size_bytes, self._stops, parts.source.clock.sleep):
            raise StopAsked

    def _stops(self) -> bool:
        return bool(self._why_stopped())

    def _why_stopped(self) -> str:
        """Why the pass is to stop; empty if it is not."""
        parts, item = self._parts, self._item
        if parts.stop.gives_up.is_set():
            return "the daemon is stopping"
        if not item.definition.is_as(parts.current(item.definition.name)):
            return "the replica was paused or removed"
        if not parts.leases.holds(item.lease):
            return "the lease was lost: another daemon copies the topic"
        return ""

    def _tell(self, done_bytes: int, all_bytes: int) -> None:
        """Notes and reports how far a copy is, every few seconds. Called from one thread at a time."""
        now_ms = self._parts.source.clock.monotonic_ms()
        if self._reported_ms is not None and now_ms - self._reported_ms < TELL_MS and done_bytes < all_bytes:
            return
        self._reported_ms = now_ms
        has_one = self._before is not None and self._before.version is not None
        is_first = not has_one and (self._item.is_first or self._before is not None)
        standing = ReplicaStanding.COPYING if is_first else ReplicaStanding.REPLICATING
        noted = replace(
            self._noted(standing, version=None if self._before is None else self._before.version),
            behind_since_ms=self._item.behind_since_ms,
            copied_bytes=done_bytes,
            to_copy_bytes=all_bytes,
        )
        self._parts.notes.note([noted])
        kind = ReplicaEventKind.COPYING
        self._parts.reporter.report(kind, *self._item.key, copied_bytes=done_bytes, to_copy_bytes=all_bytes)

    def _without_source(self, error: UnknownTopicError) -> bool:
        """The source has no such topic: the replica remains, until it is promoted or deleted."""
        item = self._item
        try:
            state = self._target.store.load(item.name)
            is_left = state.replica is not None
        except UnknownTopicError:
            is_left = False
        except Exception as load_error:
            return self._failed(as_lithify_error(load_error, f"the replica of {item.name}"))
        if not is_left and item.definition.topic is None:
            self._parts.notes.forget(item.key)
            return True
        left = "; the copied records remain" if is_left else ""
        gone = UnknownTopicError(
            f"{item.name}: the topic no longer exists at the source{left}",
            hint=f"end this replica with `lithify replica remove {item.definition.name}`; at the target, `lithify "
            f"replica promote {item.name} --yes` makes it a topic of its own, and `lithify topic delete` deletes "
            "it",
        )
        return self._failed(gone)

    def _failed(self, error: LithifyError) -> bool:
        noted = failure_of(self._item, self._before, error, self._parts)
        self._parts.notes.note([noted])
        self._parts.reporter.failed(noted)
        return False

    def _noted(self, standing: ReplicaStanding, version: int | None) -> TopicProgress:
        parts, item = self._parts, self._item
        now_ms = parts.source.clock.now_ms()
        return TopicProgress(*item.key, standing, now_ms, parts.daemon_id, version, groups_error=self._groups_error)


def failure_of(item: Item, before: TopicProgress | None, error: LithifyError, parts: DaemonParts) -> TopicProgress:
    """What is noted of a topic once its pass has failed (again)."""
    failures = 1 if before is None else before.failures + 1
    now_ms = parts.source.clock.now_ms()
    chance = crc32(f"{item.lease} {failures} {parts.daemon_id}".encode()) / 2**32
    return TopicProgress(
        *item.key,
        ReplicaStanding.FAILED,
        now_ms,
        parts.daemon_id,
        version=None if before is None else before.version,
        behind_since_ms=item.behind_since_ms,
        failures=failures,
        error=str(error)[:ERROR_LENGTH],
        retry_ms=now_ms + retry_after_ms(failures, chance),
        groups_error=_groups_error(item, before),
    )


def _groups_error(item: Item, before: TopicProgress | None) -> str | None:
    """The error of an earlier pass, until a pass succeeds."""
    return before.groups_error if before is not None and item.definition.sync_groups else None
