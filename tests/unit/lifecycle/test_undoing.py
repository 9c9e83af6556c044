"""What a log is once its last round is undone, and why it cannot be (C6, C7, C26, C43)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.missed import Undone
from lithify.model.names import LogId, TopicName
from lithify.model.topic.log import LastRecord
from lithify.rules.compaction.round_report import outcome_report
from lithify.rules.lifecycle.cuts import records_deleted
from lithify.rules.lifecycle.undoing import LogFiles, files_after, obstacle, state_after_undo
from support.builders import a_log, some_settings
from support.topics.pure_rounds import PureLog, offsets

ID = LogId(TopicName("default", "orders"), 0)
RETAINED = {"cleanup_policy": "compact,delete", "retention_ms": 50}
BESIDE = {"compaction_mode": "side-by-side"}


class Round:
    """A log, a round over it, and what was there before."""

    def __init__(self, *texts, now_ms=100, first=True, **config):
        self.log = PureLog()
        self.settings = some_settings(**config)
        for text in texts:
            self.append(text)
            if first and text == texts[0]:
                self.log.round(self.settings, now_ms - 1)
        self.then, self.files_then = self.log.state, LogFiles(self.log.segments, self.log.view)
        self.report = outcome_report(self.log.round(self.settings, now_ms), {})
        self.run_id = self.log.state.last_round

    def append(self, text):
        self.log.append(a_log(text, first_offset=self.log.state.log_end_offset).records)

    def obstacle(self):
        return obstacle(self.log.state, self.then, self.report, self.run_id)

    def undone(self):
        """The state and the files after the round is undone."""
        files = files_after(LogFiles(self.log.segments, self.log.view), self.files_then, self.report)
        last = None
        if files.segments:
            record = self.log.records[files.segments[-1].path][-1]
            last = LastRecord(record.offset, record.timestamp)
        return state_after_undo(self.log.state, self.then, self.report, files, last_record=last), files


def test_the_deletes_that_the_round_dropped_are_no_longer_said_to_be_gone():
    """C49: those of rounds before it are; and the epoch never goes back (C44)."""
    round_ = Round("a=∅ b=1", "c=∅ b=2", delete_retention_ms=0)
    assert [drop.below for drop in round_.then.dropped] == [2]
    assert [drop.below for drop in round_.log.state.dropped] == [4]
    round_.log.state = replace(round_.log.state, epoch=9)
    state, _ = round_.undone()
    assert (state.dropped, state.epoch) == (round_.then.dropped, 9)


def test_an_undone_round_leaves_the_log_as_it_was_before():
    """C7: D, steps, volumes, last record and the round before; what settles commits and readers is of today."""
    round_ = Round("a=1 b=∅", "a=2 b=3", delete_retention_ms=0)
    assert round_.obstacle() is None
    state, files = round_.undone()
    assert files == round_.files_then
    assert state == replace(round_.then, undone=Undone(4))
    assert state.last_round != round_.run_id


def test_what_was_appended_since_stays():
    """C7: above the horizon of the round, and dirty as it was."""
    round_ = Round("a=1", "a=2")
    round_.append("c=3!7")
    assert round_.obstacle() is None
    state, files = round_.undone()
    assert offsets(round_.log.records_in(files.segments)) == [0, 1, 2]
    assert (state.log_end_offset, state.first_dirty_offset, state.last_record) == (3, 1, LastRecord(2, 7))
    assert (state.clean.records, state.dirty.records) == (1, 2)


def test_segments_that_retention_took_in_the_round_come_back():
    """C24, C7: S as well."""
    round_ = Round("a=1!10", "b=1!90", now_ms=100, **RETAINED, first=False)
    assert round_.log.state.log_start_offset == 1
    state, files = round_.undone()
    assert (state.log_start_offset, state.first_dirty_offset) == (0, 0)
    assert files.segments == round_.files_then.segments


def test_what_was_deleted_below_a_start_that_goes_back_stays_deleted():
    """C26, C24: the round had moved S beyond it."""
    round_ = Round("a=1!10", "b=1!10", "c=1!90", now_ms=100, **RETAINED, first=False)
    round_.log.state = records_deleted(ID, round_.log.state, 1, round_.log.segments)
    state, _ = round_.undone()
    assert (round_.log.state.log_start_offset, state.log_start_offset, state.first_dirty_offset) == (2, 1, 1)


def test_a_start_that_was_moved_beyond_the_round_takes_the_first_dirty_offset_along():
    """C26: S <= D."""
    round_ = Round("a=1", "a=2")
    round_.append("c=3")
    round_.log.state = records_deleted(ID, round_.log.state, 3, round_.log.segments)
    assert round_.obstacle() is None
    state, _ = round_.undone()
    assert (state.log_start_offset, state.first_dirty_offset, state.last_record) == (3, 3, None)


def test_a_round_that_a_changed_setting_requires_stays_required():
    """C43: the settings are those of today."""
    round_ = Round("a=1", "a=2")
    round_.log.state = replace(round_.log.state, round_required="changed: null.key")
    assert round_.undone()[0].round_required == "changed: null.key"
    round_.log.state = replace(round_.log.state, round_required="")
    round_.then = replace(round_.then, round_required="changed: segment.bytes")
    assert round_.undone()[0].round_required == "changed: segment.bytes"


def test_a_round_that_covered_everything_anew_is_required_again():
    """C43: with it goes what it knew of the tombstones."""
    round_ = Round("a=1", "a=2")
    round_.then = replace(round_.then, uncovered=True, steps=(), round_required="changed: empty.value")
    state, _ = round_.undone()
    assert (state.uncovered, state.steps, state.round_required) == (True, (), "changed: empty.value")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"generation": 1}, "the log was truncated since"),
        ({"last_round": "another"}, "its round was undone already, or its compacted view was dropped since"),
        ({"last_round": ""}, "its round was undone already, or its compacted view was dropped since"),
        ({"uncovered": True}, "empty.value was changed since"),
        ({"first_dirty_offset": 0}, "its first dirty offset was moved since"),
    ],
)
def test_a_round_whose_result_is_gone_cannot_be_undone(changes, reason):
    """C7: and it says why."""
    round_ = Round("a=1", "a=2")
    assert round_.obstacle() is None
    round_.log.state = replace(round_.log.state, **changes)
    assert round_.obstacle() == reason
