"""Cutting a log whose segments have masks (C26, C36, C41): what a mask hides is stored, and not a record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.service.change.cut import delete_records
from lithify.service.look.status import topic_status
from lithify.service.proof.verify import verify
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
    assert any("the last record is said to be None" in finding for finding in findings(topic))
