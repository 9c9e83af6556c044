"""How many ranges a key pass has: by memory, and by the tasks that may run at once (C38)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.rules.compaction.key_pass_shape import (
    BYTES_PER_KEY,
    BYTES_PER_ORDERED_KEY,
    LEAST_RECORDS,
    MAX_READS,
    KeyPassShape,
    key_pass_shape,
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
