"""Notes of appends with idempotency keys, which the gateways of a warehouse share (C75).

    key    request   run   after   places            landed in
    4711   9f0c…     r1    r0      0: 120 + 100      version 18     done: a retry gets the same answer
    4712   77aa…     r2    r1      0: 220 + 100                     open: the state of the topic tells (`append_chain`)

A note is written before the commit that it is of. So an append whose key has no note has not landed, and a run that
finds that another one has replaced its note does not commit those records any more.
"""

from __future__ import annotations

from dataclasses import dataclass

CHAIN_ID = "lithify-appends"
"""The place of the chain of runs with keys among the queries that write to a topic (`append_chain`)."""
NOTES_KEPT_MS = 86_400_000
"""How long a key is remembered: clients retry for minutes or hours."""
CLOCKS_DIFFER_MS = 3_600_000
"""By how much the clocks of gateways may differ, at most."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where records are, once their run has landed: offsets [start, start + records) of one log."""

    partition: int
    start: int
    records: int


@dataclass(frozen=True, slots=True)
class AppendNote:
    """What is known of the append with one key. `request` is a digest of what was sent with it."""

    key: str
    request: str
    chain: str
    run: str
    after: str
    """The run lands only on a version in which this one is the latest run of the chain."""
    places: tuple[Placed, ...]
    begun_ms: int
    """When the request arrived, by the clock of its gateway."""
    version: int | None = None
    """A version that has the records; None: open."""

    def is_of(self, other: AppendNote) -> bool:
        """Whether both are of the same attempt to append."""
        return (self.chain, self.run, self.after) == (other.chain, other.run, other.after)


@dataclass(frozen=True, slots=True)
class AppendRun:
    """A run of appends that has landed, and a version that has it."""

    run: str
    version: int
