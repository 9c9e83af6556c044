"""The Python API of replicas: exact copies of topics in other warehouses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import EllipsisType

from lithify.api.limits import Size, rate_bytes
from lithify.api.wiring import machine
from lithify.api.wiring.replicas import copies_into, place_of, replica_context
from lithify.daemons.replicas.context import ReplicaContext
from lithify.daemons.replicas.daemon import ReplicaDaemon
from lithify.daemons.replicas.daemon_options import INTERVAL_MS, LEASE_MS, THREADS, DaemonOptions, EventListener
from lithify.daemons.replicas.defining import (
    ReplicaRequest,
    add_replica,
    change_replica,
    check_groups,
    paused,
    remove_replica,
    resumed,
)
from lithify.daemons.replicas.status import replica_statuses, verify_all
from lithify.errors import RefusedError, UnknownTopicError
from lithify.model.names import in_order, parse_topic
from lithify.ports.store import Warehouse
from lithify.reports.replicas import PromoteReport, ReplicaVerification
from lithify.reports.replicas.status import ReplicaInfo, ReplicaStatus
from lithify.reports.report import Reports
from lithify.service.replica.promote import promote
from lithify.service.replica.verify import verify_replica


@dataclass(frozen=True, slots=True)
class LakeReplicas:
    """The replicas of the topics of one lake."""

    warehouse: Warehouse
    coordination_url: str | None = None

    def add(  # noqa: PLR0913 - the flags of the verb, by name
        self,
        what: str,
        to: str,
        *,
        name: str | None = None,
        throttle: Size | None = None,
        paused: bool = False,
        sync_groups: bool = False,
        compact: bool = False,
    ) -> ReplicaInfo:
        """Defines a replica of a topic, or of all topics of a stream, in the warehouse `to`; a daemon copies it.

        With `sync_groups` the positions of consumer groups are copied too, into the database of the target's own
        catalog (C68); `RefusedError` if this catalog is not a database. With `compact` its topics compact by
        themselves if their sources do not (C67). `to` is a directory, written with a '/', or the name of a
        catalog. Raises `UnknownTopicError`, `RefusedError`, `PolicyError`, `ConflictError`, `WarehouseError` or
        `CoordinationError`.
        """
        rate = rate_bytes("throttle", throttle)
        request = ReplicaRequest(what, place_of(to), name, rate, paused, sync_groups, compact)
        return ReplicaInfo.of(add_replica(self._context(makes=True), request))

    def edit(
        self,
        name: str,
        *,
        throttle: Size | EllipsisType | None = ...,
        sync_groups: bool | None = None,
        compact: bool | None = None,
    ) -> ReplicaInfo:
        """Changes the rate of all its copies together, including running ones, and other parts of its definition.

        A `throttle` of None is unlimited; what is not given is unchanged. Raises `RefusedError`, `WarehouseError`,
        `ConflictError` or `CoordinationError`.
        """
        given: dict[str, int | bool | None] = {}
        if not isinstance(throttle, EllipsisType):
            given["throttle_bytes"] = rate_bytes("throttle", throttle)
        if sync_groups is not None:
            given["sync_groups"] = sync_groups
        if compact is not None:
            given["compact"] = compact
        context = self._context()
        if sync_groups:
            check_groups(context.open_place(context.definition(name).target))
        return ReplicaInfo.of(change_replica(context, name, lambda before: replace(before, **given)))  # type: ignore[arg-type]

    def pause(self, name: str) -> ReplicaInfo:
        """Stops its copies within seconds; what is copied is kept for later."""
        return ReplicaInfo.of(change_replica(self._context(), name, paused))

    def resume(self, name: str) -> ReplicaInfo:
        """Undoes `pause`."""
        return ReplicaInfo.of(change_replica(self._context(), name, resumed))

    def remove(self, name: str) -> ReplicaInfo:
        """Forgets a replica; the topics at the target remain unchanged."""
        return ReplicaInfo.of(remove_replica(self._context(), name))

    def definitions(self) -> Reports[ReplicaInfo]:
        """All replicas, as they are defined."""
        definitions = sorted(self._context().replicas.definitions(), key=lambda definition: in_order(definition.name))
        return Reports(map(ReplicaInfo.of, definitions))

    def status(self, name: str | None = None) -> Reports[ReplicaStatus]:
        """Every topic of a replica or of all: its state, how far it is behind, its error."""
        return Reports(replica_statuses(self._context(), name))

    def daemon(
        self,
        *,
        threads: int = THREADS,
        interval_ms: int = INTERVAL_MS,
        daemon_id: str | None = None,
        lease_ms: int = LEASE_MS,
        tell: EventListener = lambda _event: None,
    ) -> ReplicaDaemon:
        """A daemon that makes the copies and keeps them up, whose `run` runs until `stop.ask` is called.

        `tell` is called with every event.
        """
        options = DaemonOptions(daemon_id or machine(), threads, interval_ms, lease_ms)
        return ReplicaDaemon(self._context(makes=True), options, tell)

    def promote(self, topic: str) -> PromoteReport:
        """Makes a replica in this warehouse a topic of its own. Raises `PolicyError` or `UnknownTopicError`."""
        return promote(self.warehouse, parse_topic(topic).whole("promoted"), copies_into(self.warehouse))

    def verify(
        self, what: str, *, tell: Callable[[int, int], None] = lambda _done_bytes, _all_bytes: None
    ) -> Reports[ReplicaVerification]:
        """Holds every topic of the replica of that name against its source, or a topic that is a replica by itself.

        `tell` gets the bytes read and those to read, of one topic after the other. Raises `PolicyError`,
        `UnknownTopicError`, `VersionSweptError` or `WarehouseError`.
        """
        try:
            context = self._context()
            definition = context.definition(what)
        except RefusedError as unknown:
            try:
                return Reports([verify_replica(None, self.warehouse, parse_topic(what).whole("verified"), tell)])
            except UnknownTopicError:
                raise unknown from None
        return Reports(verify_all(context, definition, tell))

    def _context(self, *, makes: bool = False) -> ReplicaContext:
        return replica_context(self.warehouse, self.coordination_url, makes=makes)
