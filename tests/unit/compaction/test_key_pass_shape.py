"""How many ranges a key pass has: by memory, and by the tasks that may run at once (C38)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lithify.model.settings.table import ByHeader
from lithify.rules.compaction.key_pass_shape import (
    BYTES_PER_KEY,
    BYTES_PER_ORDERED_KEY,
    COMPARED,
    DISTINCT,
    KEYS_PER_CANDIDATE,
    KEYS_PER_LOOK,
    MAX_READS,
    KeyLoad,
    KeyPassShape,
    balanced_shapes,
    key_pass_shapes,
    keys_read,
    most_dead,
    winners_memory,
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
def test_the_latest_of_each_key_find_room_in_their_part_of_a_tasks_memory(
    config: dict[str, object], per_key: int
) -> None:
    fits = int(winners_memory(MIB, alone=True) / DISTINCT) // per_key
    shuffled = math.ceil((MAX_READS + 1) * winners_memory(MIB, alone=True) / winners_memory(MIB))
    shapes = [
        key_pass_shapes([a_plan(records, **config)], MIB, 1)[0]
        for records in (fits // 3, fits, fits + 1, (MAX_READS + 1) * fits)
    ]
    assert shapes == [
        KeyPassShape(1, shuffled=False, may_exceed=True),
        KeyPassShape(1, shuffled=False, may_exceed=True),
        KeyPassShape(2, shuffled=False, may_exceed=True),
        KeyPassShape(shuffled, shuffled=True, may_exceed=True),
    ]


def a_load(millions: float, *, clean: float = 0, segments: int | None = None) -> KeyLoad:
    """A log of so many million dirty records, and clean ones, each segment with a million."""
    whole = millions + clean
    files = max(1, int(whole)) if segments is None else segments
    dirty = int(millions * 1e6)
    return KeyLoad(int(whole * 1e6), dirty, 29 * dirty, files, 29 * dirty)


def ranges_of(loads: list[KeyLoad], slots: int) -> list[int]:
    return [shape.ranges for shape in balanced_shapes(loads, 2**30, slots)]


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 8, 16, 200])
@pytest.mark.parametrize("millions", [20, 100, 300, 1000, 5000])
def test_the_ranges_of_one_large_log_leave_no_slot_over(slots: int, millions: int) -> None:
    (shape,) = balanced_shapes([a_load(millions)], 2**30, slots)
    used = min(slots, millions)  # a range has a million keys at least
    assert shape.ranges % used == 0
    assert shape.shuffled == (shape.ranges > MAX_READS)


def ahead_of(loads: list[KeyLoad], slots: int) -> list[tuple[int, bool]]:
    """The ranges of logs on one machine, and whether their tasks read ahead."""
    return [(shape.ranges, shape.ahead) for shape in balanced_shapes(loads, 2**30, slots, one_machine=True)]


def test_on_one_machine_a_task_takes_two_cores_where_keys_are_expected_to_fit() -> None:
    assert ahead_of([a_load(10)], 2) == ahead_of([a_load(40)], 2) == [(1, True)]
    assert ahead_of([a_load(10)], 1) == [(1, False)]
    assert ahead_of([a_load(10)], 4) == [(2, True)]
    assert ahead_of([a_load(10, clean=90)], 2) == [(1, True)]
    assert ahead_of([a_load(50)], 2) == [(2, False)]
    assert ahead_of([a_load(1.5)], 2) == [(1, False)]  # not worth a second core
    assert ahead_of([a_load(10)] * 9, 2) == [(1, False)] * 9  # other logs keep the cores busy
    assert ahead_of([a_load(10)] * 3, 2) == [(1, True), (1, False), (1, False)]


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("millions", [1, 5, 10, 20, 35, 100])
@pytest.mark.parametrize("clean", [0, 50])
def test_a_task_that_reads_ahead_reads_no_more(slots: int, millions: int, clean: int) -> None:
    """C30, since plans do not count on it."""
    (apart,) = balanced_shapes([a_load(millions, clean=clean)], 2**30, slots)
    (shape,) = balanced_shapes([a_load(millions, clean=clean)], 2**30, slots, one_machine=True)
    if shape.ahead:
        assert shape.ranges < apart.ranges
        assert not shape.shuffled
        assert shape.most_reads <= apart.most_reads
    else:
        assert shape == apart


def test_keys_are_read_once_for_many_slots_and_as_often_as_there_are_few() -> None:
    shapes = [balanced_shapes([a_load(40)], 2**30, slots)[0] for slots in (1, 2, 4, 16, 40)]
    assert [shape.reads for shape in shapes] == [1, 2, 4, 1, 1]
    assert [shape.ranges for shape in shapes] == [1, 2, 4, 16, 40]


def test_a_log_in_few_segments_is_read_by_ranges_as_few_tasks_could_send_its_keys() -> None:
    (shape,) = balanced_shapes([a_load(40, segments=2)], 2**30, 16)
    assert shape == KeyPassShape(MAX_READS, shuffled=False)


def test_logs_that_do_not_fill_the_slots_evenly_are_divided_so_that_they_do() -> None:
    assert ranges_of([a_load(10)] * 3, 2) == [2, 1, 1]
    assert ranges_of([a_load(5)] * 20, 16) == [4] * 4 + [1] * 16
    assert ranges_of([a_load(1.5), a_load(50)], 4) == [1, 4]
    assert ranges_of([a_load(10)] * 4, 4) == [1] * 4
    assert ranges_of([a_load(10)] * 9, 2) == [1] * 9  # the wait at their end is short


@pytest.mark.parametrize("logs", range(1, 12))
@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8, 16])
def test_dividing_logs_never_makes_the_slowest_slot_slower(logs: int, slots: int) -> None:
    """By what reading and comparing cost, told here once more, each log in at most `MAX_READS` ranges."""
    loads = [a_load(3 * (number + 1)) for number in range(logs)]
    shapes = balanced_shapes(loads, 2**40, slots)
    if any(shape.shuffled for shape in shapes):
        return

    def slowest(ranges: list[int]) -> float:
        busy = [0.0] * slots
        costs = [load.keys + COMPARED * load.dirty / n for load, n in zip(loads, ranges, strict=True) for _ in range(n)]
        for cost in sorted(costs, reverse=True):
            busy[busy.index(min(busy))] += cost
        return max(busy)

    assert slowest([shape.ranges for shape in shapes]) <= 1.03 * slowest([1] * logs)


def test_ranges_that_may_not_fit_are_planned_as_read_more_often() -> None:
    """C30: the numbers of a plan are upper bounds."""
    assert KeyPassShape(2, shuffled=False).most_reads == 2
    assert KeyPassShape(2, shuffled=False, may_exceed=True).most_reads == 4 + MAX_READS
    assert KeyPassShape(20, shuffled=True, may_exceed=True).most_reads == 1


def test_few_records_are_planned_as_read_once() -> None:
    """With 1 GiB, unless their keys are longer than a kilobyte, or take a sixteenth of their size when stored."""
    (few,) = key_pass_shapes([a_plan(400_000)], 2**30, 1)
    (many,) = key_pass_shapes([a_plan(500_000)], 2**30, 1)
    assert (few.most_reads, many.most_reads) == (1, 2 + MAX_READS)


def test_tombstones_that_wait_for_what_is_above_the_horizon_are_planned_as_held() -> None:
    """C20, C30: those of the clean part take memory, too."""
    plan = a_plan_with_clean(1, {"tombstones_expire_below": 1}, null_values=1)
    waiting = replace(plan, above_horizon=(a_segment("u", 10, 20),))
    shapes = [key_pass_shapes([one], 2**30, 1)[0] for one in (plan, waiting)]
    assert [shape.most_reads for shape in shapes] == [1, 2 + MAX_READS]


def test_logs_without_work_have_no_part_in_the_slots() -> None:
    idle, busy = replace(a_plan(0), dirty=()), a_plan(40_000_000)
    assert [shape.ranges for shape in key_pass_shapes([idle, busy, idle], 2**30, 2)] == [1, 2, 1]
    assert key_pass_shapes([], 2**30, 2) == ()


def a_plan_with_clean(dirty: int, rules: dict[str, object] | None = None, **clean: object) -> LogPlan:
    """A clean segment of 100 M keys with an index, and so many dirty records."""
    plan = a_plan(dirty)
    segment = replace(a_segment("c", 0, 10), **{"records": 100_000_000, "keys_indexed": True, "null_keys": 0, **clean})
    at_end = replace(plan.rules, horizon=10**9, **(rules or {}))  # type: ignore[arg-type]
    return replace(plan, looked_at=(segment,), rules=at_end)


def test_a_round_that_asks_an_index_is_small() -> None:
    plan = a_plan_with_clean(2000)
    assert (keys_read(plan), most_dead(plan)) == (2000 * (1 + KEYS_PER_LOOK + KEYS_PER_CANDIDATE), 4000)
    assert key_pass_shapes([plan], 2**30, 16)[0].ranges == 2


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
