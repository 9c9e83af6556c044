"""What `lithify replica status` shows: every topic of every replica, as it is now.

    source, target      at which versions they are, and what is lacking          read now
    progress            copying or failed, since when behind, the next try       noted by a daemon
    notes of daemons    whether one runs: whether any of them changes            noted by each, every 2 s

Targets are read at the same time, so that one that does not answer delays no other; after its first error the other
topics of a target have the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby

from lithify.daemons.replicas.context import Place, ReplicaContext
from lithify.daemons.replicas.groups import with_positions
from lithify.errors import LithifyError, UnknownStreamError, UnknownTopicError, UnusableEnvironmentError
from lithify.errors.defects import as_lithify_error
from lithify.model.cleaner_note import CleanerNote
from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.replica_progress import ReplicaStanding, TopicProgress
from lithify.model.settings.units import format_time
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.replicas import ReplicaVerification
from lithify.reports.replicas.status import ReplicaStatus
from lithify.rules.lifecycle.own_views import why_not_compacting
from lithify.rules.lifecycle.replicas import check_replicates
from lithify.service.replica.mirror import lag
from lithify.service.replica.verify import verify_replica
from lithify.waits.parallel import parallel

TARGETS_AT_ONCE = 16
NOTED_WITHIN_MS = 7_000
"""A daemon notes that it is there every 2 s; so long it may take on a busy machine."""
LOOK_S = 0.25
Progress = Mapping[tuple[str, TopicName], TopicProgress]


def daemon_scope(scope: str) -> str:
    """The scope of daemons' notes, which are beside the notes of the cleaners of the warehouse."""
    return f"replicas@{scope}"


def replica_statuses(context: ReplicaContext, name: str | None = None) -> tuple[ReplicaStatus, ...]:
    """All topics of one replica or of all. Raises `RefusedError` for an unknown one, or `CoordinationError`."""
    wanted = context.replicas.definitions() if name is None else (context.definition(name),)
    progress = {(noted.replica, noted.topic): noted for noted in context.replicas.progress()}
    before, since_ms = _notes(context), context.warehouse.clock.monotonic_ms()
    look = _Look(context, progress, context.warehouse.clock.now_ms())
    by_target = sorted(wanted, key=lambda definition: definition.target)
    targets = [tuple(some) for _, some in groupby(by_target, key=lambda definition: definition.target)]
    statuses = [status for some in parallel(look.target, targets, TARGETS_AT_ONCE) for status in some]
    if wanted and not _changes(context, before, since_ms):
        statuses = [_without_daemon(status) for status in statuses]
    return tuple(sorted(statuses, key=lambda status: (status.name, status.topic or "")))


def verify_all(
    context: ReplicaContext, definition: ReplicaDefinition, tell: Callable[[int, int], None]
) -> tuple[ReplicaVerification, ...]:
    """Holds every topic of a replica against its source, or by itself where the source has no such topic any more.

    A topic of several that cannot be verified has that as its finding (C50). Raises what `verify_replica` raises for
    the only one, and what is wrong with a whole warehouse.
    """
    source, target = context.warehouse, context.open_place(definition.target).warehouse
    there = frozenset(source.store.topics())
    names = {noted.topic for noted in context.replicas.progress() if noted.replica == definition.name} | there
    if definition.topic is not None:
        names.add(TopicName(definition.stream, definition.topic))
    wanted = sorted(name for name in names if definition.covers(name))

    def verified(name: TopicName) -> ReplicaVerification:
        try:
            return verify_replica(source if name in there else None, target, name, tell)
        except Exception as error:
            if definition.topic is not None:
                raise
            failed = as_lithify_error(error, f"the replica of {name}")
            if isinstance(failed, UnusableEnvironmentError):
                for warehouse in (source, target):
                    warehouse.store.topics()  # it is this topic alone, or else the same error ends it all
            return ReplicaVerification.failed(str(name), failed)

    return tuple(map(verified, wanted))


