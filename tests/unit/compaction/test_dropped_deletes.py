"""Which readers' cursors may have missed a delete (C49)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.missed import DroppedDeletes
from lithify.model.topic.log import FIRST_EPOCH, LogState
from lithify.rules.compaction.tombstones import DROPS_KEPT, delete_retention_point, missed_deletes, with_drop
from lithify.rules.lifecycle.cuts import uncompacted
from support.builders import some_settings
from support.topics.pure_rounds import a_pure_log

DAY = 86_400_000


def dropping(*drops: tuple[int, int]) -> LogState:
    """A log that dropped deletes, as (epoch, below)."""
    kept: tuple[DroppedDeletes, ...] = ()
    for epoch, below in drops:
        kept = with_drop(kept, DroppedDeletes(epoch, below))
    return LogState(0, log_end_offset=100, dropped=kept)


def missed(log: LogState, offset: int, epoch: int, *, compacted: bool = True) -> bool:
    return missed_deletes(log, offset, epoch, compacted=compacted) is not None


def test_a_cursor_below_a_later_drop_misses_it_and_no_other_does():
    """C49: neither one at or above the last delete that went, nor one of the epoch of the drop or later."""
    log = dropping((5, 40))
    assert missed_deletes(log, 39, 4, compacted=True) == DroppedDeletes(5, 40)
    assert not missed(log, 40, 4)
    assert not missed(log, 39, 5)
    assert not missed(LogState(0), 0, FIRST_EPOCH)


def test_a_later_drop_that_reaches_further_says_it_all():
    """C49: so one entry is enough as long as rounds go up."""
    log = dropping((2, 10), (5, 40), (7, 40), (9, 60))
    assert log.dropped == (DroppedDeletes(9, 60),)
    lower = dropping((2, 60), (5, 40))
    assert [missed(lower, *cursor) for cursor in ((50, 1), (50, 2), (30, 4), (30, 5))] == [True, False, True, False]


def test_the_delete_retention_point_is_where_no_delete_has_gone_any_more():
    """C49: a reader that starts there has missed none, whatever it has read before; one below may have."""
    log = dropping((2, 60), (5, 40))
    assert delete_retention_point(log) == 60
    assert missed(log, 59, 1)
    assert not missed(log, 60, 0)
    restored = replace(log, dropped=(*log.dropped, DroppedDeletes(7, 90, restored=True)))
    assert delete_retention_point(restored) == 60
    assert delete_retention_point(replace(log, log_start_offset=70)) == 70


def test_values_that_are_back_do_not_hide_that_deletes_are_gone():
    """C49, C69: reads as of a point, and `status`, ask for deletes that are gone alone."""
    gone, back = DroppedDeletes(2, 10), DroppedDeletes(5, 40, restored=True)
    state = LogState(0, log_end_offset=100, dropped=with_drop((gone,), back))
    assert state.dropped == (gone, back)
    assert delete_retention_point(state) == 10
    for epoch in range(6, 4 * DROPS_KEPT):
        state = replace(state, dropped=with_drop(state.dropped, DroppedDeletes(epoch, 100 - epoch, restored=True)))
    assert len(state.dropped) == DROPS_KEPT
    assert delete_retention_point(state) == 10


def test_entries_are_few_and_what_is_folded_errs_towards_missed():
    """C49: an old cursor may be said to have missed something, none not to have, where it has."""
    drops = [(epoch, 100 - epoch) for epoch in range(2, 4 * DROPS_KEPT)]
    log = dropping(*drops)
    assert len(log.dropped) == DROPS_KEPT
    for offset in range(100):
        for epoch in range(4 * DROPS_KEPT):
            truly = any(later > epoch and below > offset for later, below in drops)
            assert missed(log, offset, epoch) or not truly
    assert not missed(log, 0, drops[-1][0])


def test_deletes_that_a_view_had_are_missed_by_readers_of_compacted_data_alone():
    """C33, C49: the backlog has them still, and so have all once the view is gone."""
    view, log = DroppedDeletes(5, 40, of_view=True), DroppedDeletes(4, 20)
    state = LogState(0, log_end_offset=100, dropped=with_drop((log,), view))
    assert missed(state, 30, 4) and not missed(state, 30, 4, compacted=False)
    assert missed(state, 10, 3, compacted=False), "that of the log stands, though the view reaches over it"
    assert uncompacted(state, ()).dropped == (log,)


def test_a_round_says_below_which_offset_it_dropped_deletes():
    """C49: up to the end of the segment that the last one stood in; superseded ones are no matter."""
    log = a_pure_log("a=∅ x=1", "b=1 b=∅", "c=1 d=1")
    log.round(some_settings(), 1000)
    log.draw("b=2")
    log.round(some_settings(), 1001)
    assert log.state.dropped == (), "b's delete is superseded, so that a later reader gets the newer value"
    log.round(some_settings(), 1000 + DAY)
    (drop,) = log.state.dropped
    assert (drop.epoch, drop.of_view) == (FIRST_EPOCH + 1, False)
    assert 1 <= drop.below <= 6


@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_without_retention_deletes_go_in_the_round_that_meets_them(mode):
    """C18, C33, C49: of a view it is said that it was the view."""
    log = a_pure_log("a=1 b=1", "a=∅", "c=1")
    log.state = replace(log.state, epoch=7)
    log.round(some_settings(delete_retention_ms=0, compaction_mode=mode), 1000)
    assert log.state.dropped == (DroppedDeletes(8, 3, of_view=mode == "side-by-side"),)


def test_segments_that_lost_no_delete_do_not_count():
    """C49, C16: a null value without a key is no delete; a reader below it misses nothing."""
    log = a_pure_log("a=∅", "·=∅")
    log.round(some_settings(delete_retention_ms=0, null_key="retain"), 1000)
    assert [drop.below for drop in log.state.dropped] == [1]
