"""`readStream`: every record once, whatever commits meanwhile, and an end where the place is lost (C1, C3, C7)."""

from __future__ import annotations

import json
import time

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from lithify import Record
from lithify.model.cursor import Cursor
from spark.topics import Collected, batch_after, forget_commit, in_order, places, read_by, some_records, swept
from support.engines.kernel import compact_without_spark

TIMEOUT_S = 120


@pytest.fixture
def topic(lake):
    return lake.create_topic("t", partitions=2, config={"versions.retention.ms": 0})


@pytest.fixture
def run(session, tmp_path):
    """Runs a query up to what there is now, each time with the same checkpoint; gives what it got."""

    def go_on(**options: object) -> Collected:
        got = Collected()
        frame = read_by(session.readStream, "t", startingOffsets="earliest", includeHeaders=True, **options)
        writer = frame.writeStream.foreachBatch(got.add).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(TIMEOUT_S)
        return got

    return go_on


@pytest.fixture
def running(session, tmp_path):
    """Starts a query that runs until the test ends: one on all of `t`, if no other is given."""
    queries = []

    def start(frame: DataFrame | None = None, **options: object):
        got = Collected()
        frame = frame or read_by(session.readStream, "t", startingOffsets="earliest", includeHeaders=True, **options)
        writer = frame.writeStream.foreachBatch(got.add)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        queries.append(query)
        return query, got

    yield start
    for query in queries:
        query.stop()


def test_it_goes_on_from_its_checkpoint_which_has_offsets_as_kafkas(topic, run, tmp_path):
    topic.append(some_records(100))
    first = run()
    assert in_order(first.records) == list(topic.reader())
    [*_, offset] = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()
    state = topic.state()
    offsets = {str(log.partition): log.log_end_offset for log in state.logs}
    cursors = {str(log.partition): Cursor.of(state, log, log.log_end_offset).to_json() for log in state.logs}
    assert json.loads(offset) == {"t": offsets, "#cursors": {"t": cursors}}

    topic.append(some_records(30, start=100))
    second = run()
    assert in_order([*first.records, *second.records]) == list(topic.reader())


def test_without_a_start_it_begins_at_the_end(session, topic, running):
    topic.append(some_records(10))
    query, got = running(read_by(session.readStream, "t"))
    query.processAllAvailable()
    topic.append(some_records(4, start=10))
    query.processAllAvailable()
    assert len(got.records) == 4


def test_rounds_between_batches_neither_repeat_nor_skip_a_record(topic, running):
    """C3: who stays at or above every horizon sees every record, each of them once."""
    query, got = running()
    appended = []
    for turn in range(4):
        topic.append(some_records(60, start=60 * turn))
        appended += [r for r in topic.reader() if (r.partition, r.offset) not in got.places]
        query.processAllAvailable()
        assert compact_without_spark(topic).logs[0].records_out < 60
        assert swept(topic) > 0
    assert in_order(got.records) == in_order(appended)
    assert len(got.records) == 240


def test_a_batch_that_is_planned_again_after_a_round_has_what_is_left(topic, run, tmp_path):
    """The driver died in the batch: its offsets are in the checkpoint, its end is not."""
    topic.append(some_records(100))
    before = run()
    forget_commit(tmp_path / "checkpoint", 0)
    compact_without_spark(topic)
    topic.append(some_records(10, start=100))
    again = run()
    replayed, rest = again.batches[0], again.batches[1:]
    assert in_order(replayed) == [r for r in topic.reader() if (r.partition, r.offset) in before.places]
    assert len(replayed) < 100
    assert len([r for batch in rest for r in batch]) == 10


def test_most_offsets_in_a_batch(topic, run):
    topic.append([Record(b"k%d" % i, b"v", partition=int(i % 10 == 0)) for i in range(100)])
    got = run(maxOffsetsPerTrigger=20)
    assert in_order(got.records) == list(topic.reader())
    assert max(map(len, got.batches)) == 20
    assert len(got.batches) >= 5


def test_new_partitions_and_new_topics_of_a_pattern_are_picked_up(session, lake, topic, running):
    topic.append([Record(b"a", b"1", partition=0)])
    options = {"subscribePattern": "t.*", "startingOffsets": "earliest"}
    query, got = running(session.readStream.format("lithify").options(**options).load())
    query.processAllAvailable()
    topic.alter(partitions=4)
    topic.append([Record(b"b", b"2", partition=3), Record(b"c", b"3", partition=0)])
    lake.create_topic("t2").append([Record(b"d", b"4")])
    query.processAllAvailable()
    assert sorted((r.key, r.partition, r.offset) for r in got.records) == [
        (b"a", 0, 0),
        (b"b", 3, 0),
        (b"c", 0, 1),
        (b"d", 0, 0),
    ]


def test_a_stream_whose_place_was_deleted_fails_and_says_so(topic, run, tmp_path):
    topic.append(some_records(20))
    run()
    topic.append([Record(b"k", b"v", partition=0)] * 50)
    end = topic.state().log(0).log_end_offset
    topic.delete_records(0, end - 10)
    with pytest.raises(StreamingQueryException, match=rf"t-0: the log starts at {end - 10} now.*failOnDataLoss=false"):
        run()
    [*_, place] = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()
    batch, _ = batch_after(tmp_path / "lake", place, failOnDataLoss=False)
    assert places(batch) == [(0, offset) for offset in range(end - 10, end)]


