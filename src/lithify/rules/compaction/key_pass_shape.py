"""How the key pass of a run is cut: each log into how many hash ranges, and how often its keys are read (C38).

    log, its keys    |  range 0  |  range 1  |  range 2  |      each read by a task of its own
    few ranges       every task reads the keys of all segments and keeps its range
    read ahead       the same, with half as many tasks that each keep two cores busy
    many ranges      the keys are read once, sorted to ranges and sent to them (`shuffled`)

Memory says how many ranges there are at least; more of them keep slots busy. Numbers only; starts nothing, so that a
plan can say what a run would read (C30).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace

from lithify.model.segment import Segment
from lithify.model.settings.table import ByHeader
from lithify.rules.compaction.planner import LogPlan, may_expire
from lithify.rules.compaction.survivor_rules import SurvivorRules

MAX_READS = 6
"""Reading keys this often costs about the same as reading them once and writing them to their parts."""

COMPARED = 2.0
"""To find the latest of its key costs the same, for a dirty record, as to read this number of keys."""
LOOKED_UP = 0.5
"""The same for a clean one, which passes by."""

SHARED = 0.55
"""Of the time of a task that reads ahead, so much is left on each of its two cores."""

EVEN = 1.03
"""Of ways to cut a run whose slowest slots differ by less in their work, the one that reads least is taken."""

MOST_TASKS = 4
"""With this many logs for each slot, none is divided to keep slots busy: they wait for a small part of the time."""

MOST_MEMORY_BYTES = 3 * 2**30
"""Winners are found in no more. Half of it is keys, and Arrow puts no more than 2 GiB of them together."""

AHEAD_BYTES = 48 * 2**20
"""What is read and hashed ahead takes, and two threads that compare. If keys pass by, this is in the other half."""

WORKER_BYTES = 200 * 2**20
"""What a Python worker of Spark takes besides the memory for keys: 127 MiB are imports, the rest what it reads."""
COPYING_BYTES = 512 * 2**20
"""What it takes, with imports, to copy records by row groups of 64 MiB, which are the largest unless a record is
larger."""

BYTES_PER_KEY = 24
"""Memory that finding the latest record of one key takes, besides the key itself."""

BYTES_PER_ORDERED_KEY = 40
"""The same where an order decides."""

DISTINCT = 0.4
"""This share of the dirty records, it is assumed, is the latest of its key, which is all that has to be held. Where it
is more, ranges are divided while they are worked on, and what is left of them is read again."""

LONG_KEY_BYTES, UNPACKED = 2048, 16
"""Keys take less memory than so much each, a copy of them included, or so many times what they take compressed: plans
that say how often they are read at most count with both (C30)."""

LEAST_RECORDS = 1_000_000
"""A range of fewer is not worth a task of its own."""

KEYS_PER_LOOK = 50
"""To look up a key in the index of a segment takes as long as reading this number of keys."""
KEYS_PER_WANTED = 512
"""At most one key in this many is looked up in an index, so that little is lost if the result is to read all."""
KEYS_PER_CANDIDATE = 1024
"""To read one record by its page takes as long as reading this number of keys."""


@dataclass(frozen=True, slots=True)
class KeyPassShape:
    """How the key pass of one log is cut."""

    ranges: int
    shuffled: bool
    may_exceed: bool = False
    """Whether a range might not fit into memory if no key came twice."""
    ahead: bool = False
    """Whether a task reads and hashes keys on threads beside the one that compares them, on the cores of two slots."""

    @property
    def reads(self) -> int:
        """How often the keys are read."""
        return 1 if self.shuffled else self.ranges

    @property
    def most_reads(self) -> int:
        """The same if ranges are divided while they are worked on: once more till memory is full, then in parts."""
        return 2 * self.ranges + MAX_READS if self.may_exceed and not self.shuffled else self.reads


def worker_bytes(task_memory_bytes: int) -> int:
    """The most that a Python worker of Spark takes, with what it has imported, whatever the number of keys (C38)."""
    return max(task_memory_bytes + WORKER_BYTES, COPYING_BYTES)


def winners_memory(task_memory_bytes: int, *, alone: bool = False, ahead: bool = False) -> int:
    """The part of a task's memory in which winners are held; what finds them, and passes by them, takes the rest.

    If the dirty keys are `alone`, nothing passes by. With `ahead` keys are read and hashed on other threads.
    """
    half = task_memory_bytes // 2
    held = task_memory_bytes * 7 // 8 if alone else half
    return min(max(held - AHEAD_BYTES, half) if ahead else held, MOST_MEMORY_BYTES)


def is_alone(plan: LogPlan) -> bool:
    """Whether only dirty keys are read."""
    return len(plan.scanned) == len(plan.dirty) and not plan.above_horizon and not plan.chunks


@dataclass(frozen=True, slots=True)
class KeyLoad:
    """What is known of the keys of one log before they are read."""

    keys: int
    """To read, those found by an index as `keys_read` counts them."""
    dirty: int
    needed_bytes: int
    """Memory in which all dirty keys find room if they are stored as they are."""
    segments: int
    """With keys to read."""
    most_bytes: int
    """Memory in which all keys that are held at once find room, however they are stored."""
    alone: bool = False
    """Whether no others are read than the dirty ones."""

    @staticmethod
    def of(plan: LogPlan) -> KeyLoad:
        """The load of a planned log."""
        per_key = BYTES_PER_ORDERED_KEY if plan.rules.is_ordered else BYTES_PER_KEY
        needed = sum(s.records * per_key + s.scan_bytes for s in plan.dirty)  # what else is read passes by
        segments = len(plan.scanned) + len(plan.above_horizon) + len(plan.chunks)
        waits = plan.above_horizon or plan.chunks
        held = plan.dirty + tuple(s for s in plan.looked_at if waits and may_expire(s, plan.rules))
        most = sum(s.records * LONG_KEY_BYTES + s.scan_bytes * UNPACKED for s in held)
        dirty = sum(s.records for s in plan.dirty)
        return KeyLoad(keys_read(plan), dirty, needed, segments, most, is_alone(plan))


def key_pass_shapes(
    plans: Sequence[LogPlan], task_memory_bytes: int, slots: int, *, one_machine: bool = False
) -> tuple[KeyPassShape, ...]:
    """How the key pass of each log of a run is cut that may do `slots` tasks at once; see `balanced_shapes`."""
    loads = [KeyLoad.of(plan) for plan in plans if plan.scanned]
    shapes = iter(balanced_shapes(loads, task_memory_bytes, slots, one_machine=one_machine))
    return tuple(next(shapes) if plan.scanned else KeyPassShape(1, shuffled=False) for plan in plans)


def balanced_shapes(
    loads: Sequence[KeyLoad], task_memory_bytes: int, slots: int, *, one_machine: bool = False
) -> tuple[KeyPassShape, ...]:
    """How each of these logs is cut, so that `slots` tasks at once have about the same to do, and little is read.

    The logs with most keys share the slots: one has all of them, two have half each, and so on. Each way of that is
    weighed, and not dividing any; so are tasks that take two cores, where slots are cores of one machine.
    """
    largest = sorted(range(len(loads)), key=lambda number: -loads[number].keys)
    many = len(loads) >= MOST_TASKS * slots
    counts = sorted({slots // sharing for sharing in range(slots if many else 1, slots + 1)})

    def ways(cut: Callable[[KeyLoad, int, int], KeyPassShape]) -> list[tuple[KeyPassShape, ...]]:
        divided = [set(largest[: slots // tasks]) for tasks in counts]
        return [
            tuple(cut(load, task_memory_bytes, tasks if number in some else 1) for number, load in enumerate(loads))
            for tasks, some in zip(counts, divided, strict=True)
        ]

    apart = _best(loads, ways(_shape), slots)
    if not one_machine:
        return apart
    ahead = [way for way in ways(_shape_ahead) if _are_ahead(way) and all(map(_reads_no_more, way, apart))]
    return _best(loads, [apart, *ahead], slots)


def _best(loads: Sequence[KeyLoad], ways: Sequence[tuple[KeyPassShape, ...]], slots: int) -> tuple[KeyPassShape, ...]:
    """Of the ways that are about the shortest the one that reads least."""
    weighed = [
        (sum(load.keys * shape.reads for load, shape in zip(loads, way, strict=True)), _longest(loads, way, slots), way)
        for way in ways
    ]
    shortest = min(longest for _, longest, _ in weighed)
    return min((one for one in weighed if one[1] <= EVEN * shortest), key=lambda one: one[:2])[2]


def _are_ahead(shapes: Sequence[KeyPassShape]) -> bool:
    """Without such a task the best way is known, and is what a plan says."""
    return any(shape.ahead for shape in shapes)


def _reads_no_more(shape: KeyPassShape, other: KeyPassShape) -> bool:
    """Plans count reads without tasks that take two cores (C30)."""
    return shape.most_reads <= other.most_reads


def _shape(load: KeyLoad, task_memory_bytes: int, tasks: int, *, ahead: bool = False) -> KeyPassShape:
    """Ranges that fit, and a multiple of `tasks` where the log has enough keys, so that no task is left over."""
    memory_bytes = winners_memory(task_memory_bytes, alone=load.alone, ahead=ahead)
    most = tasks if load.segments > MAX_READS else min(tasks, MAX_READS)  # few segments keep few senders busy
    multiple = max(1, min(most, load.keys // LEAST_RECORDS))
    least = max(1, math.ceil(load.needed_bytes * DISTINCT / memory_bytes))
    ranges = -(-least // multiple) * multiple
    if ranges > MAX_READS and load.alone:  # what is shuffled is held in half of the memory
        return _shape(replace(load, alone=False), task_memory_bytes, tasks, ahead=ahead)
    may_exceed = ranges * memory_bytes < load.most_bytes
    return KeyPassShape(ranges, shuffled=ranges > MAX_READS, may_exceed=may_exceed, ahead=ahead)


def _shape_ahead(load: KeyLoad, task_memory_bytes: int, tasks: int) -> KeyPassShape:
    """Half as many ranges, if the keys are expected to fit."""
    whole = _shape(load, task_memory_bytes, tasks)
    half = _shape(load, task_memory_bytes, max(1, tasks // 2), ahead=True)
    return whole if half.ranges >= whole.ranges or whole.shuffled else half  # read once, as the plan says


def _longest(loads: Sequence[KeyLoad], shapes: Sequence[KeyPassShape], slots: int) -> float:
    """What the slot with most to do reads and compares, in keys read; the tasks of a shuffle wait for all before it."""
    first: list[float] = []
    after: list[float] = []
    for load, shape in zip(loads, shapes, strict=True):
        own = (load.dirty * COMPARED + (load.keys - load.dirty) * LOOKED_UP) / shape.ranges
        if shape.shuffled:
            senders = min(load.segments, slots)
            first += [load.keys * MAX_READS / senders] * senders
            after += [own] * shape.ranges
        elif shape.ahead:
            first += [(load.keys + own) * SHARED] * shape.ranges * 2
        else:
            first += [load.keys + own] * shape.ranges
    return _busiest(first, slots) + _busiest(after, slots)


def _busiest(costs: list[float], slots: int) -> float:
    """What one of `slots` has to do at most, if each takes the largest of these pieces that is left."""
    busy = [0.0] * slots
    for cost in sorted(costs, reverse=True):
        heapreplace(busy, busy[0] + cost)
    return max(busy)


def keys_read(plan: LogPlan) -> int:
    """How many keys can be read in the time in which all of the plan are, those found by an index included."""
    wanted = sum(s.records for s in plan.dirty)
    by_index = [s for s in plan.looked_at if s.keys_indexed and _is_asked(s, plan.rules, wanted)]
    whole = sum(s.records for s in plan.scanned + plan.above_horizon + plan.chunks)
    looked_up = wanted * (KEYS_PER_LOOK * len(by_index) + KEYS_PER_CANDIDATE)
    return whole - max(0, sum(s.records for s in by_index) - looked_up)


def most_dead(plan: LogPlan) -> int:
    """The most records that are dead in a portion of live ones, or the reverse: the positions of these are kept."""
    wanted = sum(s.records for s in plan.dirty)
    asked = sum(s.records for s in plan.looked_at if s.keys_indexed and _is_asked(s, plan.rules, wanted))
    return sum(s.records for s in plan.scanned) - max(0, asked - wanted)


def _is_asked(segment: Segment, rules: SurvivorRules, wanted: int) -> bool:
    """Whether this number of keys is looked up by its index, and no other record of it can be removed."""
    if wanted * KEYS_PER_WANTED > segment.records or may_expire(segment, rules):
        return False
    return only_keys_decide(segment, rules)


def only_keys_decide(segment: Segment, rules: SurvivorRules) -> bool:
    """Whether every record of a clean segment remains that no other supersedes, tombstones apart."""
    aged = rules.values_expire_before_ms is not None and segment.min_timestamp_ms < rules.values_expire_before_ms
    within = rules.log_start <= segment.base_offset and segment.end_offset <= rules.horizon
    return within and not aged and segment.null_keys == 0 and not isinstance(rules.order, ByHeader)
