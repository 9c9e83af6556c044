"""What a plan says of how often keys are read, against what a run on one machine may do (C30, C38)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.rules.compaction.key_pass_shape import (
    BYTES_PER_KEY,
    BYTES_PER_ORDERED_KEY,
    LONG_KEY_BYTES,
    MAX_READS,
    UNPACKED,
    KeyLoad,
    KeyPassShape,
    balanced_shapes,
    key_pass_shapes,
    winners_memory,
)
from support.builders import a_log, a_segment

MILLION = 10**6


@st.composite
def loads(draw: st.DrawFn) -> KeyLoad:
    """A log of which a file was looked at, which says anything of its keys."""
    dirty = draw(st.integers(1, 4)) * draw(
        st.sampled_from([MILLION // 2, MILLION, MILLION, 10 * MILLION, 50 * MILLION])
    )
    clean = draw(st.sampled_from([0, 0, 1, MILLION, 100 * MILLION]))
    key_bytes = draw(st.sampled_from([1, 16, 36, 100, 900]))
    per_key = draw(st.sampled_from([BYTES_PER_KEY, BYTES_PER_ORDERED_KEY]))
    scan_bytes = int(dirty * key_bytes * draw(st.sampled_from([0.01, 0.2, 1])))
    said = dirty * key_bytes * draw(st.sampled_from([0, 0.01, 1, 1, 1, 1, 100, math.inf]))
    return KeyLoad(
        keys=dirty + clean,
        dirty=dirty,
        needed_bytes=dirty * per_key + scan_bytes,
        segments=draw(st.integers(1, 30)),
        most_bytes=dirty * LONG_KEY_BYTES + scan_bytes * UNPACKED,
        held_bytes=draw(st.sampled_from([None, *3 * [max(dirty * per_key + said, 2 * said)]])),
    )


def most_reads(load: KeyLoad, shape: KeyPassShape, memory_bytes: int) -> int:
    """How often keys are read at most, by the memory in which they are really held."""
    if shape.shuffled:
        return 1
    divides = shape.ranges * memory_bytes < load.most_bytes
    return 2 * shape.ranges + MAX_READS if divides else shape.ranges


TASK_BYTES = st.integers(25, 34).map(lambda power: 2**power)


@given(st.lists(loads(), min_size=1, max_size=4), TASK_BYTES, st.integers(2, 64))
@settings(max_examples=400, deadline=None)
def test_no_log_is_read_more_often_than_is_planned(logs: list[KeyLoad], task_bytes: int, slots: int) -> None:
    planned = balanced_shapes([replace(load, held_bytes=None) for load in logs], task_bytes, slots)
    for load, plan, shape in zip(logs, planned, balanced_shapes(logs, task_bytes, slots), strict=True):
        held = winners_memory(task_bytes)
        assert most_reads(load, shape, held) <= plan.most_reads
        if shape.ahead:
            assert load.held_bytes is not None
            assert load.held_bytes <= shape.ranges * held


@pytest.mark.parametrize("key_bytes", [0.0, 16.0, 1e300, math.inf])
def test_whatever_a_file_says_of_its_keys_a_run_has_a_shape(key_bytes: float) -> None:
    """Of one that cannot be read they are infinite: the task that reads it says what is wrong (C8, C31)."""
    segment = replace(a_segment("s", 0, 10_000_000), records=10_000_000, scan_bytes=0)
    plan = replace(a_log("a=1").plan(), dirty=(segment,))
    (shape,) = key_pass_shapes([plan], 2**30, 2, lambda _: key_bytes)
    assert shape.ahead == (key_bytes <= 16)
