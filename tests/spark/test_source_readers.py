"""The readers that Spark asks, asked here: what a batch has, when it waits, and where a place is lost (C7, C49)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import lithify
from lithify import Record
from lithify.api.wiring import open_warehouse
from lithify.errors import LogTruncatedError, RefusedError, VersionSweptError
from lithify.spark_source.columns import SCHEMA
from lithify.spark_source.options import read_options
from lithify.spark_source.reading import BatchReader, StreamReader
from lithify.testing.fake_clock import FakeClock
from spark.topics import batch_after, in_order, places, read_here, records_of, some_records, swept
from support.engines.kernel import compact_without_spark


@pytest.fixture
def lake(tmp_path):
    return lithify.open(str(tmp_path / "lake"))


@pytest.fixture
def topic(lake):
    return lake.create_topic("t", partitions=2, config={"versions.retention.ms": 0})


@pytest.fixture
def connect(tmp_path):
    return lambda: open_warehouse(str(tmp_path / "lake"), None)


@pytest.fixture
def options():
    return read_options({"subscribe": "t", "includeHeaders": "true"})


@pytest.fixture
def go_on(tmp_path):
    """Asks for the batch after a place, as Spark does from a checkpoint."""
    return partial(batch_after, tmp_path / "lake")


def test_a_batch_waits_for_enough_offsets_or_for_its_time(topic, connect):
    """As with Kafka's source: the first batch, one that Spark wants whole, and `availableNow` do not wait."""
    clock = FakeClock()
    options = {"subscribe": "t", "minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "12", "maxTriggerDelay": "1m"}
    reader = StreamReader(lambda: replace(connect(), clock=clock), read_options(options), SCHEMA)
    limit = reader.getDefaultReadLimit()

    def ended(start):
        return reader.latestOffset(start, limit)

    begin = reader.initialOffset()
    topic.append([Record(b"k", b"v", partition=0)] * 3)
    first = ended(begin)
    assert first["t"] == {"0": 3, "1": 0}
    topic.append([Record(b"k", b"v", partition=0)] * 9)
    assert ended(first) == first
    assert reader.latestOffset(first, ReadAllAvailable())["t"] == {"0": 12, "1": 0}
    topic.append([Record(b"k", b"v", partition=0)])
    second = ended(first)
    assert second["t"] == {"0": 13, "1": 0}
    topic.append([Record(b"k", b"v", partition=0)])
    assert ended(second) == second
    clock.advance(60_000)
    third = ended(second)
    assert third["t"] == {"0": 14, "1": 0}
    topic.append([Record(b"k", b"v", partition=0)] * 30)
    assert ended(third)["t"] == {"0": 26, "1": 0}
    topic.append([Record(b"k", b"v", partition=0)])
    reader.prepareForTriggerAvailableNow()
    assert ended({"t": {"0": 44, "1": 0}})["t"] == {"0": 45, "1": 0}


def test_a_stream_that_has_missed_a_delete_fails_and_says_so(topic, go_on):
    """C49: the key that it has read before is deleted, and it would never get to know."""
    topic.alter({"delete.retention.ms": 0})
    topic.append([Record(b"k", b"v", partition=0), Record(b"l", b"v", partition=0)])
    _, place = go_on(None)
    topic.append([Record(b"k", None, partition=0), Record(b"m", b"v", partition=0)])
    compact_without_spark(topic)
    topic.alter({"delete.retention.ms": 86_400_000})  # which says nothing about what has gone
    gone = r"t-0: rounds have removed deletes below offset \d, or .* up to offset 2.*failOnDataLoss=false"
    with pytest.raises(LogTruncatedError, match=gone):
        go_on(place)
    batch, place = go_on(place, failOnDataLoss=False)
    assert places(batch) == [(0, 3)]
    topic.append([Record(b"n", b"v", partition=0)])
    assert places(go_on(place)[0]) == [(0, 4)]


def test_a_stream_notices_a_log_that_was_truncated_or_is_another(lake, topic, go_on):
    """Also where the log has grown beyond its cursor again: the checkpoint knows (C49)."""
    topic.append([Record(b"k", b"v", partition=0)] * 10)
    _, place = go_on(None)
    topic.truncate(0, 5)
    topic.append([Record(b"k", b"w", partition=0)] * 10)
    with pytest.raises(LogTruncatedError, match=r"t-0: the log was truncated below offset 10.*it ends at 15"):
        go_on(place)
    lake.delete_topic("t")
    lake.create_topic("t", partitions=2).append([Record(b"k", b"x", partition=0)] * 20)
    with pytest.raises(LogTruncatedError, match="t-0: the topic was deleted and recreated"):
        go_on(place)
    batch, place = go_on(place, failOnDataLoss=False)
    assert len(batch) == 10
    assert go_on(place)[0] == []  # the log at rest has a cursor of this topic, too


def test_an_end_is_refused(connect):
    with pytest.raises(RefusedError, match="endingOffsets: a stream has no end"):
        StreamReader(connect, read_options({"subscribe": "t", "endingOffsets": "latest"}), SCHEMA)


def test_a_read_that_stands_on_a_swept_version_says_so(topic, options, connect):
    """C7: never wrong data, and no talk of damage where nothing is damaged."""
    topic.append(some_records(100))
    reader = BatchReader(connect, options, SCHEMA)
    planned = reader.partitions()
    kept = read_here(reader, planned)
    compact_without_spark(topic)
    assert read_here(reader, planned) == kept  # its files stay as long as they are kept
    assert swept(topic) > 0
    with pytest.raises(VersionSweptError, match=r"t-\d: version \d+, which is being read, was swept"):
        read_here(reader, planned)


def test_a_batch_that_was_planned_is_read_as_it_was(topic, options, connect):
    """A round that commits between planning and reading changes nothing in the batch."""
    topic.append(some_records(100))
    expected = list(topic.reader())
    reader = StreamReader(connect, options, SCHEMA)
    planned = reader.partitions({"t": {"0": 0, "1": 0}}, reader.reportLatestOffset())
    compact_without_spark(topic)
    assert in_order(records_of(pa.Table.from_batches(read_here(reader, planned)))) == expected


def test_a_batch_beyond_the_log_end_is_not_planned(topic, options, connect):
    topic.append([Record(b"k", b"v", partition=0)] * 3)
    with pytest.raises(LogTruncatedError, match="t-0: the log ends at 3 now, before offset 4"):
        StreamReader(connect, options, SCHEMA).partitions({"t": {"0": 0, "1": 0}}, {"t": {"0": 4, "1": 0}})
