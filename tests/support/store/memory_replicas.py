"""Replicas in the memory of one process: a short specification of `Replicas`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import RLock

from lithify.coordination.leases.memory import MemoryCoordination
from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.replica_progress import TopicProgress


class MemoryReplicas:
    """`Replicas` for threads of one process. Those of other warehouses `beside` it share its database."""

    def __init__(self, scope: str, beside: MemoryReplicas | None = None) -> None:
        self._scope = scope
        self._lock: RLock = RLock() if beside is None else beside._lock
        self._definitions: dict[tuple[str, str], ReplicaDefinition] = {} if beside is None else beside._definitions
        self._progress: dict[tuple[str, str, TopicName], TopicProgress] = {} if beside is None else beside._progress
        self.leases: MemoryCoordination = MemoryCoordination(self._lock) if beside is None else beside.leases

    @property
    def scope(self) -> str:
        return self._scope

    def definitions(self) -> tuple[ReplicaDefinition, ...]:
        with self._lock:
            return tuple(found for (scope, _), found in sorted(self._definitions.items()) if scope == self._scope)

    def into(self, target_scope: str) -> tuple[ReplicaDefinition, ...]:
        with self._lock:
            known = sorted(self._definitions.items())
        return tuple(found for _, found in known if found.target_scope == target_scope)

    def add(self, definition: ReplicaDefinition) -> bool:
        with self._lock:
            if self._definitions.setdefault((self._scope, definition.name), definition) != definition:
                return False
            self._forget_all(definition.name)
            return True

    def replace(self, before: ReplicaDefinition, after: ReplicaDefinition) -> bool:
        with self._lock:
            if self._definitions.get((self._scope, before.name)) not in (before, after):
                return False
            self._definitions[self._scope, before.name] = after
            return True

    def remove(self, name: str) -> bool:
        with self._lock:
            self._forget_all(name)
            return self._definitions.pop((self._scope, name), None) is not None

    def progress(self) -> tuple[TopicProgress, ...]:
        with self._lock:
            known = sorted(self._progress.items())
        return tuple(found for (scope, _, _), found in known if scope == self._scope)

    def note(self, progress: Sequence[TopicProgress]) -> None:
        with self._lock:
            for noted in progress:
                if (self._scope, noted.replica) in self._definitions:
                    self._progress[self._scope, noted.replica, noted.topic] = noted

    def forget(self, replica: str, topics: Collection[TopicName]) -> None:
        with self._lock:
            for topic in topics:
                self._progress.pop((self._scope, replica, topic), None)

    def _forget_all(self, replica: str) -> None:
        self.forget(replica, [progress.topic for progress in self.progress() if progress.replica == replica])
