"""The cursors of a stream: what its checkpoint has of them, and when the stream must not go on (C7, C49)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import LogTruncatedError
from lithify.model.cursor import Cursor
from lithify.model.missed import DroppedDeletes
from lithify.model.names import LogId, TopicName
from lithify.model.scan import ScanSettings
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.reading.stream_cursors import check_continues, cursors_at, from_json, log_ends, offsets_of, to_json
from support.builders import a_topic

NAME = TopicName("default", "t")
LOG = LogState(0, log_end_offset=30, generation=2, truncated=(4, 9), epoch=7)


def two_logs(log: LogState = LOG, **facts: object) -> TopicState:
    return a_topic(log, replace(log, partition=1), **facts)


def the(partition: int, **cursor: object) -> dict[LogId, Cursor]:
    return {LogId(NAME, partition): replace(Cursor("i", 2, 20, 7), **cursor)}


def test_a_checkpoint_has_offsets_as_kafkas_and_the_cursors():
    other = TopicName("shop", "t")
    states = (two_logs(), two_logs(name=other, identity="j"))
    cursors = {**the(0), **the(1, offset=3), LogId(other, 1): Cursor("j", 0, 9, 1)}
    told = to_json(cursors)
    assert {name: logs for name, logs in told.items() if name != "#cursors"} == {
        "t": {"0": 20, "1": 3},
        "shop/t": {"1": 9},
    }
    assert from_json(told, states) == from_json(told, ()) == cursors
    assert offsets_of(cursors) == {"t": {0: 20, 1: 3}, "shop/t": {1: 9}}


@pytest.mark.parametrize(
    ("beside", "epoch"),
    [({"#epochs": {"t": {"0": 3}}}, 3), ({}, 7)],
    ids=["of the first release", "from before there were epochs"],
)
def test_a_checkpoint_of_an_earlier_version_is_read(beside, epoch):
    """What it does not say is as it is now, as for a bare offset."""
    assert from_json({"t": {"0": 20}, **beside}, [two_logs()]) == the(0, epoch=epoch)
    gone = from_json({"t": {"0": 20, "7": 1}, **beside}, [two_logs()])
    assert offsets_of(gone) == {"t": {0: 20, 7: 1}}


def test_where_nothing_is_read_the_cursor_stays():
    """So that nothing looks new to Spark; but one that comes to an offset is of the version that has it."""
    newer = two_logs(replace(LOG, epoch=9))
    at_rest = cursors_at([newer], {"t": {0: 20, 1: 30}}, the(0), compacted=False)
    assert at_rest == {**the(0), **the(1, offset=30, epoch=9)}
    assert cursors_at([newer], {"t": {0: 30}}, the(0), compacted=False) == the(0, offset=30, epoch=9)
    assert log_ends([newer], ScanSettings()) == {"t": {0: 30, 1: 30}}
    assert log_ends([newer], ScanSettings(assigned={"t": frozenset({1})})) == {"t": {1: 30}}


@pytest.mark.parametrize("lost", [the(0, identity="j", offset=0), the(0, generation=1), the(0, epoch=8)])
def test_a_cursor_that_is_lost_is_given_up_where_nothing_is_read_too(lost):
    """One run with `failOnDataLoss=false` is enough, also for a log whose end is where the cursor was."""
    offset = lost[LogId(NAME, 0)].offset
    found = cursors_at([two_logs()], {"t": {0: offset}}, lost, compacted=False)
    assert found == the(0, offset=offset)
    check_continues([two_logs()], found, compacted=False)


def test_a_stream_goes_on_in_the_same_log():
    check_continues([two_logs()], {**the(0), **the(1, offset=30, generation=1)} | the(1, offset=9), compacted=False)


@pytest.mark.parametrize(
    ("cursors", "says"),
    [
        (the(0, identity="j"), "t-0: the topic was deleted and recreated"),
        (the(1, generation=1), "t-1: the log was truncated below offset 20, .* ends at 30"),
        (the(0, offset=31), "t-0: the log ends at 30 now, before offset 31"),
        (the(7), "t-7: the log, .* no longer exists"),
        ({LogId(TopicName("shop", "u"), 0): Cursor("i", 0, 0, 1)}, "shop/u-0: the log, .* no longer exists"),
    ],
)
@pytest.mark.parametrize("as_ends", [False, True])
def test_a_stream_does_not_go_on_in_another(cursors, says, as_ends):
    """C7: also where other records are at the same offsets by now."""
    with pytest.raises(LogTruncatedError, match=says) as raised:
        check_continues([two_logs()], cursors, compacted=False, as_ends=as_ends)
    assert "failOnDataLoss=false" in str(raised.value.hint)


def test_deletes_that_are_gone_above_the_end_of_a_batch_are_for_the_next_one():
    dropped = two_logs(replace(LOG, dropped=(DroppedDeletes(8, 25),), epoch=8))
    check_continues([dropped], the(0), compacted=False, as_ends=True)
    with pytest.raises(LogTruncatedError, match="t-0: rounds have removed deletes below offset 25"):
        check_continues([dropped], the(0), compacted=False)
