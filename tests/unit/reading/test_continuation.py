"""Whether a reader can go on from its cursor, and why not: the one rule that all readers ask (C7, C49)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.cursor import UNTOLD, Cursor
from lithify.model.missed import DroppedDeletes
from lithify.model.names import LogId, TopicName
from lithify.model.record import Record
from lithify.model.topic.log import LogState, View
from lithify.model.topic.state import TopicState
from lithify.rules.reading.continuation import (
    BeyondEnd,
    Continues,
    Gone,
    MayHaveMissedDeletes,
    MissedDeletes,
    Recreated,
    Restored,
    Trimmed,
    Truncated,
    Untold,
    advanced,
    continuation,
    lost_error,
    replaced,
    resumed,
)
from lithify.service.change.alter import alter
from support.builders import a_topic, some_settings
from support.topics.memory_topic import ORDERS, MemoryTopic

HOUR = 3_600_000
LOG = LogState(0, first_dirty_offset=50, log_end_offset=100, last_round_ms=10 * HOUR, epoch=9)
CUT = replace(LOG, generation=1, truncated=(60,))
DROPPED = replace(LOG, dropped=(DroppedDeletes(6, 40),))
VIEWED = replace(LOG, log_start_offset=70, view=View(first_offset=65, start_offset=60))


def a_state(log: LogState = LOG) -> TopicState:
    return a_topic(log, settings=some_settings(delete_retention_ms=HOUR))


def at(offset: int, epoch: int = 5, generation: int = 0, identity: str = "i") -> Cursor:
    return Cursor(identity, generation, offset, epoch)


def stored_before(offset: int, as_of_ms: int = 10 * HOUR) -> Cursor:
    """In a format that had no epochs."""
    return Cursor.from_json({"identity": "i", "generation": 0, "offset": offset, "as_of_ms": as_of_ms})


CASES = [
    # the same log, up to its end
    (at(0), LOG, Continues()),
    (at(100), LOG, Continues()),
    (at(101), LOG, BeyondEnd(100)),
    (at(60, identity="j"), LOG, Recreated()),
    (at(60, epoch=10), LOG, Restored()),
    (at(0, epoch=10), LOG, Restored()),
    # truncations since; those that are not remembered count as below
    (at(60), CUT, Continues()),
    (at(61), CUT, Truncated(100)),
    (at(99, generation=1), CUT, Continues()),
    (at(0), replace(LOG, generation=2, truncated=(99,)), Truncated(100)),
    (at(61, identity="j"), CUT, Recreated()),
    # a log start that has passed; the backlog of a view may be trimmed, and only `delete-records` cuts the view
    (at(70), replace(LOG, log_start_offset=70), Continues()),
    (at(69), replace(LOG, log_start_offset=70), Trimmed(70)),
    (at(60), VIEWED, Continues()),
    (at(60), replace(VIEWED, deleted_below=61), Trimmed(61)),
    # deletes that a round has taken, whatever the settings say by now
    (at(39, epoch=5), DROPPED, MissedDeletes(40)),
    (at(39, epoch=UNTOLD), LOG, Untold()),
    (at(39, epoch=6), DROPPED, Continues()),
    (at(40, epoch=5), DROPPED, Continues()),
    (at(0, epoch=5), DROPPED, Continues()),  # nothing was taken yet
    (at(39), replace(DROPPED, dropped=(DroppedDeletes(6, 40, of_view=True),)), MissedDeletes(40)),
    # by time, where the cursor has no epoch: the last round came exactly delete.retention.ms later, or sooner
    (stored_before(49, 9 * HOUR), LOG, MayHaveMissedDeletes(HOUR)),
    (stored_before(49, 9 * HOUR + 1), LOG, Continues()),
    (stored_before(50, 0), LOG, Continues()),  # no round has been above
    (stored_before(0, 0), replace(LOG, last_round_ms=None), Continues()),
]


@pytest.mark.parametrize(("cursor", "log", "expected"), CASES, ids=range(len(CASES)))
def test_whether_a_reader_continues_at_its_cursor(cursor, log, expected):
    assert continuation(cursor, a_state(log), log, compacted=True) == expected


@pytest.mark.parametrize(("cursor", "log", "expected"), CASES, ids=range(len(CASES)))
def test_reads_up_to_a_point_go_on_unless_the_records_below_are_others(cursor, log, expected):
    lost = expected if isinstance(expected, Recreated | Truncated | Restored) else None
    assert replaced(cursor, a_state(log), log) == lost


def test_the_backlog_has_what_only_a_view_has_lost():
    trimmed = replace(VIEWED, log_start_offset=61, dropped=(DroppedDeletes(6, 80, of_view=True),))
    for offset, compacted, expected in (
        (60, False, Trimmed(61)),
        (61, False, Continues()),
        (61, True, MissedDeletes(80)),
    ):
        assert continuation(at(offset), a_state(trimmed), trimmed, compacted=compacted) == expected


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        (Gone(), "the log, which was read up to offset 7, no longer exists"),
        (Recreated(), "the topic was deleted and recreated since it was read up to offset 7, or is a replica of it"),
        (Restored(), "an earlier state of the topic, such as a backup, was restored since it was read up to offset 7"),
        (Truncated(3), "the log was truncated below offset 7, up to which it was read; it ends at 3"),
        (Trimmed(9), "the log starts at 9 now, above offset 7"),
        (MissedDeletes(9), "rounds have removed deletes below offset 9, or .* up to offset 7;"),
        (MayHaveMissedDeletes(5), "rounds may have removed deletes .* up to offset 7, as delete.retention.ms=5"),
        (BeyondEnd(3), "the log ends at 3 now, before offset 7"),
        (Untold(), "clients of Kafka have read it up to offset 7; before that rounds may"),
    ],
)
def test_the_error_says_what_it_is(lost, says):
    error = lost_error(LogId(TopicName("default", "t"), 0), at(7), lost, "hint")
    with pytest.raises(type(error), match=f"t-0: {says}"):
        raise error


@pytest.mark.parametrize(("offset", "epoch"), [(10, 5), (39, 5), (40, 9), (100, 9)])
def test_a_cursor_is_of_the_newest_epoch_once_it_is_behind_the_deletes_that_are_gone(offset, epoch):
    """What was read ahead of it, and not dealt with, may have had them."""
    assert advanced(at(10), DROPPED, 1, offset) == at(offset, epoch)
    assert advanced(stored_before(10), LOG, 1, offset) == at(offset, 9)


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
def test_a_cursor_does_not_pass_where_the_delete_above_it_is_gone(act, mode):
    """C49: neither settings that were changed since nor the time of a round make it good."""
    topic = MemoryTopic(now_ms=10**9, delete_retention_ms=0, compaction_mode=mode)
    topic.append([Record(b"k", b"v", 1000, (), 0)])
    cursor = Cursor.of(topic.state, topic.log(), 1)
    topic.clock.advance(1000)
    topic.append([Record(b"k", None, 1000, (), 0), Record(b"x", b"1", 1000, (), 0)])
    assert continuation(cursor, topic.state, topic.log(), compacted=True) == Continues()
    act(topic)
    assert isinstance(continuation(cursor, topic.state, topic.log(), compacted=True), MissedDeletes)
    newer = Cursor.of(topic.state, topic.log(), 1)
    assert continuation(newer, topic.state, topic.log(), compacted=True) == Continues()


@pytest.mark.parametrize(
    ("cursor", "log", "offset"),
    [
        (at(80), LOG, 80),
        (at(130), LOG, 100),
        (at(130), CUT, 60),
        (at(50), CUT, 50),
        (at(130, generation=1), CUT, 100),
        (at(130), replace(LOG, generation=3, truncated=(40, 90)), 40),
        (at(130, identity="j"), CUT, 100),
        (at(30), replace(LOG, log_start_offset=70), 70),
        (at(130), replace(CUT, log_start_offset=70), 70),
    ],
)
def test_a_reader_that_accepts_what_it_lost_goes_on_where_other_records_are(cursor, log, offset):
    assert resumed(cursor, a_state(log), log, compacted=False) == offset


def committed(state: TopicState, log: LogState, *runs: str) -> TopicState:
    """The topic after one commit to the log; a replica's leaves two runs."""
    for run in runs:
        log = log.with_run(run)
    return replace(state, version=state.version + 1, logs=(log,))


