"""The laws of tombstone steps, whatever rounds do (C18, C19)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lithify.rules.compaction.tombstones import (
    STEPS_KEPT,
    Expiry,
    Steps,
    folded,
    next_expiry_ms,
    tombstones_expire_below,
    with_round,
)
from lithify.testing.oracle_engine import step_of

ROUNDS = st.lists(st.tuples(st.integers(1, 9), st.integers(-3, 9), st.integers(0, 3)), max_size=STEPS_KEPT + 20)
TIMES = st.integers(0, 300)


def steps_of(rounds: list[tuple[int, int, int]]) -> Steps:
    """Steps as rounds leave them that are never folded: (length, time passed, tombstones)."""
    steps: Steps = ()
    end = now_ms = 0
    for length, passed, tombstones in rounds:
        end, now_ms = end + length, now_ms + passed
        steps = with_round(steps, horizon=end, now_ms=now_ms, tombstones=tombstones)
    return steps


def time_of(steps: Steps, offset: int) -> int | None:
    index = step_of(steps, offset)
    return None if index is None else steps[index].time_ms


@given(ROUNDS)
def test_steps_ascend_in_offsets_and_times(rounds):
    """C18: whatever the clock does."""
    steps = steps_of(rounds)
    assert [s.time_ms for s in steps] == sorted(s.time_ms for s in steps)
    assert [s.end_offset for s in steps] == sorted({s.end_offset for s in steps})


@given(ROUNDS, st.integers(0, 400), TIMES, TIMES)
def test_folding_makes_no_tombstone_older_and_none_unknown(rounds, log_start, retention_ms, now_ms):
    """C19: above S, and where the step has a tombstone left."""
    steps = steps_of(rounds)
    after = folded(steps, log_start=log_start, held_ms=retention_ms, now_ms=now_ms)
    begin = 0
    for step in steps:
        for offset in range(max(begin, log_start), step.end_offset):
            before, later = time_of(steps, offset), time_of(after, offset)
            assert later is not None and before is not None and later >= before
        begin = step.end_offset


@given(ROUNDS, st.integers(0, 400), TIMES, TIMES)
def test_folding_keeps_steps_few_and_every_tombstone_counted(rounds, log_start, retention_ms, now_ms):
    """C19."""
    steps = steps_of(rounds)
    after = folded(steps, log_start=log_start, held_ms=retention_ms, now_ms=now_ms)
    assert len(after) <= STEPS_KEPT
    assert sum(s.tombstones for s in after) == sum(s.tombstones for s in steps if s.end_offset > log_start)
    assert folded(after, log_start=log_start, held_ms=retention_ms, now_ms=now_ms) == after


@given(ROUNDS, TIMES, TIMES)
def test_folding_does_not_change_what_expires_now(rounds, retention_ms, now_ms):
    """C18, C19: as far as there are tombstones."""
    steps = steps_of(rounds)
    few = steps[-STEPS_KEPT:]
    after = folded(few, log_start=0, held_ms=retention_ms, now_ms=now_ms)
    goes = [tombstones_expire_below(s, horizon=10**6, expiry=Expiry(retention_ms), now_ms=now_ms) for s in (few, after)]
    begin = 0
    for step in few:
        if step.tombstones:
            for offset in range(begin, step.end_offset):
                assert (offset < goes[0]) == (offset < goes[1])
        begin = step.end_offset


@given(ROUNDS, TIMES)
def test_tombstones_go_exactly_when_the_log_says_it_is_due(rounds, retention_ms):
    """C21: at the next expiry something goes, a millisecond before nothing does."""
    steps = steps_of(rounds)
    due_ms = next_expiry_ms(steps, Expiry(retention_ms))
    if due_ms is None:
        assert sum(s.tombstones for s in steps) == 0
        return

    def going(now_ms: int) -> int:
        below = tombstones_expire_below(steps, horizon=10**6, expiry=Expiry(retention_ms), now_ms=now_ms)
        return sum(s.tombstones for s in steps if s.end_offset <= below)

    assert going(due_ms) > 0
    assert retention_ms == 0 or going(due_ms - 1) == 0


@given(ROUNDS, TIMES, st.integers(0, 50))
def test_a_longer_retention_lets_nothing_go_earlier(rounds, now_ms, retention_ms):
    """C18: the setting in force counts."""
    steps = [replace(s, tombstones=1) for s in steps_of(rounds)]
    goes = [
        tombstones_expire_below(tuple(steps), horizon=10**6, expiry=Expiry(ms), now_ms=now_ms)
        for ms in (retention_ms, retention_ms + 1)
    ]
    assert goes[1] <= goes[0]


@given(st.integers(1, 10**7), st.sampled_from([1_000, 60_000, 86_400_000]), st.integers(0, 5))
def test_however_often_rounds_run_tombstones_expire(every_ms, retention_ms, jitter):
    """C18, C19: merging delays no tombstone for long, also if every round covers some."""
    steps, times, gone = (), [0], 0
    for number in range(1, 4 * STEPS_KEPT):
        times.append(times[-1] + every_ms + number * 7919 % (jitter * every_ms + 1))
        now_ms = times[-1]
        steps = with_round(steps, horizon=number, now_ms=now_ms, tombstones=1)
        steps = folded(steps, log_start=gone, held_ms=retention_ms, now_ms=now_ms)
        below = tombstones_expire_below(steps, horizon=number, expiry=Expiry(retention_ms), now_ms=now_ms)
        gone = max(gone, below)
        late_ms = 8 * (retention_ms + every_ms) / STEPS_KEPT
        assert all(now_ms <= t + retention_ms + late_ms + (jitter + 1) * every_ms for t in times[gone + 1 :])