def test_records_above_a_cut_are_read_where_data_may_be_lost(topic, running, run):
    """Also where the cursor was beyond the log end for a while, or the log has grown beyond it again."""
    topic.append([Record(b"k", b"v", partition=0)] * 84)
    query, got = running(failOnDataLoss=False)
    query.processAllAvailable()
    assert len(got.records) == 84
    topic.truncate(0, 50)
    query.processAllAvailable()
    assert len(got.records) == 84
    topic.append([Record(b"l", b"v", partition=0)] * 3)
    query.processAllAvailable()
    query.stop()
    assert [(r.partition, r.offset) for r in got.records[84:]] == [(0, n) for n in range(50, 53)]
    topic.truncate(0, 51)
    topic.append([Record(b"m", b"v", partition=0)] * 4)
    assert run(failOnDataLoss=False).places == [(0, n) for n in range(51, 55)]


def test_only_assigned_partitions_are_read(session, topic, running):
    topic.append([Record(b"k", b"v", partition=n % 2) for n in range(10)])
    options = {"assign": '{"t":[1]}', "startingOffsets": "earliest", "minOffsetsPerTrigger": "1"}
    query, got = running(session.readStream.format("lithify").options(**options).load())
    query.processAllAvailable()
    topic.append([Record(b"k", b"v", partition=n % 2) for n in range(4)])
    query.processAllAvailable()
    assert got.places == [(1, n) for n in range(7)]


def test_a_stream_that_has_read_the_delete_goes_on(topic, running):
    """C49: what rounds take below its place it has seen; nothing new is no new batch."""
    topic.alter({"delete.retention.ms": 0})
    topic.append([Record(b"k", b"v", partition=0), Record(b"k", None, partition=0), Record(b"l", b"v", partition=0)])
    query, got = running()
    query.processAllAvailable()
    compact_without_spark(topic)
    query.processAllAvailable()
    assert len(got.batches) == 1
    topic.append([Record(b"m", b"v", partition=0)])
    query.processAllAvailable()
    assert [r.offset for r in got.batches[1]] == [3]


def test_a_checkpoint_of_an_earlier_version_is_gone_on_from(topic, run, tmp_path):
    """First one with epochs, then one without them, neither with cursors."""
    topic.append(some_records(20))
    run()
    offsets = tmp_path / "checkpoint" / "offsets" / "0"
    *before, last = offsets.read_text().splitlines()
    told = json.loads(last)
    assert told.pop("#cursors")
    topic.append(some_records(5, start=20))
    batch, _ = batch_after(tmp_path / "lake", json.dumps({**told, "#epochs": {"t": {"0": 1, "1": 1}}}))
    assert len(batch) == 5
    offsets.write_text("\n".join([*before, json.dumps(told)]))
    (offsets.parent / f".{offsets.name}.crc").unlink()
    assert run().records == batch


def test_a_stream_whose_topic_is_gone_fails_and_says_so(lake, topic, running):
    topic.append(some_records(3))
    query, _ = running()
    query.processAllAvailable()
    lake.delete_topic("t")
    with pytest.raises(StreamingQueryException, match="t"):
        query.processAllAvailable()


def test_a_stream_that_cannot_begin_is_refused_in_our_words(session, topic, tmp_path):
    for asked, options, says in (("t", {"endingOffsets": "latest"}, "a stream has no end"), ("tt", {}, "mean t\\?")):
        writer = read_by(session.readStream, asked, **options).writeStream.format("noop").trigger(availableNow=True)
        with pytest.raises(StreamingQueryException, match=says) as refused:
            writer.option("checkpointLocation", str(tmp_path / asked)).start().awaitTermination(TIMEOUT_S)
        assert "Traceback" not in str(refused.value)


class TestGroup:
    """A query reports its progress as positions of a group; its checkpoint stays what it continues at (C58)."""

    def test_positions_are_those_of_the_batches_that_are_done(self, lake, topic, run):
        topic.append(some_records(10))
        first = run(group="g")
        assert len(first.records) == 10
        positions = {p.log.partition: p.cursor for p in lake.group("g").positions()}
        ends = {log.partition: log.log_end_offset for log in topic.state().logs}
        assert {p: cursor.offset for p, cursor in positions.items()} == ends
        assert all(cursor.identity == topic.state().identity for cursor in positions.values())
        assert [lag.records_left for lag in lake.group("g").describe()] == [0, 0]
        lake.group("g").reset("t", "earliest")  # at once: the query has given its leases up
        topic.append(some_records(4))
        assert len(run(group="g").records) == 4
        assert [lag.records_left for lag in lake.group("g").describe()] == [0, 0]

    def test_a_group_with_members_is_refused(self, lake, topic, running, session):
        topic.append(some_records(10))
        with topic.reader(group="g", follow=True) as member:
            assert len(list(member.poll())) > 0
            options = {"startingOffsets": "earliest", "includeHeaders": True, "group": "g"}
            query, _ = running(read_by(session.readStream, "t", **options))
            with pytest.raises(StreamingQueryException, match="reads t"):
                for _ in range(TIMEOUT_S):  # it is sure that the member is alive once it has seen a renewal
                    topic.append(some_records(1))
                    query.processAllAvailable()
                    time.sleep(1)

    def test_a_batch_query_has_no_group(self, session, topic):
        with pytest.raises(Exception, match="a batch query does not report progress"):
            read_by(session.read, "t", group="g").collect()