@pytest.mark.parametrize("more", [0, 1, 3, 7, 50])
@pytest.mark.parametrize("later", [0, 1, 3])
def test_a_log_that_has_gone_on_from_an_earlier_state_is_found_by_its_commits(more, later):
    """C49: whatever ends and epochs say, while the log would still know the commit that was read."""
    base = a_state()
    for number in range(more):
        base = committed(base, base.log(0), f"r{number}")
    read = committed(base, base.log(0), "read")
    cursor = Cursor.of(read, read.log(0), 60)
    restored = committed(base, base.log(0), "other")
    assert continuation(cursor, base, base.log(0), compacted=True) == Restored()
    for number in range(later):
        restored = committed(restored, restored.log(0), f"o{number}")
    assert continuation(cursor, restored, restored.log(0), compacted=True) == Restored()
    assert continuation(cursor.without_run(), restored, restored.log(0), compacted=True) == Continues()


@pytest.mark.parametrize("runs", [("a",), ("a", "b")])
def test_a_reader_continues_however_many_commits_later(runs):
    state = a_state()
    for number in range(9):
        state = committed(state, state.log(0), f"r{number}")
    cursor = Cursor.of(state, state.log(0), 60)
    for number in range(3000):
        state = committed(state, state.log(0), *(f"{run}{number}" for run in runs))
        assert continuation(cursor, state, state.log(0), compacted=True) == Continues(), number
        there = advanced(cursor, state.log(0), state.version, 70)
        assert (there.run, there.version) == (state.log(0).run_ids[-1], state.version)


def test_commits_to_other_logs_leave_the_commit_that_was_read_the_latest():
    state = committed(a_state(), LOG, "read")
    cursor = Cursor.of(state, state.log(0), 60)
    assert continuation(cursor, replace(state, version=10**6), state.log(0), compacted=True) == Continues()
