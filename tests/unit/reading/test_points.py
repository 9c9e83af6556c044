"""Which offsets a version of a log covers, where random histories rarely lead (C69)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.missed import DroppedDeletes
from lithify.model.topic.log import LogState, View
from lithify.rules.reading.pieces import Reading
from lithify.rules.reading.points import points_of
from support.topics.memory_topic import MemoryTopic

LOG = LogState(0, log_start_offset=0, first_dirty_offset=6, log_end_offset=9, losers_removed=True)
VIEWED = replace(LOG, losers_removed=False, view=View(losers_removed=True))


def covered(log: LogState, newest: LogState | None = None, *, compacted: bool = True, **config: object) -> list[range]:
    state = MemoryTopic(**config).state
    of, at_last = (replace(state, logs=(one,)) for one in (log, newest or log))
    return [range(p.first, p.last + 1) for p in points_of(of, 0, at_last, compacted=compacted)]


def test_in_place_it_is_from_the_first_dirty_offset_on_or_all_where_nothing_was_removed() -> None:
    assert covered(LOG) == [range(6, 10)]
    assert covered(replace(LOG, compacted_below=8)) == [range(8, 10)]
    assert covered(replace(LOG, losers_removed=False)) == [range(10)]
    assert covered(replace(LOG, log_start_offset=7, first_dirty_offset=7, losers_removed=False)) == [range(7, 10)]


def test_side_by_side_it_is_the_backlog_until_that_is_trimmed_and_then_the_view() -> None:
    assert covered(VIEWED) == [range(10), range(6, 10)]
    trimmed = replace(VIEWED, log_start_offset=3)
    assert covered(trimmed) == [range(6, 10)]
    assert covered(trimmed, compacted=False) == [range(3, 10)]
    assert covered(replace(VIEWED, compacted_below=8, losers_removed=True))[1] == range(8, 10)


def test_a_view_that_a_truncation_has_set_back_covers_nothing_below_what_it_was_compacted_to() -> None:
    back = replace(VIEWED, log_start_offset=3, first_dirty_offset=3)
    back = replace(back, dropped=(DroppedDeletes(5, 8, of_view=True, restored=True),))
    assert covered(back) == [range(8, 10)]


def test_offsets_that_were_truncated_since_are_other_records() -> None:
    newest = replace(LOG, generation=1, truncated=(7,), log_end_offset=20)
    assert covered(LOG, newest) == [range(6, 8)]
    assert covered(LOG, replace(newest, generation=9)) == []


def test_where_a_compacted_log_was_cut_only_earlier_versions_have_what_counted_there() -> None:
    """In place: values that the records from the cut on had superseded are gone."""
    cut = replace(LOG, first_dirty_offset=4, log_end_offset=9, generation=1, truncated=(4,))
    lossy = replace(cut, dropped=(DroppedDeletes(5, 6, of_view=False, restored=True),))
    assert (covered(cut), covered(lossy)) == ([range(4, 10)], [range(5, 10)])
    assert covered(replace(lossy, generation=12, truncated=(9,) * 8)) == [range(5, 10)]  # where it was cut is forgotten
    assert covered(replace(lossy, first_dirty_offset=7)) == [range(7, 10)]
    assert covered(replace(lossy, log_start_offset=4)) == [range(4, 10)]
    assert covered(replace(lossy, log_end_offset=4)) == []


def test_only_a_restored_note_of_the_log_above_the_cut_keeps_the_cut_from_being_covered() -> None:
    cut = replace(LOG, first_dirty_offset=4, generation=1, truncated=(4,))
    for note in (
        DroppedDeletes(5, 6, of_view=False),
        DroppedDeletes(5, 6, of_view=True, restored=True),
        DroppedDeletes(5, 4, of_view=False, restored=True),
    ):
        assert covered(replace(cut, dropped=(note,))) == [range(4, 10)]


@pytest.mark.parametrize("losers_removed", [(True, False), (False, True), (False, False)])
def test_a_view_has_all_records_only_if_no_round_has_taken_any(losers_removed: tuple[bool, bool]) -> None:
    of_log, of_view = losers_removed
    state = MemoryTopic(compaction_mode="side-by-side").state
    log = replace(VIEWED, losers_removed=of_log, view=View(losers_removed=of_view))
    state = replace(state, logs=(log,))
    points = [p for p in points_of(state, 0, state, compacted=True) if p.how == Reading(compacted=True)]
    assert [p.whole for p in points] == [not any(losers_removed)]


@pytest.mark.parametrize("of_view", [False, True])
def test_where_orders_decide_a_log_without_its_deletes_covers_nothing(of_view: bool) -> None:
    log = replace(VIEWED if of_view else LOG, dropped=(DroppedDeletes(5, 6, of_view=of_view),))
    assert covered(log) != []
    assert covered(log, compaction_strategy="timestamp") == ([range(10)] if of_view else [])
