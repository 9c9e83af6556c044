"""What the state of a log says of its segments (C27, C36)."""

from __future__ import annotations

from dataclasses import replace

from lithify.model.log import LastRecord
from lithify.model.log_arithmetic import last_readable, measured
from lithify.model.segment import volume_of
from support.builders import a_log


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
