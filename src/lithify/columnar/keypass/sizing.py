"""How the work of a run is cut into tasks: hash ranges per log, and tasks per Spark partition.

    log, its keys    |  range 0  |  range 1  |  range 2  |      each read by a task of its own
    few ranges       every task reads the keys of all segments and keeps its range
    many ranges      the keys are read once, sorted to ranges and sent to them (`shuffled`)

Numbers only; starts nothing, so that a plan can say what a run would read (C30).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lithify.columnar.keypass.winners import MAX_READS, MOST_MEMORY_BYTES
from lithify.compaction.planner import LogPlan

BYTES_PER_KEY = 24
"""Memory that finding the latest record of one key takes, besides the key itself."""

BYTES_PER_VERSION = 52
"""The same where a version decides."""

LEAST_RECORDS = 1_000_000
"""A range of fewer is not worth a task of its own."""


@dataclass(frozen=True, slots=True)
class KeyPassShape:
    """How the key pass of one log is cut."""

    ranges: int
    shuffled: bool

    @property
    def reads(self) -> int:
        """How often the keys are read."""
        return 1 if self.shuffled else self.ranges


def winners_memory(task_memory_bytes: int) -> int:
    """The part of a task's memory in which winners are found; Arrow and Python take the rest."""
    return min(task_memory_bytes // 2, MOST_MEMORY_BYTES)


def key_pass_shape(plan: LogPlan, *, task_memory_bytes: int, slots: int, logs: int) -> KeyPassShape:
    """Ranges for one of `logs` logs that share `slots` tasks at once."""
    per_key = BYTES_PER_KEY if plan.rules.strategy == "offset" else BYTES_PER_VERSION
    needed_bytes = sum(s.records * per_key + s.scan_bytes for s in plan.dirty)  # what else is read passes by
    by_memory = -(-needed_bytes // winners_memory(task_memory_bytes))
    scanned = sum(s.records for s in plan.scanned + plan.waiting)
    by_slots = min(-(-slots // max(1, logs)), scanned // LEAST_RECORDS, MAX_READS)
    ranges = max(1, by_memory, by_slots)
    return KeyPassShape(max(ranges, slots) if by_memory > MAX_READS else ranges, by_memory > MAX_READS)


def packed(costs: Sequence[int], full: int, at_most: int | None = None) -> list[int]:
    """The Spark partition of each piece of work: large ones alone and first, small ones together.

    A partition is full at cost `full`. With `at_most` there are no more than that, evenly filled.
    """
    order = sorted(range(len(costs)), key=lambda i: -costs[i])
    loads: list[int] = []
    parts = [0] * len(costs)
    for i in order:
        if not loads or loads[-1] + costs[i] > full:
            loads.append(0)
        loads[-1] += costs[i]
        parts[i] = len(loads) - 1
    if at_most is None or len(loads) <= at_most:
        return parts
    evened = [0] * at_most
    for i in order:
        parts[i] = evened.index(min(evened))
        evened[parts[i]] += costs[i]
    return parts


def partitions(parts: Sequence[int]) -> int:
    """How many Spark partitions these are; they are numbered from 0 without gaps."""
    return max(parts, default=-1) + 1
