"""`write` and `writeStream`: appends with offsets of their own, each batch once (C1, C6, C14, C16)."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lithify import Record
from lithify.columnar.arrivals.partitioner import partition_of
from lithify.errors import LithifyError
from lithify.model.topic.log import RUN_IDS_KEPT
from lithify.spark_source.data_source import LithifySource
from spark.topics import files_of, forget_commit, read_by, some_records
from support.engines.kernel import compact_without_spark
from support.processes.programs import kill, start
from support.servers.tcp_proxy import wait_until

TIMEOUT_S = 120
HERE = Path(__file__).parent


@pytest.fixture
def source(lake):
    """300 records in three logs."""
    topic = lake.create_topic("source", partitions=3)
    topic.append(some_records(300))
    return topic


@pytest.fixture
def target(lake):
    return lake.create_topic("target", partitions=3)


@pytest.fixture
def frame(session, source):
    return read_by(session.read, "source", includeHeaders=True)


def save(frame, topic: str | None = "target", mode: str = "append", **options: object) -> None:
    writer = frame.write.format("lithify").mode(mode).options(**{k: str(v) for k, v in options.items()})
    (writer if topic is None else writer.option("topic", topic)).save()


def ends(topic) -> list[int]:
    return [log.log_end_offset for log in topic.state().logs]


def stored_files(topic) -> set[str]:
    """Data files in the topic's folder, whether a version names them or not."""
    stored = topic.warehouse.store.stored_files(topic.state())
    return {file.path for file in stored if file.path.endswith(".parquet")}


def test_a_topic_can_be_copied_as_it_was_read(frame, source, target):
    """A task wrote each log, and its files are taken as they are."""
    save(frame)
    assert list(target.reader()) == list(source.reader())
    assert {s.path for s in files_of(target)} == stored_files(target)
    save(frame)
    assert ends(target) == [2 * end for end in ends(source)]
    assert {s.path for s in files_of(target)} == stored_files(target)


def test_the_topic_may_be_where_records_are_saved(session, source, target, tmp_path):
    session.read.format("lithify").load("source").write.format("lithify").mode("append").save("target")
    assert ends(target) == ends(source)
    writer = read_by(session.readStream, "source", startingOffsets="earliest").writeStream.format("lithify")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start("target")
    assert query.awaitTermination(TIMEOUT_S)
    assert ends(target) == [2 * end for end in ends(source)]


def test_one_commit_and_one_segment_a_log_however_many_tasks(frame, source, target):
    """C14; every record is there once, in the order of its task."""
    version = target.state().version
    save(frame.select("key", "value", "timestamp", "headers").repartition(4))
    assert target.state().version == version + 1
    assert [(s.partition, s.base_offset, s.end_offset) for s in files_of(target)] == [
        (p, 0, end) for p, end in enumerate(ends(source))
    ]
    written = list(target.reader())
    assert by_time(written) == by_time(source.reader())
    assert all(r.partition == partition_of(r.key or b"", 3) for r in written)
    assert target.state().log(1).last_record.timestamp_ms == [r for r in written if r.partition == 1][-1].timestamp


def by_time(records) -> list[tuple]:
    return sorted((r.timestamp, r.key, r.value, r.headers) for r in records)


def test_what_is_left_out_is_filled_in(session, target):
    frame = session.createDataFrame([("k", "v"), ("l", None)], "key STRING, value STRING")
    save(frame)
    written = {r.key: r for r in target.reader()}
    assert (written[b"k"].value, written[b"l"].value) == (b"v", None)
    assert written[b"k"].timestamp > 1_700_000_000_000
    assert written[b"k"].headers == ()


def test_where_records_go_their_column_topic_says(session, lake, target):
    other = lake.create_topic("shop/other")
    rows = [("target", "a"), ("shop/other", "b"), ("target", "c")]
    save(session.createDataFrame(rows, "topic STRING, key STRING").selectExpr("*", "'v' as value"), topic=None)
    assert sorted(r.key for r in target.reader()) == [b"a", b"c"]
    assert [r.key for r in other.reader()] == [b"b"]


