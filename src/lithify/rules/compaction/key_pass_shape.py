"""How the key pass of a log is cut: into how many hash ranges, and how often its keys are read for that (C38).

    log, its keys    |  range 0  |  range 1  |  range 2  |      each read by a task of its own
    few ranges       every task reads the keys of all segments and keeps its range
    many ranges      the keys are read once, sorted to ranges and sent to them (`shuffled`)

Numbers only; starts nothing, so that a plan can say what a run would read (C30).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lithify.model.segment import Segment
from lithify.model.settings.table import ByHeader
from lithify.rules.compaction.planner import LogPlan, may_expire
from lithify.rules.compaction.survivor_rules import SurvivorRules

MAX_READS = 8
"""Reading keys so often costs about as much as writing them to their parts once."""

MOST_MEMORY_BYTES = 3 * 2**30
"""Winners are found in no more. Half of it is keys, and Arrow puts no more than 2 GiB of them together."""

BYTES_PER_KEY = 24
"""Memory that finding the latest record of one key takes, besides the key itself."""

BYTES_PER_ORDERED_KEY = 52
"""The same where an order decides."""

LEAST_RECORDS = 1_000_000
"""A range of fewer is not worth a task of its own."""

KEYS_PER_LOOK = 50
"""To ask the index of a segment for a key takes as long as reading so many keys."""
KEYS_PER_WANTED = 512
"""An index is asked for one key of so many at most, so that little is lost where its answer is to read all."""
KEYS_PER_CANDIDATE = 1024
"""To read one record by its page takes as long as reading so many keys."""


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


def key_pass_shapes(plans: Sequence[LogPlan], task_memory_bytes: int, slots: int) -> tuple[KeyPassShape, ...]:
    """How the key pass of each log of a run is cut that may do `slots` tasks at once."""
    logs = sum(1 for plan in plans if plan.scanned)
    return tuple(key_pass_shape(plan, task_memory_bytes=task_memory_bytes, slots=slots, logs=logs) for plan in plans)


def key_pass_shape(plan: LogPlan, *, task_memory_bytes: int, slots: int, logs: int) -> KeyPassShape:
    """Ranges for one of `logs` logs that share `slots` tasks at once."""
    per_key = BYTES_PER_ORDERED_KEY if plan.rules.is_ordered else BYTES_PER_KEY
    needed_bytes = sum(s.records * per_key + s.scan_bytes for s in plan.dirty)  # what else is read passes by
    by_memory = -(-needed_bytes // winners_memory(task_memory_bytes))
    by_slots = min(-(-slots // max(1, logs)), keys_read(plan) // LEAST_RECORDS, MAX_READS)
    ranges = max(1, by_memory, by_slots)
    return KeyPassShape(max(ranges, slots) if by_memory > MAX_READS else ranges, by_memory > MAX_READS)


def keys_read(plan: LogPlan) -> int:
    """How many keys can be read in the time in which all of the plan are, those found by an index included."""
    wanted = sum(s.records for s in plan.dirty)
    by_index = [s for s in plan.looked_at if s.keys_indexed and _is_asked(s, plan.rules, wanted)]
    whole = sum(s.records for s in plan.scanned + plan.above_horizon + plan.chunks)
    looked_up = wanted * (KEYS_PER_LOOK * len(by_index) + KEYS_PER_CANDIDATE)
    return whole - max(0, sum(s.records for s in by_index) - looked_up)


def most_dead(plan: LogPlan) -> int:
    """At most so many records are dead or alive against what their portion is: those of which positions are kept."""
    wanted = sum(s.records for s in plan.dirty)
    asked = sum(s.records for s in plan.looked_at if s.keys_indexed and _is_asked(s, plan.rules, wanted))
    return sum(s.records for s in plan.scanned) - max(0, asked - wanted)


def _is_asked(segment: Segment, rules: SurvivorRules, wanted: int) -> bool:
    """Whether so many keys are looked up by its index, and no other record of it can go."""
    if wanted * KEYS_PER_WANTED > segment.records or may_expire(segment, rules):
        return False
    return only_keys_decide(segment, rules)


def only_keys_decide(segment: Segment, rules: SurvivorRules) -> bool:
    """Whether every record of a clean segment stays that no other supersedes, tombstones apart."""
    aged = rules.values_expire_before_ms is not None and segment.min_timestamp_ms < rules.values_expire_before_ms
    within = rules.log_start <= segment.base_offset and segment.end_offset <= rules.horizon
    return within and not aged and segment.null_keys == 0 and not isinstance(rules.order, ByHeader)
