"""Since when no version names a metadata file, manifest list or manifest of a topic (C6).

Commits replace these files without a record of it. So sweeps keep one: each stores when it looked, and
for every metadata file that was named then, the last time that it was.

    looks         t1        t2        t3        now
    a.avro        named     named     -                    unnamed since t3, and a version named it
    b.avro             written  -     -                    unnamed since t2, perhaps never named

The stored time is never earlier than the true one, so files only stay longer. Looks are
stored as long as they are needed, with a minimum time between them, and names until their files are deleted, so
that the document stays small.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from lithify.model.stored_file import Closing

LOOKS_PER_RETENTION = 8
"""Looks stored within `versions.retention.ms`: files stay longer by at most one of that many parts."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Times of looks in epoch ms, ascending, and by name of a metadata file the last of them that saw it named."""

    times_ms: tuple[int, ...] = ()
    named_ms: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Looks:
        return Looks(tuple(int(ms) for ms in data["looked"]), {str(k): int(v) for k, v in data["named"].items()})

    def to_json(self) -> dict[str, Any]:
        return {"looked": list(self.times_ms), "named": dict(self.named_ms)}

    def and_now(self, named: Collection[str], stored: Collection[str], retention_ms: int, now_ms: int) -> Looks | None:
        """With a look at `now_ms`, by which these are named and stored; None if the last one is recent enough."""
        before = [ms for ms in self.times_ms if ms <= now_ms]  # after a clock went back, its later times are dropped
        if before == list(self.times_ms) and before and now_ms - before[-1] < retention_ms // LOOKS_PER_RETENTION:
            return None
        past = [ms for ms in before if ms <= now_ms - retention_ms]
        times = (*past[-1:], *(ms for ms in before if ms > now_ms - retention_ms), now_ms)
        known = {name: ms for name, ms in self.named_ms.items() if name in stored and ms <= now_ms}
        return Looks(times, {**known, **dict.fromkeys(named, now_ms)})

    def closing(self, name: str, there_ms: int, now_ms: int) -> Closing:
        """Since when an unnamed file that certainly exists since `there_ms` is unnamed."""
        named_ms = self.named_ms.get(name)
        since = max(there_ms, -1 if named_ms is None else named_ms + 1)
        looked = (ms for ms in self.times_ms if since <= ms <= now_ms)
        return Closing(next(looked, now_ms), was_named=named_ms is not None)
