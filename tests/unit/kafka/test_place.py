"""Where somebody outside stands in a log, and whether they can go on (C5, C7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import LogTruncatedError
from lithify.kafka.place import Place, log_of
from lithify.model.log import LogState, TopicState, View
from lithify.model.names import TopicName
from support.builders import some_settings

HOUR = 3_600_000
LOG = LogState(0, first_dirty_offset=50, log_end_offset=100, last_round_ms=10 * HOUR)


def a_state(log: LogState = LOG, *, identity: str = "i", **config: object) -> TopicState:
    settings = some_settings(**{"delete_retention_ms": HOUR, **config})
    return TopicState(TopicName("default", "t"), "t", identity, 1, "", settings, (log,), 0)


def a_place(offset: int, as_of_ms: int = 10 * HOUR) -> Place:
    return Place("i", 0, offset, as_of_ms)


def test_a_place_goes_there_and_back():
    assert Place.from_json(a_place(7).to_json()) == a_place(7)


def test_whoever_begins_stands_where_a_compacted_reader_starts():
    assert Place.first(a_state(replace(LOG, log_start_offset=3)), 0, 77) == Place("i", 0, 3, 77)
    viewed = replace(LOG, view=View(start_offset=9))
    assert Place.first(a_state(viewed), 0, 77).offset == 9
    assert Place.first(a_state(), 5, 77).offset == 0  # a partition that the lake does not have yet


def test_a_partition_that_only_kafka_has_is_an_empty_log():
    assert log_of(a_state(), 0) == LOG
    assert log_of(a_state(), 5) == LogState(5)


@pytest.mark.parametrize(("offset", "as_of_ms"), [(49, 1), (50, 99), (100, 99)])
def test_what_no_round_has_covered_is_all_seen(offset, as_of_ms):
    """Only behind the first dirty offset does the time move on: deletes below it may be ageing since before."""
    assert a_place(10, 1).moved(LOG, 99, offset) == Place("i", 0, offset, as_of_ms)


def test_the_time_never_goes_back():
    assert a_place(10, 200).moved(LOG, 99, 100).as_of_ms == 200


@pytest.mark.parametrize(
    ("offset", "as_of_ms", "gone"),
    [
        (49, 9 * HOUR, True),  # the last round came exactly delete.retention.ms later
        (49, 9 * HOUR + 1, False),
        (50, 0, False),  # no round has been above
    ],
)
def test_deletes_that_a_round_may_have_taken(offset, as_of_ms, gone):
    if gone:
        with pytest.raises(LogTruncatedError, match=f"t-0: a round may have removed deletes .* below offset {offset}"):
            a_place(offset, as_of_ms).check(a_state(), 0)
    else:
        a_place(offset, as_of_ms).check(a_state(), 0)


def test_a_log_without_a_round_has_lost_no_delete():
    a_place(0, 0).check(a_state(replace(LOG, last_round_ms=None)), 0)


def test_a_topic_that_was_made_again_is_another():
    with pytest.raises(LogTruncatedError, match="made again"):
        a_place(60).check(a_state(identity="j"), 0)


@pytest.mark.parametrize(("offset", "cut"), [(60, False), (61, True)])
def test_a_log_that_was_truncated_below(offset, cut):
    state = a_state(replace(LOG, generation=1, truncated=(60,)))
    if cut:
        with pytest.raises(LogTruncatedError, match="truncated below offset 61"):
            a_place(offset).check(state, 0)
    else:
        a_place(offset).check(state, 0)


def test_truncations_that_are_not_remembered_count_as_below():
    with pytest.raises(LogTruncatedError, match="truncated"):
        a_place(0).check(a_state(replace(LOG, generation=2, truncated=(99,))), 0)


def test_a_truncation_from_before_does_not_count():
    replace(a_place(99), generation=1).check(a_state(replace(LOG, generation=1, truncated=(60,))), 0)


def test_a_log_start_that_has_passed_the_place():
    with pytest.raises(LogTruncatedError, match="starts at 70 now, behind offset 60"):
        a_place(60).check(a_state(replace(LOG, log_start_offset=70)), 0)


def test_the_backlog_of_a_view_may_be_trimmed():
    """Only `delete-records` makes a place in a view invalid."""
    viewed = replace(LOG, log_start_offset=70, view=View(first_offset=65, start_offset=60))
    a_place(60).check(a_state(viewed), 0)
    with pytest.raises(LogTruncatedError, match="starts at 61"):
        a_place(60).check(a_state(replace(viewed, deleted_below=61)), 0)
