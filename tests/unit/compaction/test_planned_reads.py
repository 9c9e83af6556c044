"""What a plan says of how often keys are read, against what a run on one machine may do (C30, C38)."""

from __future__ import annotations

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
    winners_memory,
)

MILLION = 10**6


@st.composite
def loads(draw: st.DrawFn) -> KeyLoad:
    dirty = draw(st.integers(1, 4)) * draw(
        st.sampled_from([MILLION // 2, MILLION, MILLION, 10 * MILLION, 50 * MILLION])
    )
    clean = draw(st.sampled_from([0, 0, 1, MILLION, 100 * MILLION]))
    key_bytes = draw(st.sampled_from([1, 16, 36, 100, 900]))
    per_key = draw(st.sampled_from([BYTES_PER_KEY, BYTES_PER_ORDERED_KEY]))
    scan_bytes = int(dirty * key_bytes * draw(st.sampled_from([0.01, 0.2, 1])))
    return KeyLoad(
        keys=dirty + clean,
        dirty=dirty,
        needed_bytes=dirty * per_key + scan_bytes,
        segments=draw(st.integers(1, 30)),
        most_bytes=dirty * LONG_KEY_BYTES + scan_bytes * UNPACKED,
        alone=not clean,
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
    planned = balanced_shapes(logs, task_bytes, slots)
    run = balanced_shapes(logs, task_bytes, slots, one_machine=True)
    for load, plan, shape in zip(logs, planned, run, strict=True):
        held = winners_memory(task_bytes, alone=load.alone, ahead=shape.ahead)
        assert most_reads(load, shape, held) <= plan.most_reads
