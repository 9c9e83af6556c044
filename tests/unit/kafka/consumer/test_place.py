"""Where somebody outside stands in a log, and whether they can go on (C7, C49)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import LogTruncatedError
from lithify.kafka.consumer.place import check_place, first_place, log_of
from lithify.model.cursor import Place
from lithify.model.log import DroppedDeletes, LogState, TopicState, View
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.reading.continuation import moved
from lithify.service.change.alter import alter
from support.builders import some_settings
from support.topics.memory_topic import ORDERS, MemoryTopic

HOUR = 3_600_000
LOG = LogState(0, first_dirty_offset=50, log_end_offset=100, last_round_ms=10 * HOUR, epoch=9)


def a_state(log: LogState = LOG, *, identity: str = "i", **config: object) -> TopicState:
    settings = some_settings(**{"delete_retention_ms": HOUR, **config})
    return TopicState(TopicName("default", "t"), "t", identity, 1, "", settings, (log,), 0)


def a_place(offset: int, epoch: int = 5) -> Place:
    return Place("i", 0, offset, epoch)


def stored_before(offset: int, as_of_ms: int = 10 * HOUR) -> Place:
    """In a format that had no epochs."""
    return Place.from_json({"identity": "i", "generation": 0, "offset": offset, "as_of_ms": as_of_ms})


def test_a_place_goes_there_and_back():
    assert Place.from_json(a_place(7).to_json()) == a_place(7)
    assert Place.from_json(stored_before(7).to_json() | {"epoch": 3}) == a_place(7, 3)


def test_whoever_begins_stands_where_a_compacted_reader_starts():
    assert first_place(a_state(replace(LOG, log_start_offset=3)), 0) == Place("i", 0, 3, 9)
    viewed = replace(LOG, view=View(start_offset=9))
    assert first_place(a_state(viewed), 0).offset == 9
    assert first_place(a_state(), 5).offset == 0  # a partition that the lake does not have yet


def test_a_partition_that_only_kafka_has_is_an_empty_log():
    assert log_of(a_state(), 0) == LOG
    assert log_of(a_state(), 5) == LogState(5)


@pytest.mark.parametrize(("offset", "epoch"), [(10, 5), (39, 5), (40, 9), (100, 9)])
def test_a_place_is_of_the_newest_epoch_once_it_is_behind_the_deletes_that_are_gone(offset, epoch):
    """What was read ahead of it, and not dealt with, may have had them."""
    log = replace(LOG, dropped=(DroppedDeletes(6, 40),))
    assert moved(a_place(10), log, offset) == Place("i", 0, offset, epoch)
    assert moved(stored_before(10), LOG, offset) == Place("i", 0, offset, 9)


@pytest.mark.parametrize(("offset", "epoch", "gone"), [(39, 5, True), (39, 6, False), (40, 5, False)])
def test_deletes_that_a_round_has_taken(offset, epoch, gone):
    """C49: whatever the settings say by now, and whatever the clock said."""
    state = a_state(replace(LOG, dropped=(DroppedDeletes(6, 40),)), delete_retention_ms=10**12)
    if gone:
        with pytest.raises(
            LogTruncatedError, match=f"t-0: rounds have removed deletes below offset 40, or .* {offset};"
        ):
            check_place(a_place(offset, epoch), state, 0)
    else:
        check_place(a_place(offset, epoch), state, 0)


@pytest.mark.parametrize(
    ("offset", "as_of_ms", "gone"),
    [
        (49, 9 * HOUR, True),  # the last round came exactly delete.retention.ms later
        (49, 9 * HOUR + 1, False),
        (50, 0, False),  # no round has been above
    ],
)
def test_deletes_that_a_round_may_have_taken_from_a_place_without_an_epoch(offset, as_of_ms, gone):
    if gone:
        with pytest.raises(LogTruncatedError, match=f"t-0: rounds may have removed deletes .* up to offset {offset}"):
            check_place(stored_before(offset, as_of_ms), a_state(), 0)
    else:
        check_place(stored_before(offset, as_of_ms), a_state(), 0)


def test_a_log_without_a_round_has_lost_no_delete():
    check_place(stored_before(0, 0), a_state(replace(LOG, last_round_ms=None)), 0)


def test_a_topic_that_was_made_again_is_another():
    with pytest.raises(LogTruncatedError, match="made again"):
        check_place(a_place(60), a_state(identity="j"), 0)


@pytest.mark.parametrize(("offset", "cut"), [(60, False), (61, True)])
def test_a_log_that_was_truncated_below(offset, cut):
    state = a_state(replace(LOG, generation=1, truncated=(60,)))
    if cut:
        with pytest.raises(LogTruncatedError, match="truncated below offset 61"):
            check_place(a_place(offset), state, 0)
    else:
        check_place(a_place(offset), state, 0)


def test_truncations_that_are_not_remembered_count_as_below():
    with pytest.raises(LogTruncatedError, match="truncated"):
        check_place(a_place(0), a_state(replace(LOG, generation=2, truncated=(99,))), 0)


def test_a_truncation_from_before_does_not_count():
    check_place(replace(a_place(99), generation=1), a_state(replace(LOG, generation=1, truncated=(60,))), 0)


def test_a_log_start_that_has_passed_the_place():
    with pytest.raises(LogTruncatedError, match="starts at 70 now, behind offset 60"):
        check_place(a_place(60), a_state(replace(LOG, log_start_offset=70)), 0)


def test_the_backlog_of_a_view_may_be_trimmed():
    """Only `delete-records` makes a place in a view invalid."""
    viewed = replace(LOG, log_start_offset=70, view=View(first_offset=65, start_offset=60))
    check_place(a_place(60), a_state(viewed), 0)
    with pytest.raises(LogTruncatedError, match="starts at 61"):
        check_place(a_place(60), a_state(replace(viewed, deleted_below=61)), 0)


def dropped_at_once(topic):
    topic.compact()


def kept_longer_since(topic):
    topic.compact()
    topic.clock.advance(1000)
    alter(topic.warehouse, ORDERS, {"delete.retention.ms": "1d"})


def judged_at_another_time(topic):
    alter(topic.warehouse, ORDERS, {"delete.retention.ms": "1d"})
    topic.compact()
    topic.compact(now_ms=topic.clock.now_ms() + 48 * HOUR)
    topic.append([Record(b"y", b"1", 1000, (), 0)])
    topic.compact()


@pytest.mark.parametrize("act", [dropped_at_once, kept_longer_since, judged_at_another_time])
@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
def test_a_stored_place_does_not_pass_where_the_delete_behind_it_is_gone(act, mode):
    """C49: neither settings that were changed since nor the time of a round make it good."""
    topic = MemoryTopic(now_ms=10**9, delete_retention_ms=0, compaction_mode=mode)
    topic.append([Record(b"k", b"v", 1000, (), 0)])
    place = moved(first_place(topic.state, 0), topic.log(), 1)
    topic.clock.advance(1000)
    topic.append([Record(b"k", None, 1000, (), 0), Record(b"x", b"1", 1000, (), 0)])
    check_place(place, topic.state, 0)
    act(topic)
    with pytest.raises(LogTruncatedError, match="removed deletes"):
        check_place(place, topic.state, 0)
    check_place(moved(first_place(topic.state, 0), topic.log(), 1), topic.state, 0)