@pytest.mark.parametrize("by_column", [False, True], ids=["option", "column"])
def test_a_topic_is_created_where_its_stream_says_so(session, lake, by_column):
    """C56: with what it inherits, by the driver or by the first of the tasks."""
    stream = f"auto{by_column}"
    lake.create_stream(stream, {"autocreate": "true", "defaultpartitions": 2, "compression": "lz4"})
    name = f"{stream}/new"
    rows = [(name, f"k{n}") for n in range(40)]
    frame = session.createDataFrame(rows, "topic STRING, key STRING").selectExpr("*", "'v' as value").repartition(3)
    save(frame if by_column else frame.drop("topic"), topic=None if by_column else name)
    topic = lake.topic(name)
    assert (len(ends(topic)), sum(ends(topic)), topic.state().settings.compression_type) == (2, 40, "lz4")


REFUSED = [
    (["value"], {}, "refused: it has no key"),
    (["key", "value", "cast(null as string) as topic"], {"topic": None}, "a record has no topic"),
    (["key", "value"], {"topic": "nothing"}, "nothing"),
    (["key", "value"], {"mode": "overwrite"}, "never overwritten"),
    (["key", "value", "9 as partition"], {}, "there is no partition 9"),
]
REFUSED_AT_ONCE = [
    ("key BINARY, value BINARY, colour STRING", {}, "column 'colour'.*use one of: key, value"),
    ("key INT, value BINARY", {}, "the column key is int.*cast it to binary"),
    ("key BINARY", {}, "not have a column value"),
    ("key BINARY, value BINARY", {"topic": None}, "no topic is given to write to"),
    ("key BINARY, value BINARY", {"queryId": "q"}, "give both queryId and batchId, or neither"),
    ("key BINARY, value BINARY", {"acks": "all"}, "unknown option 'acks'"),
]
"""By the writer that Spark asks for before any task, in a process that ends with the error."""


def test_a_time_without_a_zone_is_refused_and_its_cast_is_the_sessions(session, target):
    frame = session.createDataFrame([("k", "v")], "key STRING, value STRING")
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        without = frame.selectExpr("*", "timestamp_ntz'2026-01-31 12:00:00' as timestamp")
        with pytest.raises(PySparkException, match=r"timestamp is timestamp_ntz.*cast it to timestamp"):
            save(without)
        save(without.withColumn("timestamp", F.col("timestamp").cast("timestamp")))
    finally:
        session.conf.unset("spark.sql.session.timeZone")
    assert [r.timestamp for r in target.reader()] == [1_769_828_400_000]  # 03:00 UTC


def test_what_cannot_be_appended_is_refused_whole(session, target):
    """C16: one record refuses the batch."""
    before, frame = target.state(), session.createDataFrame([("k", "v")], "key STRING, value STRING").coalesce(1)
    for columns, options, says in REFUSED:
        with pytest.raises(PySparkException, match=says):
            save(frame.selectExpr(*columns), **options)
        assert target.state() == before


@pytest.mark.parametrize("kind", ["writer", "streamWriter"])
def test_what_no_record_can_be_written_of_is_refused(lake, target, tmp_path, kind):
    for schema, options, says in REFUSED_AT_ONCE:
        given = {"warehouse": str(tmp_path / "lake"), "topic": "target", **options}
        source = LithifySource({name: value for name, value in given.items() if value is not None})
        with pytest.raises(LithifyError, match=says):
            getattr(source, kind)(StructType.fromDDL(schema), overwrite=False)


def test_a_batch_with_an_id_is_appended_once(frame, source, target):
    save(frame, queryId="q", batchId=7)
    before = target.state()
    save(frame, queryId="q", batchId=7)
    assert target.state() == before
    with pytest.raises(PySparkException, match="batch 6 of query 'q' arrived, but the topic has batch 7 of it"):
        save(frame, queryId="q", batchId=6)
    assert target.state() == before
    save(frame, queryId="other", batchId=7)
    save(frame, queryId="q", batchId=8)
    assert ends(target) == [3 * end for end in ends(source)]


@pytest.fixture
def copy(session, target, tmp_path):
    """Copies what is new in `source` since a checkpoint."""

    def go_on(checkpoint: str = "copy", **options: object) -> None:
        frame = read_by(session.readStream, "source", startingOffsets="earliest", includeHeaders=True, **options)
        writer = frame.writeStream.format("lithify").option("topic", "target")
        query = writer.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(TIMEOUT_S)

    return go_on


