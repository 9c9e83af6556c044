"""Whether two cleaners have compacted one log at once: rounds that were committed, by log and in order of versions.

    version 7   cleaner-1   ├────────┤
    version 9   cleaner-2        ├────────┤          a finding: it has read what the other one was rewriting

A round lasts from the time at which it began until it is told, which is before its lease is given back. One that a
freeze has held up is told later than it was committed: it counts until the freeze.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from soak.events import time_ms
from soak.feeder import Deletion
from soak.programs import Life
from soak.troubles import Strike

LogOfChain = tuple[str, int, int]
"""A topic, how often it was recreated before, and a partition."""


@dataclass(frozen=True, slots=True)
class CommittedRound:
    """One log of a round. Times are epoch ms."""

    cleaner: str
    version: int
    begun_ms: int
    ended_ms: int


def overlapping(
    lives: Iterable[Life], deletions: Sequence[Deletion], strikes: Sequence[Strike]
) -> tuple[list[str], int]:
    """The findings, and how many pairs of rounds of different cleaners were compared."""
    logs: dict[LogOfChain, list[CommittedRound]] = defaultdict(list)
    for life in lives:
        for log, done in _rounds(life, deletions, strikes):
            logs[log].append(done)
    findings, pairs = [], 0
    for (topic, _, partition), rounds in logs.items():
        rounds.sort(key=lambda done: (done.version, done.ended_ms))
        for first, second in pairwise(rounds):
            if first.cleaner == second.cleaner:
                continue
            pairs += 1
            if second.begun_ms < first.ended_ms:
                findings.append(f"{topic}[{partition}]: two at once: {first} and {second}")
    return findings, pairs


def _rounds(
    life: Life, deletions: Sequence[Deletion], strikes: Sequence[Strike]
) -> Iterator[tuple[LogOfChain, CommittedRound]]:
    for event in life.events():
        if event["event"] != "round" or not event["changed"]:
            continue
        ended_ms, topic = time_ms(event), event["topic"]
        begun_ms = ended_ms - event["duration_ms"]
        own = [deletion for deletion in deletions if deletion.topic == topic]
        if any(deletion.begun_ms <= ended_ms and begun_ms <= deletion.ended_ms for deletion in own):
            continue  # of which of the two topics it was is not told
        for strike in strikes:
            if strike.cleaner == life.name and strike.kind == "freeze" and begun_ms <= strike.time_ms <= ended_ms:
                ended_ms = strike.time_ms
        chain = sum(deletion.ended_ms < begun_ms for deletion in own)
        for partition in event["partitions"]:
            yield (topic, chain, partition), CommittedRound(life.name, event["version"], begun_ms, ended_ms)
