"""Groups in the memory of one process: a short specification of `Groups`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import RLock

from lithify.leases.memory import MemoryCoordination
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName


class MemoryGroups:
    """`Groups` for threads of one process."""

    def __init__(self, scope: str) -> None:
        self._lock = RLock()
        self._scope = scope
        self._positions: dict[tuple[str, LogId], Position] = {}
        self.leases = MemoryCoordination(self._lock)

    @property
    def scope(self) -> str:
        return self._scope

    def positions(self, group: str | None = None, topic: TopicName | None = None) -> tuple[Position, ...]:
        with self._lock:
            found = sorted(self._positions.items())
        return tuple(p for (g, log), p in found if group in (None, g) and topic in (None, log.topic))

    def commit(self, positions: Sequence[Position], owner: str) -> frozenset[LogId]:
        with self._lock:
            refused = frozenset(p.log for p in positions if not self._holds(p.group, p.log, owner))
            if not refused:
                self._positions |= {(p.group, p.log): p for p in positions}
            return refused

    def delete(self, group: str, logs: Collection[LogId], owner: str) -> frozenset[LogId]:
        with self._lock:
            refused = frozenset(log for log in logs if not self._holds(group, log, owner))
            for log in () if refused else logs:
                self._positions.pop((group, log), None)
            return refused

    def _holds(self, group: str, log: LogId, owner: str) -> bool:
        lease = GroupTopic(self._scope, group, log.topic).partition(log.partition)
        return bool(self.leases.held(owner, [lease]))
