"""Of which topic, at which version, a topic is an exact copy (C63, C64).

    source     1 ── 2 ── 3 ── 4 ── 5          its versions
                    │         └──────────┐
    replica    1 ── 2 ── 3 ── 4 ── 5 ── 6     its own; 3 and 5 are of a sweep and an expiry, which copy nothing
    has        0    2    2    4    4    4     the source's version that it says it has
    stated at  1    2    3    4    5    6     every commit states its own version anew

A commit of a program that does not know replicas leaves this as it was, and so is found: the version is then not the
one at which it was stated.

A replica that compacts by itself (C67) has views and epochs of its own, so it also says which state of each log of its
source it has; of others the logs themselves say it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

NOTHING_COPIED = 0
"""The version of the source that a new replica has: none yet."""


@dataclass(frozen=True, slots=True)
class CopiedLog:
    """The state of a log of the source that was copied last: its epoch, and the commit that it is the result of."""

    epoch: int
    run: str


@dataclass(frozen=True, slots=True)
class ReplicaOf:
    """The source of a replica, and the version of it that the replica has."""

    source: str
    """The warehouse that the source is in, for people."""
    identity: str
    """The source's identity: a recreated topic has another one."""
    version: int = NOTHING_COPIED
    chain: tuple[str, ...] = ()
    """Identities of the topics that the source is itself a replica of, the nearest first."""
    written_at: int = 1
    """The version of the replica that stated this last."""
    compact: bool = False
    """Whether it is to compact by itself."""
    compacts: bool = False
    """Whether it does: not where its source compacts, or has compacted."""
    copied: tuple[CopiedLog, ...] = ()
    """By partition; empty if it never compacted by itself."""

    def is_intact(self, version: int) -> bool:
        """Whether only commits that know replicas led to this version of the replica (C64)."""
        return self.written_at == version

    def restated(self, base_version: int, version: int) -> ReplicaOf:
        """What `version`, made on `base_version`, states; what another program left remains as a trace of it."""
        return replace(self, written_at=version) if self.is_intact(base_version) else self
