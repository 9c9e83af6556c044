"""The state of logs: what a commit builds on, and what it says of the segments (C6, C27, C36)."""

from __future__ import annotations

from dataclasses import replace

from lithify.model.log_arithmetic import last_readable, measured
from lithify.model.segment import by_partition, segments_of, volume_of
from lithify.model.topic.log import BATCHES_KEPT, RUN_IDS_KEPT, LastRecord, LogState, WrittenBatch
from support.builders import a_log, a_segment


def test_a_log_remembers_its_latest_runs():
    """C6: unknown outcomes are settled by them, and the state stays small."""
    state = LogState(0)
    for number in range(RUN_IDS_KEPT + 2):
        state = state.with_run(f"run{number}")
    assert state.run_ids == tuple(f"run{number}" for number in range(2, RUN_IDS_KEPT + 2))


def test_the_segments_of_a_log_are_in_offset_order():
    """C13: and of no other partition."""
    segments = (a_segment("c", 10, 20), a_segment("x", 0, 5, partition=1), a_segment("b", 0, 10))
    assert [s.path for s in segments_of(segments, 0)] == ["b", "c"]
    assert by_partition(segments) == {p: segments_of(segments, p) for p in {s.partition for s in segments}}


def test_a_segment_may_hold_tombstones_as_far_as_its_facts_tell():
    """C17."""
    for facts, as_value, as_tombstone in (
        ({"null_values": 1}, True, True),
        ({"min_value_size": 0}, False, True),
        ({"min_value_size": 1}, False, False),
    ):
        segment = a_segment(**facts)
        assert segment.may_hold_tombstones(empty_is_tombstone=False) is as_value
        assert segment.may_hold_tombstones(empty_is_tombstone=True) is as_tombstone


def test_a_log_remembers_the_latest_batch_of_each_of_the_latest_queries() -> None:
    state = LogState(0)
    for number in range(BATCHES_KEPT + 1):
        state = state.with_batch(WrittenBatch(f"q{number}", 5))
    assert state.latest_batch("q0") is None
    assert state.latest_batch("q1") == WrittenBatch("q1", 5)
    again = state.with_batch(WrittenBatch("q1", 6)).with_batch(WrittenBatch("new", 0))
    assert again.latest_batch("q1") == WrittenBatch("q1", 6)
    assert again.latest_batch("q2") is None
    assert len(again.batches) == BATCHES_KEPT


def test_volumes_count_by_the_first_dirty_offset():
    """C27: a segment on both sides of it counts as dirty."""
    log = a_log("a=1!5 b=2!7 | c=3!6")
    state = measured(replace(log.state(), first_dirty_offset=1), log.segments)
    assert (state.clean.records, state.dirty.records, state.oldest_dirty_timestamp_ms) == (0, 3, 5)
    assert state.volume == volume_of(log.segments)


def test_the_last_record_is_that_of_a_reader_from_the_log_start():
    """C36: there is none once S has passed it."""
    last = LastRecord(4, 7)
    assert (last_readable(last, 4), last_readable(last, 5), last_readable(None, 0)) == (last, None, None)
