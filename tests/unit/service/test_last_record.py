"""The last record of a log is one that is there, also where the newest ones of its last segment are masked (C36)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.record import Record
from lithify.model.topic.log import LastRecord
from lithify.service.last_record import last_record
from support.topics.memory_topic import MemoryTopic


def test_the_last_record_is_found_before_masked_ones() -> None:
    topic = MemoryTopic()
    topic.append([Record(b"k%d" % n, b"v", 100 + n) for n in range(6)])
    state, (segment,) = topic.state, topic.segments()
    stored = state.log(0).last_record
    assert stored is not None
    assert last_record(topic.warehouse, (segment,), stored) == stored == LastRecord(5, stored.timestamp_ms)
    some = topic.warehouse.files.masked(state, segment, [1, 4], "one")
    more = topic.warehouse.files.masked(state, some, [5], "two")
    for known in (stored, None, replace(stored, offset=3), replace(stored, offset=0), replace(stored, offset=99)):
        assert last_record(topic.warehouse, (some,), known) == stored
        found = last_record(topic.warehouse, (more,), known)
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (3, stored.timestamp_ms - 2)


@pytest.mark.parametrize("records", range(2, 11))
def test_it_is_found_however_many_are_masked(records: int) -> None:
    topic = MemoryTopic()
    topic.append([Record(b"before", b"v", 99)])
    topic.append([Record(b"k%d" % n, b"v", 100 + n) for n in range(records)])
    state, (_, segment) = topic.state, topic.segments()
    for left in range(records):
        masked = topic.warehouse.files.masked(state, segment, range(left + 2, records + 1), f"{left}")
        found = last_record(topic.warehouse, (masked if left + 1 < records else segment,), None)
        assert found is not None and (found.offset, found.timestamp_ms) == (left + 1, 100 + left)