def _notes(context: ReplicaContext) -> frozenset[CleanerNote]:
    """The notes of daemons of the warehouse."""
    scope = daemon_scope(context.replicas.scope)
    return frozenset(note for note in context.replicas.leases.notes() if note.scope == scope)


def _changes(context: ReplicaContext, before: frozenset[CleanerNote], since_ms: int) -> bool:
    """Whether a daemon runs: whether one has noted that since, or does so soon. Clocks are not compared."""
    clock = context.warehouse.clock
    while before:
        if _notes(context) - before:
            return True
        if clock.monotonic_ms() - since_ms >= NOTED_WITHIN_MS:
            return False
        clock.sleep(LOOK_S)
    return bool(_notes(context))  # one has started just now


def standing(definition: ReplicaDefinition, noted: TopicProgress | None) -> ReplicaStanding:
    """The state of the replica of a topic while a daemon runs."""
    if definition.paused:
        return ReplicaStanding.PAUSED
    return ReplicaStanding.WAITING if noted is None else noted.standing


def _without_daemon(status: ReplicaStatus) -> ReplicaStatus:
    """While none runs. One that failed remains so: it needs a check."""
    stays = status.state in (ReplicaStanding.PAUSED, ReplicaStanding.FAILED)
    return status if stays else replace(status, state=ReplicaStanding.WAITING)


@dataclass(frozen=True, slots=True)
class _Look:
    """One check of the replicas of a warehouse."""

    context: ReplicaContext
    progress: Progress
    now_ms: int

    def target(self, definitions: Sequence[ReplicaDefinition]) -> list[ReplicaStatus]:
        """The replicas at one target."""
        target: Place | None = None
        target_error: LithifyError | None = None
        statuses = []
        try:
            target = self.context.open_place(definitions[0].target)
        except LithifyError as error:
            target_error = error
        for definition in definitions:
            for topic in self._topics(definition):
                status = self._noted(definition, topic)
                if topic is not None and target is not None and target_error is None:
                    try:
                        status = self._compared(status, definition, topic, target)
                    except Exception as error:
                        failed = as_lithify_error(error, f"replica {definition.name} of {topic}")
                        status = _with_error(status, failed)
                        target_error = failed if isinstance(failed, UnusableEnvironmentError) else None
                elif target_error is not None:
                    status = _with_error(status, target_error)
                statuses.append(status)
        return statuses

    def _topics(self, definition: ReplicaDefinition) -> Sequence[TopicName | None]:
        """Its topics at the source, and those that a daemon has noted; None alone if there are none."""
        topics = {topic for replica, topic in self.progress if replica == definition.name}
        if definition.topic is not None:
            topics.add(TopicName(definition.stream, definition.topic))
        else:
            with suppress(UnknownStreamError):  # deleted
                topics.update(self.context.warehouse.store.stream_topics(definition.stream))
        return sorted(topics) or [None]

    def _noted(self, definition: ReplicaDefinition, topic: TopicName | None) -> ReplicaStatus:
        """What is known without a check of both sides."""
        noted = None if topic is None else self.progress.get((definition.name, topic))
        status = ReplicaStatus(
            name=definition.name,
            topic=None if topic is None else str(topic),
            target=definition.target,
            state=standing(definition, noted),
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
        source, target = self.context.warehouse, place.warehouse
        theirs, ours = _loaded(source, name), _loaded(target, name)
        if theirs is not None and ours is not None and definition.sync_groups:
            status = with_positions(status, self.context.groups, place.groups, theirs, ours)
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
            check_replicates(theirs, self.context.scope.where, ours)
            return replace(status, lag_records=0, lag_bytes=0, lag_ms=0)
        behind = lag(source, target, name, self.context.scope.where)
        behind_since_ms = self._behind_since_ms(definition, name, theirs)
        return replace(
            status,
            source_version=behind.source_version,
            replica_version=behind.replica_version or None,
            lag_records=behind.lag_records,
            lag_bytes=behind.lag_bytes,
            lag_ms=0 if behind.replica_version == behind.source_version else max(0, self.now_ms - behind_since_ms),
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
        return "it starts with the next copy"
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
