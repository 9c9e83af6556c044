"""What `lithify replica status` shows: every topic of every replica, as it is now.

    source, target      at which versions they are, and what is lacking          read now
    progress            copying or failed, since when behind, the next try       noted by a daemon
    notes of daemons    whether one runs                                         noted by each

Targets are read at the same time, so that one that does not answer delays no other; after its first error the other
topics of a target have the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby

from lithify.defects import as_lithify_error
from lithify.errors import LithifyError, UnknownStreamError, UnknownTopicError, UnusableEnvironmentError
from lithify.lifecycle.own_views import why_not_compacting
from lithify.lifecycle.replicas import check_replicates
from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.progress import ReplicaStanding, TopicProgress
from lithify.model.settings.units import format_time
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.replicas.groups import with_positions
from lithify.replicas.world import Place, ReplicaWorld
from lithify.reports.events import CleanerNote
from lithify.reports.replicas import ReplicaVerification
from lithify.reports.replicas.status import ReplicaStatus
from lithify.schedule.replication import is_running
from lithify.service.replica.mirror import lag
from lithify.service.replica.verify import verify_replica
from lithify.waits.parallel import parallel

TARGETS_AT_ONCE = 16
Progress = Mapping[tuple[str, TopicName], TopicProgress]


def daemon_scope(scope: str) -> str:
    """The scope that notes of daemons have, which are beside those of the cleaners of the warehouse."""
    return f"replicas@{scope}"


def replica_statuses(world: ReplicaWorld, name: str | None = None) -> tuple[ReplicaStatus, ...]:
    """All topics of one replica or of all. Raises `RefusedError` for an unknown one, or `CoordinationError`."""
    wanted = world.replicas.definitions() if name is None else (world.definition(name),)
    progress = {(noted.replica, noted.topic): noted for noted in world.replicas.progress()}
    now_ms = world.warehouse.clock.now_ms()
    look = _Look(world, progress, runs_daemon(world.replicas.leases.notes(), world.replicas.scope, now_ms), now_ms)
    by_target = sorted(wanted, key=lambda definition: definition.target)
    targets = [tuple(some) for _, some in groupby(by_target, key=lambda definition: definition.target)]
    found = [status for some in parallel(look.target, targets, TARGETS_AT_ONCE) for status in some]
    return tuple(sorted(found, key=lambda status: (status.name, status.topic or "")))


def verify_all(
    world: ReplicaWorld, definition: ReplicaDefinition, tell: Callable[[int, int], None]
) -> tuple[ReplicaVerification, ...]:
    """Holds every topic of a replica against its source, or by itself where the source has no such topic any more.

    Raises what `verify_replica` raises.
    """
    source, target = world.warehouse, world.open_place(definition.target).warehouse
    there = frozenset(source.store.topics())
    names = {noted.topic for noted in world.replicas.progress() if noted.replica == definition.name} | there
    if definition.topic is not None:
        names.add(TopicName(definition.stream, definition.topic))
    wanted = sorted(name for name in names if definition.covers(name))
    return tuple(verify_replica(source if name in there else None, target, name, tell) for name in wanted)


def runs_daemon(notes: Sequence[CleanerNote], scope: str, now_ms: int) -> bool:
    """Whether a daemon of the warehouse looks at its replicas."""
    ours = (note for note in notes if note.scope == daemon_scope(scope))
    return any(is_running(note.last_ms, note.interval_ms, now_ms) for note in ours)


def standing(definition: ReplicaDefinition, noted: TopicProgress | None, *, runs: bool) -> ReplicaStanding:
    """The state of the replica of a topic. One that failed stays so while no daemon runs: it needs a look."""
    if definition.paused:
        return ReplicaStanding.PAUSED
    if noted is None or (not runs and noted.standing is not ReplicaStanding.FAILED):
        return ReplicaStanding.WAITING
    return noted.standing


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at the replicas of a warehouse."""

    world: ReplicaWorld
    progress: Progress
    runs: bool
    now_ms: int

    def target(self, definitions: Sequence[ReplicaDefinition]) -> list[ReplicaStatus]:
        """The replicas that go to one target."""
        target: Place | None = None
        trouble: LithifyError | None = None
        found = []
        try:
            target = self.world.open_place(definitions[0].target)
        except LithifyError as error:
            trouble = error
        for definition in definitions:
            for topic in self._topics(definition):
                status = self._noted(definition, topic)
                if topic is not None and target is not None and trouble is None:
                    try:
                        status = self._compared(status, definition, topic, target)
                    except Exception as error:
                        failed = as_lithify_error(error, f"replica {definition.name} of {topic}")
                        status = _with_error(status, failed)
                        trouble = failed if isinstance(failed, UnusableEnvironmentError) else None
                elif trouble is not None:
                    status = _with_error(status, trouble)
                found.append(status)
        return found

    def _topics(self, definition: ReplicaDefinition) -> Sequence[TopicName | None]:
        """Its topics at the source, and those that a daemon has noted; None alone if there are none."""
        found = {topic for replica, topic in self.progress if replica == definition.name}
        if definition.topic is not None:
            found.add(TopicName(definition.stream, definition.topic))
        else:
            with suppress(UnknownStreamError):  # deleted
                found.update(self.world.warehouse.store.stream_topics(definition.stream))
        return sorted(found) or [None]

    def _noted(self, definition: ReplicaDefinition, topic: TopicName | None) -> ReplicaStatus:
        """What is known without a look at both sides."""
        noted = None if topic is None else self.progress.get((definition.name, topic))
        status = ReplicaStatus(
            name=definition.name,
            topic=None if topic is None else str(topic),
            target=definition.target,
            state=standing(definition, noted, runs=self.runs),
        )
        if noted is None:
            return status
        if status.state is ReplicaStanding.COPYING or noted.to_copy_bytes:
            status = replace(status, copied_bytes=noted.copied_bytes, to_copy_bytes=noted.to_copy_bytes)
        return replace(
            status,
            replica_version=noted.version,
            error=noted.error,
            next_retry_at=None if noted.retry_ms is None else format_time(noted.retry_ms),
            positions_error=noted.groups_error if definition.sync_groups else None,
        )

    def _compared(
        self, status: ReplicaStatus, definition: ReplicaDefinition, name: TopicName, place: Place
    ) -> ReplicaStatus:
        source, target = self.world.warehouse, place.warehouse
        theirs, ours = _loaded(source, name), _loaded(target, name)
        if theirs is not None and ours is not None and definition.sync_groups:
            status = with_positions(status, self.world.groups, place.groups, theirs, ours)
        status = replace(
            status,
            source_version=None if theirs is None else theirs.version,
            replica_version=_version(ours),
            log_end_offsets=None if ours is None else {log.partition: log.log_end_offset for log in ours.logs},
            compact=definition.compact,
            not_compacting=_not_compacting(definition, ours),
        )
        if theirs is None:  # a daemon has noted what to do
            return status
        if ours is not None and _version(ours) == theirs.version:
            check_replicates(theirs, self.world.scope.where, ours)
            return replace(status, lag_records=0, lag_bytes=0, lag_ms=0)
        found = lag(source, target, name, self.world.scope.where)
        behind_since_ms = self._behind_since_ms(definition, name, theirs)
        return replace(
            status,
            source_version=found.source_version,
            replica_version=found.replica_version or None,
            lag_records=found.lag_records,
            lag_bytes=found.lag_bytes,
            lag_ms=0 if found.replica_version == found.source_version else max(0, self.now_ms - behind_since_ms),
        )

    def _behind_since_ms(self, definition: ReplicaDefinition, name: TopicName, theirs: TopicState) -> int:
        noted = self.progress.get((definition.name, name))
        if noted is not None and noted.behind_since_ms is not None:
            return noted.behind_since_ms
        return theirs.created_ms if theirs.clock_ms is None else theirs.clock_ms


def _not_compacting(definition: ReplicaDefinition, ours: TopicState | None) -> str | None:
    """Why a replica that is to compact by itself does not."""
    if not definition.compact:
        return None
    if ours is None or ours.replica is None or not ours.replica.compact:
        return "it begins with the next copy"
    return why_not_compacting(ours)


def _loaded(warehouse: Warehouse, name: TopicName) -> TopicState | None:
    try:
        return warehouse.store.load(name)
    except UnknownTopicError:
        return None


def _version(ours: TopicState | None) -> int | None:
    """The version of the source that a replica has; None before the first copy is complete."""
    return None if ours is None or ours.replica is None else ours.replica.version or None


def _with_error(status: ReplicaStatus, error: LithifyError) -> ReplicaStatus:
    """What a daemon has noted comes first: it has tried more."""
    return status if status.error is not None else replace(status, error=str(error))
