"""How many ranges a key pass has: by memory, and by the tasks that may run at once (C38)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.settings.table import ByHeader
from lithify.rules.compaction.key_pass_shape import (
    BYTES_PER_KEY,
    BYTES_PER_ORDERED_KEY,
    KEYS_PER_CANDIDATE,
    KEYS_PER_LOOK,
    LEAST_RECORDS,
    MAX_READS,
    KeyPassShape,
    key_pass_shape,
    keys_read,
    most_dead,
)
from lithify.rules.compaction.planner import LogPlan
from support.builders import a_log, a_segment

MIB = 2**20


def a_plan(records: int, **config: object) -> LogPlan:
    segment = replace(a_segment("s", 0, records), records=records, scan_bytes=0)
    return replace(a_log("a=1").plan(**config), dirty=(segment,))


@pytest.mark.parametrize(
    ("config", "per_key"), [({}, BYTES_PER_KEY), ({"compaction_strategy": "timestamp"}, BYTES_PER_ORDERED_KEY)]
)
def test_the_keys_of_a_range_find_room_in_half_of_a_tasks_memory(config: dict[str, object], per_key: int) -> None:
    fits = MIB // 2 // per_key
    shapes = [
        key_pass_shape(a_plan(records, **config), task_memory_bytes=MIB, slots=1, logs=1)
        for records in (fits, fits + 1, MAX_READS * fits + MAX_READS)
    ]
    assert shapes == [KeyPassShape(1, False), KeyPassShape(2, False), KeyPassShape(MAX_READS + 1, True)]


def test_tasks_at_once_are_shared_by_the_logs_and_each_has_enough_records() -> None:
    plan = a_plan(3 * LEAST_RECORDS)
    ranges = [
        key_pass_shape(plan, task_memory_bytes=2**30, slots=slots, logs=logs).ranges
        for slots, logs in ((1, 1), (2, 1), (8, 1), (4, 2), (5, 4))
    ]
    assert ranges == [1, 2, 3, 2, 2]


def a_plan_with_clean(dirty: int, rules: dict[str, object] | None = None, **clean: object) -> LogPlan:
    """A clean segment of 100 M keys with an index, and so many dirty records."""
    plan = a_plan(dirty)
    segment = replace(a_segment("c", 0, 10), **{"records": 100_000_000, "keys_indexed": True, "null_keys": 0, **clean})
    at_end = replace(plan.rules, horizon=10**9, **(rules or {}))  # type: ignore[arg-type]
    return replace(plan, looked_at=(segment,), rules=at_end)


def test_a_round_that_asks_an_index_is_small() -> None:
    plan = a_plan_with_clean(2000)
    assert (keys_read(plan), most_dead(plan)) == (2000 * (1 + KEYS_PER_LOOK + KEYS_PER_CANDIDATE), 4000)
    assert key_pass_shape(plan, task_memory_bytes=2**30, slots=16, logs=1).ranges == 2


@pytest.mark.parametrize(
    "plan",
    [
        a_plan_with_clean(2000, keys_indexed=False),
        a_plan_with_clean(1_000_000),
        a_plan_with_clean(2000, null_keys=1),
        a_plan_with_clean(2000, {"log_start": 1}),
        a_plan_with_clean(2000, {"values_expire_before_ms": 2**40}),
        a_plan_with_clean(2000, {"order": ByHeader("h")}),
        a_plan_with_clean(2000, {"tombstones_expire_below": 1}, null_values=1),
    ],
)
def test_a_round_that_reads_all_keys_is_not(plan: LogPlan) -> None:
    assert keys_read(plan) == most_dead(plan) == 100_000_000 + plan.dirty[0].records


def test_a_plan_counts_the_bytes_of_indexes() -> None:
    """C30: its numbers are upper bounds."""
    plain, indexed = (replace(a_segment("s", 0, 10), keys_indexed=which) for which in (False, True))
    assert plain.most_scan_bytes == plain.scan_bytes
    assert indexed.most_scan_bytes > plain.scan_bytes + 6 * 10
