"""The cursors of a consumer of lake and Kafka, which may know partitions and offsets that the lake has not yet (C7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import LogTruncatedError
from lithify.model.cursor import Cursor
from lithify.model.topic.log import LogState, View
from lithify.service.snapshot.cursors import check_continues, first_cursor, log_of
from support.builders import a_topic

LOG = LogState(0, first_dirty_offset=50, log_end_offset=100, epoch=9)


def test_a_new_consumer_starts_where_a_compacted_reader_starts():
    assert first_cursor(a_topic(replace(LOG, log_start_offset=3)), 0) == Cursor("i", 0, 3, 9)
    viewed = replace(LOG, view=View(start_offset=9))
    assert first_cursor(a_topic(viewed), 0).offset == 9
    assert first_cursor(a_topic(LOG), 5).offset == 0  # a partition that the lake does not have yet


def test_a_partition_that_only_kafka_has_is_an_empty_log():
    assert log_of(a_topic(LOG), 0) == LOG
    assert log_of(a_topic(LOG), 5) == LogState(5)


def test_a_consumer_goes_on_where_the_lake_has_not_come_yet_and_nowhere_else():
    check_continues(Cursor("i", 0, 101, 9), a_topic(LOG), 0)
    check_continues(Cursor("i", 0, 7, 1), a_topic(LOG), 5)
    with pytest.raises(LogTruncatedError, match="t-0: the log starts at 70 now, above offset 60"):
        check_continues(Cursor("i", 0, 60, 9), a_topic(replace(LOG, log_start_offset=70)), 0)
