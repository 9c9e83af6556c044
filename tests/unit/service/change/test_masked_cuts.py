"""Cutting a log whose segments have masks (C26, C36, C41): what a mask hides is stored, and not a record."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lithify.errors import NothingToUndoError
from lithify.model.finding import FindingKind
from lithify.model.record import Record
from lithify.model.segment import Segment, volume_of
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.undo import undo
from lithify.service.look.status import topic_status
from lithify.service.proof.verify import verify
from lithify.testing.oracle_inspector import OracleInspector
from support.engines.reading_inspector import ReadingInspector
from support.topics.memory_topic import ORDERS, MemoryTopic

MODES = pytest.mark.parametrize("mode", ["in-place", "side-by-side"])


def a_masked_topic(mode: str, records: list[Record]) -> MemoryTopic:
    """One segment, some of which is masked: two of `records` have no winner."""
    topic = MemoryTopic(compaction_mode=mode, delete_retention_ms=0, segment_max_dead_ratio=1, segment_bytes=10_000)
    topic.append(records)
    topic.compact()
    (segment,) = compacted(topic)
    assert segment.mask is not None and (segment.mask.dead, segment.records) == (2, len(records) - 2)
    return topic


def compacted(topic: MemoryTopic) -> tuple[Segment, ...]:
    return topic.view() if topic.state.settings.side_by_side else topic.segments()


def findings(topic: MemoryTopic) -> list[str]:
    return [str(one) for one in verify(topic.warehouse, ReadingInspector(topic.files), ORDERS).findings]


@MODES
def test_masked_records_below_the_start_are_taken_out_of_storage(mode: str) -> None:
    """Also if no record that is left lies below it: else the log would be due for ever."""
    topic = a_masked_topic(mode, [Record(b"k%d" % (n % 5), b"v" * 70, 100 + n) for n in range(7)])
    delete_records(topic.warehouse, ORDERS, 0, 2)
    assert topic.compact().changed
    (segment,) = compacted(topic)
    assert (segment.base_offset, segment.records, segment.mask) == (2, 5, None)
    assert not topic.compact().changed
    assert not topic_status(topic.warehouse, topic.state).logs[0].due
    assert findings(topic) == []


@MODES
def test_a_log_may_start_among_masked_records_at_its_end(mode: str) -> None:
    """Nothing is left to read, and no last record to be known."""
    records = [Record(b"k%d" % n, b"v" * 70, 100 + n) for n in range(5)]
    topic = a_masked_topic(mode, [*records, *(Record(b"gone%d" % n, None, 200) for n in range(2))])
    delete_records(topic.warehouse, ORDERS, 0, 6)
    assert findings(topic) == []
    topic.compact()
    assert findings(topic) == []


def test_a_last_record_that_is_left_is_not_none() -> None:
    """Metadata alone cannot tell, so `verify` reads it."""
    topic = a_masked_topic("in-place", [Record(b"k%d" % (n % 5), b"v" * 70, 100 + n) for n in range(7)])
    delete_records(topic.warehouse, ORDERS, 0, 6)
    log = replace(topic.log(), last_record=None)
    topic.store.commit(topic.state, TopicEdit("wrong", 1000, {0: log}, verb=Verb.ALTER))
    assert any("the last record is None in the metadata" in finding for finding in findings(topic))


def test_a_segment_of_the_log_and_its_masked_one_of_the_view_are_cut_each_for_itself() -> None:
    """At the same offset: the file is the same, the records are not."""
    records = [Record(b"k%d" % n, b"v" * 70, 100 + n) for n in (0, 1, 1, 1, 2, 3, 4)]
    topic = a_masked_topic("side-by-side", records)
    delete_records(topic.warehouse, ORDERS, 0, 4)
    truncate(topic.warehouse, ORDERS, 0, 4, below_compacted=True)
    assert (volume_of(topic.segments()).records, volume_of(topic.view()).records) == (4, 2)
    assert findings(topic) == []


def test_a_round_whose_mask_before_is_gone_is_not_undone() -> None:
    topic = a_masked_topic("in-place", [Record(b"k%d" % (n % 5), b"v" * 70, 100 + n) for n in range(7)])
    (before,) = topic.segments()
    topic.append([Record(b"k2", b"w" * 6_000, 300)])
    topic.compact()
    assert [s.mask and s.mask.dead for s in topic.segments()] == [3, None]
    assert before.mask is not None
    del topic.files.masks[before.mask.path]
    with pytest.raises(NothingToUndoError, match=re.escape(before.mask.path)):
        undo(topic.warehouse, ORDERS)


@MODES
def test_a_mask_that_is_gone_is_one_finding(mode: str) -> None:
    """C8: it explains what is missing in the records of its segment."""
    topic = a_masked_topic(mode, [Record(b"k%d" % (n % 5), b"v" * 70, 100 + n) for n in range(7)])
    topic.append([Record(b"k2", b"w" * 6_000, 300)])
    topic.compact()
    (segment, *_) = compacted(topic)
    assert segment.mask is not None
    del topic.files.masks[segment.mask.path]
    report = verify(topic.warehouse, OracleInspector(topic.files), ORDERS)
    assert [(one.kind, one.path) for one in report.findings] == [(FindingKind.FILE_MISSING, segment.mask.path)]