def test_a_stream_copies_a_topic_and_hides_no_other_into_the_same(source, target, copy, tmp_path):
    """Where its checkpoint was set back it is refused: other records may come under numbers that are there."""
    copy(maxOffsetsPerTrigger=100)
    assert list(target.reader()) == list(source.reader())
    copy(checkpoint="second")
    assert ends(target) == [2 * end for end in ends(source)]

    for log in ("offsets", "commits"):
        later = [path for path in (tmp_path / "copy" / log).iterdir() if path.name.strip(".")[0] in "123"]
        assert later
        for path in later:
            path.unlink()
    before = target.state()
    with pytest.raises(StreamingQueryException, match="the query was restarted or reset"):
        copy()
    assert target.state() == before


def test_a_batch_that_is_sent_again_is_not_appended_twice(source, target, copy, tmp_path):
    """The driver died between our commit and Spark's: whatever was committed since, a round and its undoing, too."""
    copy(maxOffsetsPerTrigger=200)
    written = list(target.reader())
    last = max(int(path.name) for path in (tmp_path / "copy" / "commits").glob("[0-9]*"))
    for n in range(RUN_IDS_KEPT + 1):
        target.append([Record(b"other", b"%d" % n, partition=n % 3)])
    compact_without_spark(target)
    target.undo()
    target.alter({"min.compaction.lag.ms": 1})
    before = target.state()
    forget_commit(tmp_path / "copy", last)
    source.append(some_records(10, start=300))
    copy(maxOffsetsPerTrigger=200)
    assert target.state().version == before.version + 1
    ours = [r for r in target.reader() if r.key != b"other"]
    assert by_time(ours) == by_time(source.reader())
    assert len(ours) == len(written) + 10


def test_a_stream_that_was_killed_goes_on_from_its_checkpoint_exactly_once(lake, source, target, copy, tmp_path):
    """SIGKILL in the middle of a batch: the whole driver, with its JVM and workers."""
    program = start(str(HERE / "copying_stream.py"), str(tmp_path / "lake"), str(tmp_path / "copy"))
    wait_until(lambda: program.poll() is not None or sum(ends(target)) >= 40, "no batch was written", TIMEOUT_S)
    time.sleep(random.uniform(0, 0.5))
    printed = kill(program)
    assert 40 <= sum(ends(target)) < 300, printed
    copy(maxOffsetsPerTrigger=100)
    assert list(target.reader()) == list(source.reader())


def named_batches(session, checkpoint: Path) -> None:
    """Copies what is new in `source` batch by batch, under a name of our own."""

    def copy_batch(batch: DataFrame, batch_id: int) -> None:
        save(batch, queryId="ours", batchId=batch_id)

    frame = read_by(session.readStream, "source", startingOffsets="earliest", includeHeaders=True)
    writer = frame.writeStream.foreachBatch(copy_batch).option("checkpointLocation", str(checkpoint))
    assert writer.trigger(availableNow=True).start().awaitTermination(TIMEOUT_S)


def test_a_query_of_our_naming_that_begins_anew_is_refused(session, source, target, tmp_path):
    """Its first batch has the number of one that is there, and other records."""
    named_batches(session, tmp_path / "first")
    source.append(some_records(10, start=300))
    before = target.state()
    says = "batch 0 of query 'ours' arrived, but the topic has batch 0 of it.*a queryId that was not used yet"
    with pytest.raises(StreamingQueryException, match=f"(?s){says}"):
        named_batches(session, tmp_path / "second")
    assert target.state() == before

    forget_commit(tmp_path / "first", 0)
    named_batches(session, tmp_path / "first")
    assert list(target.reader()) == list(source.reader()), "sent again, it is known, and the first one goes on"


def test_a_stream_with_a_refused_record_fails_and_appends_nothing(lake, source, target, copy):
    source.alter({"null.key": "retain"})
    source.append([Record(None, b"keyless", partition=0)])
    with pytest.raises(StreamingQueryException, match="refused: it has no key"):
        copy()
    assert ends(target) == [0, 0, 0]
