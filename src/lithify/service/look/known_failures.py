"""The failures of topics, for a watch that looks again and again: few of them are read at each look (C31).

    first seen, or a commit since   ─► read
    read some time ago              ─► read again, each topic at another time
    a change that was told of       ─► `forget`, and read

A failure commits nothing, so no change token tells of it, and each topic stores its own: ten thousand topics would be
as many requests at each look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from zlib import crc32

from lithify.model.failure import LogFailure
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.documents import failures_of

KEPT_MS = 15_000
"""So long failures of other cleaners may be unknown, with up to `READS_PER_S` topics a second; with more, longer."""
READS_PER_S = 100


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a topic at a version, and when it is read again."""

    identity: str
    version: int
    until_ms: int
    failures: Mapping[int, LogFailure]


@dataclass(slots=True)
class KnownFailures:
    """The failures of topics that a watch asks for. Several threads may use it."""

    warehouse: Warehouse
    _reads: dict[str, _Read] = field(default_factory=dict)
    _forgotten: int = 0
    """How often something was: what was read meanwhile may be from before."""

    def of(self, state: TopicState) -> Mapping[int, LogFailure]:
        """By partition, the logs whose last rounds failed. Raises `DamagedError` or `WarehouseError`."""
        name, now_ms = str(state.name), self.warehouse.clock.monotonic_ms()
        known = self._reads.get(name)
        if known is not None and (known.identity, known.version) == (state.identity, state.version):
            if now_ms < known.until_ms:
                return known.failures
            share = 1.0
        else:
            share = crc32(state.identity.encode()) / 2**32  # topics of one look are not all read again in one
        forgotten = self._forgotten
        failures = failures_of(self.warehouse.store, state)
        if forgotten != self._forgotten:
            return failures
        if known is not None and known.failures == failures:
            failures = known.failures
        kept_ms = max(KEPT_MS, len(self._reads) * 1000 // READS_PER_S)
        self._reads[name] = _Read(state.identity, state.version, now_ms + int(kept_ms * share), failures)
        return failures

    def keep(self, names: Iterable[str]) -> None:
        """Forgets the topics that are not among all that there are, once it knows more than these."""
        there = set(names)
        if len(self._reads) > len(there):
            for name in [name for name in list(self._reads) if name not in there]:
                self._reads.pop(name, None)

    def forget(self, name: str) -> None:
        """The next look reads the failures of this topic."""
        self._forgotten += 1
        self._reads.pop(name, None)
