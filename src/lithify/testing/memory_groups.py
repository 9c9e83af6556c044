"""Groups in the memory of one process: a short specification of `Groups`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import RLock

from lithify.coordination.leases.memory import MemoryCoordination
from lithify.model.groups.copies import CopiedPositions, Verdict, verdict
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName
from lithify.ports.groups import NEVER_COPIED, PositionToken


class MemoryGroups:
    """`Groups` for threads of one process."""

    def __init__(self, scope: str) -> None:
        self._lock = RLock()
        self._scope = scope
        self._positions: dict[tuple[str, LogId], Position] = {}
        self.leases = MemoryCoordination(self._lock)
        self.copies = MemoryCopies(self._positions, self._is_held, self._lock)

    @property
    def scope(self) -> str:
        return self._scope

    def positions(self, group: str | None = None, topic: TopicName | None = None) -> tuple[Position, ...]:
        with self._lock:
            positions = sorted(self._positions.items())
        return tuple(p for (g, log), p in positions if group in (None, g) and topic in (None, log.topic))

    def positions_of(self, groups: Collection[str], topic: TopicName | None = None) -> tuple[Position, ...]:
        return tuple(position for position in self.positions(topic=topic) if position.group in groups)

    def elsewhere(self, group: str, topic: TopicName, identity: str) -> tuple[str, ...]:
        return ()  # no other warehouse is in this memory

    def topics_elsewhere(self, group: str) -> frozenset[TopicName]:
        return frozenset()

    def tokens(self) -> Mapping[TopicName, PositionToken]:
        hashes_by_topic: dict[TopicName, list[int]] = {}
        for p in self.positions():
            cursor = p.cursor
            hashes_by_topic.setdefault(p.log.topic, []).append(
                hash((p.group, p.log, cursor.identity, cursor.generation, cursor.offset, cursor.epoch, p.committed_ms))
            )
        return {topic: tuple(sorted(hashes)) for topic, hashes in hashes_by_topic.items()}

    def commit(self, positions: Sequence[Position], owner: str) -> frozenset[LogId]:
        with self._lock:
            refused = frozenset(p.log for p in positions if not self._holds(p.group, p.log, owner))
            if not refused:
                self._positions |= {(p.group, p.log): p for p in positions}
            return refused

    def reset(self, positions: Sequence[Position], owner: str) -> frozenset[LogId]:
        with self._lock:
            refused = self.commit(positions, owner)
            self._raise_fences(() if refused else [position.log for position in positions])
            return refused

    def delete(self, group: str, logs: Collection[LogId], owner: str) -> frozenset[LogId]:
        with self._lock:
            refused = frozenset(log for log in logs if not self._holds(group, log, owner))
            for log in () if refused else logs:
                self._positions.pop((group, log), None)
            self._raise_fences(() if refused else logs)
            return refused

    def _raise_fences(self, logs: Collection[LogId]) -> None:
        for topic in {log.topic for log in logs}:
            self.copies.raise_fence(topic)

    def _holds(self, group: str, log: LogId, owner: str) -> bool:
        lease = GroupTopic(self._scope, group, log.topic).partition(log.partition)
        return bool(self.leases.held(owner, [lease]))

    def _is_held(self, group: str, log: LogId) -> bool:
        lease = GroupTopic(self._scope, group, log.topic).partition(log.partition)
        return any(lease == known.name for known in self.leases.leases(lease))


class MemoryCopies:
    """`PositionCopies` for threads of one process."""

    def __init__(
        self, positions: dict[tuple[str, LogId], Position], is_held: Callable[[str, LogId], bool], lock: RLock
    ) -> None:
        self._positions, self._is_held, self._lock = positions, is_held, lock
        self._fences: dict[TopicName, int] = {}
        self._noted: dict[tuple[str, LogId], Position] = {}

    def fence(self, topic: TopicName) -> int:
        with self._lock:
            return self._fences.get(topic, NEVER_COPIED)

    def raise_fence(self, topic: TopicName) -> None:
        with self._lock:
            self._fences[topic] = self._fences.get(topic, NEVER_COPIED) + 1

    def copy(self, topic: TopicName, positions: Sequence[Position], fence: int) -> CopiedPositions:
        wanted = {(p.group, p.log): p for p in positions}
        with self._lock:
            known = {key for key in self._noted if key[1].topic == topic}
            if not (wanted or known):
                return CopiedPositions()
            if self._fences.get(topic, NEVER_COPIED) != fence:
                return CopiedPositions(overtaken=True)
            self._fences[topic] = fence + 1
            done = CopiedPositions()
            for key in sorted(wanted.keys() | known):
                done = done.with_one(self._copied(key, wanted.get(key)))
            return done

    def _copied(self, key: tuple[str, LogId], wanted: Position | None) -> Verdict:
        decision = verdict(wanted, self._positions.get(key), self._noted.get(key), held=self._is_held(*key))
        if decision is Verdict.WRITE and wanted is not None:
            self._positions[key] = self._noted[key] = wanted
        elif decision is Verdict.REMOVE:
            self._positions.pop(key, None)
            self._noted.pop(key, None)
        return decision
