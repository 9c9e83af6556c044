"""What is known of the ends of a source's logs: when everything from an offset on was still there (C71).

    time      t1          t2               at t1 the source's stable end was o1: its cleaner had not been at any
    offset  ──o1──────────o2────►          record from there on, and drops a delete `delete.retention.ms` later

A small document beside a copy stores it, since an ingest that finds nothing new commits nothing. It is true of the
source however far the copy is.

    {"logs": {"0": {"ends": [[17, 1700000000000, 86400000]], "missed": [[4, 9]]}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

DEFAULT_MS = 86_400_000
"""Kafka's `delete.retention.ms` unless it is set: one who may not ask takes the topic for compacted."""


class SourceEnd(NamedTuple):
    """The source's cleaner had dropped no delete at or above `offset`, and had none to drop soon, at `time_ms`.

    `retention_ms` is the smallest `delete.retention.ms` that was seen since; None: the topic was not compacted.
    """

    offset: int
    time_ms: int
    retention_ms: int | None


@dataclass(frozen=True, slots=True)
class KnownEnds:
    """Of one log. `ends` have ascending offsets."""

    ends: tuple[SourceEnd, ...] = ()
    missed: tuple[tuple[int, int], ...] = ()
    """Offsets [start, end) in which deletes may be missing: it was accepted."""
    begun: SourceEnd | None = None
    """Where this reader began: true of it alone, so that the document of a copy has none. Its commits have it."""


Ends = Mapping[int, KnownEnds]
"""By partition."""


@dataclass(frozen=True, slots=True)
class StableEnds:
    """What a source says now: by partition the log start and the end of what is stable, and how it treats deletes.

    `retention_ms` is its `delete.retention.ms`; None for a topic that is not compacted. `policy` is its
    `cleanup.policy`; None if that could not be read.
    """

    starts: Mapping[int, int]
    ends: Mapping[int, int]
    retention_ms: int | None
    policy: str | None = None


def delete_retention_ms(config: Mapping[str, str]) -> int | None:
    """How long a Kafka topic with these settings keeps deletes; None if it is not compacted."""
    return int(config["delete.retention.ms"]) if "compact" in config.get("cleanup.policy", "") else None


def ends_to_json(known: Ends) -> dict[str, Any]:
    """The document of a copy."""
    return {
        "logs": {
            str(p): {"ends": [list(end) for end in log.ends], "missed": [list(gap) for gap in log.missed]}
            for p, log in sorted(known.items())
        }
    }


def ends_from_json(content: Mapping[str, Any]) -> dict[int, KnownEnds]:
    """The inverse of it. Raises `AttributeError`, `LookupError`, `TypeError` or `ValueError` for something else."""
    return {int(partition): _checked(log) for partition, log in content["logs"].items()}


def _checked(log: Mapping[str, Any]) -> KnownEnds:
    ends = tuple(SourceEnd(*end) for end in log["ends"])
    missed = tuple((start, end) for start, end in log["missed"])
    numbers = [n for end in ends for n in end if n is not None] + [n for gap in missed for n in gap]
    if {*map(type, numbers)} - {int} or any(end.offset is None or end.time_ms is None for end in ends):
        raise TypeError(f"{log!r} has values that are not numbers")
    if any(a.offset >= b.offset for a, b in pairwise(ends)) or any(start >= end for start, end in missed):
        raise ValueError(f"{log!r} does not ascend")
    return KnownEnds(ends, missed)
