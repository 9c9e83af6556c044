"""`spark.read.format("lithify")`: exactly what a reader gives, and no file that need not be opened (C2, C33)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException

from lithify import AtTime, Record
from lithify.columnar.files.access import local_path
from lithify.errors import LithifyError
from lithify.spark_source.data_source import LithifySource
from spark.topics import T0_MS, files_of, in_order, lake_for, read_by, some_records, spark_records
from support.engines.kernel import compact_without_spark

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def orders(lake):
    """Three segments in each of two logs: offsets 0, 50, 100 to 149, a millisecond each."""
    topic = lake.create_topic("orders", partitions=2, config={"null.key": "retain"})
    for start in range(0, 150, 50):
        records = some_records(50, start=start)
        topic.append([Record(r.key, r.value, r.timestamp, r.headers, p) for p in range(2) for r in records])
    return topic


@pytest.fixture(params=[False, True], ids=["filters not pushed down", "filters pushed down"])
def pushed(request, session):
    session.conf.set(PUSHDOWN, str(request.param).lower())
    yield request.param
    session.conf.unset(PUSHDOWN)


def path_of(segment) -> Path:
    return Path(local_path(segment.path) or "")


def test_it_reads_what_a_reader_reads(session, orders):
    orders.append([Record(None, b"keyless", T0_MS, partition=1), Record(b"k", None, 0, partition=0)])
    frame = read_by(session.read, "orders", includeHeaders=True)
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    assert spark_records(frame) == list(orders.reader())
    assert {row.topic for row in frame.select("topic").collect()} == {"orders"}
    assert "headers" not in read_by(session.read, "orders").columns


def test_it_reads_what_a_round_left(session, orders):
    report = orders.compact(spark=session)
    assert report.logs[0].records_out < 150
    orders.append(some_records(5))
    assert spark_records(read_by(session.read, "orders", includeHeaders=True)) == list(orders.reader())


def test_log_append_time_shows_in_the_timestamp_type(session, lake):
    topic = lake.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
    topic.append([Record(b"k", b"v")])
    assert spark_records(read_by(session.read, "t")) == list(topic.reader())
    assert read_by(session.read, "t").first().timestampType == 1


def both(offset: object) -> str:
    return json.dumps({"orders": {"0": offset, "1": offset}})


RANGES = [
    ({"startingOffsets": both(30), "endingOffsets": both(110)}, 30, 110),
    ({"startingTimestamp": T0_MS + 60, "startingOffsets": both(3), "endingTimestamp": T0_MS + 61}, 60, 61),
    ({"startingOffsetsByTimestamp": both(-2), "endingOffsetsByTimestamp": both(-1)}, 0, 150),
    ({"startingOffsetsByTimestamp": both(-1)}, 150, 150),
]


@pytest.mark.parametrize(("options", "start", "end"), RANGES)
def test_ranges(session, orders, options, start, end):
    """C37: an offset is inclusive, a time means the first record at or after it, an end is exclusive."""
    expected = [r for r in orders.reader() if start <= r.offset < end]
    assert spark_records(read_by(session.read, "orders", includeHeaders=True, **options)) == expected


def test_every_log_has_a_range_of_its_own(session, orders):
    offsets = {"startingOffsets": '{"orders":{"0":10,"1":-2}}', "endingOffsets": '{"orders":{"0":20,"1":1}}'}
    got = [(r.partition, r.offset) for r in spark_records(read_by(session.read, "orders", **offsets))]
    assert got == [*((0, n) for n in range(10, 20)), (1, 0)]


REFUSED = [
    ({"startingOffsets": "latest"}, "nothing would be read"),
    ({"startingOffsets": '{"orders":{"0":1}}'}, "orders-1: its offset is missing"),
    ({"endingOffsets": both(151)}, r"orders-0: offset 151 is outside of \[0, 150\]"),
    ({"columns": "key,keys"}, "there is no column 'keys'"),
    ({"startingOffsets": both(-1)}, "startingOffsets: -1 is the latest"),
    ({"endingOffsets": both(-2)}, "endingOffsets: -2 is the earliest"),
    (
        {"startingOffsets": both(7), "endingOffsets": both(6)},
        "orders-0: the start, offset 7, is above the end, offset 6",
    ),
    ({"startingTimestamp": T0_MS + 150}, "orders-0: no record is at or after .*startingOffsetsByTimestampStrategy"),
]


def test_what_makes_no_sense_is_refused_by_name(orders, tmp_path):
    for options, says in REFUSED:
        asked = {name: str(value) for name, value in options.items()}
        source = LithifySource({"subscribe": "orders", "warehouse": str(tmp_path / "lake"), **asked})
        with pytest.raises(LithifyError, match=says):
            source.reader(source.schema()).partitions()


@pytest.mark.parametrize(
    ("topic", "options", "says"),
    [
        (
            "orders",
            {"startingOffset": "earliest"},
            r"unknown option 'startingoffset' \(did you mean startingOffsets\?\)",
        ),
        ("orders", {"columns": "key,keys"}, "there is no column 'keys'"),
        ("nothing", {}, r"UnknownTopicError.*nothing"),
    ],
)
def test_spark_says_what_was_refused(session, orders, topic, options, says):
    """In each step, for which it starts a process that ends with the error."""
    with pytest.raises(PySparkException, match=says) as refused:
        read_by(session.read, topic, **options).count()
    assert "Traceback" not in str(refused.value)


def test_a_topic_is_read_as_it_was(session, orders):
    """C69: at a time or an offset that only a kept version has, and as a version has it."""
    first = list(orders.reader())
    version = orders.state().version
    compact_without_spark(orders)
    orders.append(some_records(20, start=150))
    upto_90 = in_order(r for r in first if r.offset < 90)
    for options in ({"timestampAsOf": T0_MS + 90}, {"at": both(90)}):
        assert spark_records(read_by(session.read, "orders", includeHeaders=True, **options)) == upto_90
    kept = read_by(session.read, "orders", includeHeaders=True, versionAsOf=version)
    assert spark_records(kept) == first
    assigned = session.read.format("lithify").options(assign='{"orders":[1]}', at="90", includeHeaders="true").load()
    assert spark_records(assigned) == [r for r in upto_90 if r.partition == 1]


def test_a_schema_that_does_not_fit_is_refused(session, orders):
    for schema, says in [("key STRING", "key as string, but its type is binary"), ("nokey BINARY", "column 'nokey'")]:
        with pytest.raises(AnalysisException, match=says):
            session.read.format("lithify").schema(schema).option("subscribe", "orders").load().count()


def test_an_offset_that_is_gone_means_the_nearest_where_data_may_be_lost(session, orders):
    orders.delete_records(0, 40)
    options = {"startingOffsets": both(10), "endingOffsets": both(500)}
    with pytest.raises(PySparkException, match=r"orders-0: offset 10 is outside of \[40, 150\]"):
        read_by(session.read, "orders", **options).count()
    got = spark_records(read_by(session.read, "orders", failOnDataLoss=False, includeHeaders=True, **options))
    assert got == [r for r in orders.reader() if r.offset >= 10]


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": both(50), "endingOffsets": both(100)},
        {"startingTimestamp": T0_MS + 50, "endingTimestamp": T0_MS + 100},
    ],
    ids=["offsets", "time"],
)
def test_range_options_leave_files_out(session, orders, options):
    """The files outside of the range are gone, and the read does not need them."""
    expected = [r for r in orders.reader() if 50 <= r.offset < 100]
    for segment in files_of(orders):
        if segment.base_offset != 50:
            path_of(segment).unlink()
    if "endingTimestamp" in options:  # where it falls, a record has to be looked at
        options = {**options, "endingTimestamp": T0_MS + 99}
        expected = [r for r in expected if r.offset < 99]
    assert spark_records(read_by(session.read, "orders", includeHeaders=True, **options)) == expected


AT_100 = f"timestamp_millis({T0_MS + 100})"
AT_49 = f"timestamp_millis({T0_MS + 49})"

FILTERS = [
    ("offset >= 100", lambda r: r.offset >= 100, lambda s: s.base_offset == 100),
    ("offset > 60 and offset <= 70", lambda r: 60 < r.offset <= 70, lambda s: s.base_offset == 50),
    ("offset in (7, 9)", lambda r: r.offset in (7, 9), lambda s: s.base_offset == 0),
    ("partition = 1", lambda r: r.partition == 1, lambda s: s.partition == 1),
    (f"timestamp >= {AT_100}", lambda r: r.timestamp >= T0_MS + 100, lambda s: s.base_offset == 100),
    (f"timestamp < {AT_49}", lambda r: r.timestamp < T0_MS + 49, lambda s: s.base_offset == 0),
]


def test_filters_reach_the_files_where_spark_pushes_them_down(session, orders, pushed):
    """Files that none of the wanted records is in are away meanwhile, if they need not be opened."""
    records = list(orders.reader())
    for condition, wanted, needed in FILTERS if pushed else FILTERS[:1]:
        expected = [r for r in records if wanted(r)]
        away = [path_of(segment) for segment in files_of(orders) if pushed and not needed(segment)]
        for path in away:
            path.rename(path.with_suffix(".away"))
        frame = read_by(session.read, "orders", includeHeaders=True).where(condition)
        assert expected and spark_records(frame) == expected, condition
        for path in away:
            path.with_suffix(".away").rename(path)


def test_filters_that_cannot_be_pushed_down_change_nothing(session, orders, pushed):
    frame = (
        read_by(session.read, "orders").where("offset % 50 = 3 or key = cast('k1' as binary)").where("value is null")
    )
    assert frame.count() == sum((r.offset % 50 == 3 or r.key == b"k1") and r.value is None for r in orders.reader())


def test_only_columns_that_are_asked_for_are_read(session, lake):
    """Whatever is wrong with the values, keys can be read."""
    topic = lake.create_topic("t")
    topic.append([Record(b"k%d" % i, bytes([i % 251]) * 1000) for i in range(500)])
    [segment] = files_of(topic)
    import pyarrow.parquet as pq

    chunk = pq.ParquetFile(path_of(segment)).metadata.row_group(0)
    [values] = [chunk.column(i) for i in range(chunk.num_columns) if chunk.column(i).path_in_schema == "value"]
    at = values.data_page_offset + values.total_compressed_size // 2
    data = bytearray(path_of(segment).read_bytes())
    data[at] ^= 0x10
    path_of(segment).write_bytes(data)

    by_option = read_by(session.read, "t", columns="offset,key")
    assert by_option.columns == ["offset", "key"]
    by_schema = session.read.format("lithify").schema("key BINARY, topic STRING").option("subscribe", "t").load()
    assert [row.key for row in by_option.orderBy("offset").collect()] == [b"k%d" % i for i in range(500)]
    assert by_schema.where("topic = 't'").count() == 500
    with pytest.raises(PySparkException, match=r"\.parquet: the file cannot be read"):
        read_by(session.read, "t").collect()


def test_a_log_is_read_by_as_many_tasks_as_are_asked_for(session, lake):
    topic = lake.create_topic("t")
    topic.append(some_records(1000, keys=999))
    orders = read_by(session.read, "t", includeHeaders=True, minPartitions=7)
    assert read_by(session.read, "t").rdd.getNumPartitions() == 1
    assert orders.rdd.getNumPartitions() >= 7
    assert spark_records(orders) == list(topic.reader())


def test_a_compacted_view_is_read_if_it_is_asked_for(session, lake):
    """C33: below D the view, from there on the backlog; who does not ask gets the backlog."""
    topic = lake.create_topic("t", partitions=2, like="pulsar")
    topic.append(some_records(200))
    compact_without_spark(topic)
    topic.append(some_records(30, start=200))
    view = spark_records(read_by(session.read, "t", compacted=True, includeHeaders=True))
    assert view == list(topic.reader(compacted=True))
    backlog = spark_records(read_by(session.read, "t", includeHeaders=True))
    assert backlog == list(topic.reader())
    assert len(view) < len(backlog) == 230
    ranged = read_by(session.read, "t", compacted=True, includeHeaders=True, startingTimestamp=T0_MS + 195)
    assert spark_records(ranged) == list(topic.reader(start=AtTime(T0_MS + 195), compacted=True))


def test_several_topics_by_name_and_by_pattern(session, lake, orders):
    other = lake.create_topic("shop/orders")
    other.append(some_records(3))
    expected = in_order([*orders.reader(), *other.reader()])
    assert spark_records(read_by(session.read, "orders, shop/orders", includeHeaders=True)) == expected
    by_pattern = session.read.format("lithify").options(subscribePattern=".*orders", includeHeaders="true").load()
    assert spark_records(by_pattern) == expected
    none = session.read.format("lithify").option("subscribePattern", "no.*").load()
    assert none.count() == 0


def test_an_empty_topic_has_no_records(session, lake):
    lake.create_topic("t", partitions=3)
    assert read_by(session.read, "t").collect() == []


def test_a_timestamp_that_spark_cannot_hold_is_named(session, lake):
    topic = lake.create_topic("t")
    topic.append([Record(b"k", b"v", 2**62, partition=0, offset=5)], keep_offsets=True)
    with pytest.raises(PySparkException, match=r"t: a timestamp is outside the range.*columns"):
        read_by(session.read, "t").collect()
    assert read_by(session.read, "t", columns="offset").first().offset == 5


def test_another_warehouse_by_option(session, lake, orders, tmp_path):
    elsewhere = lake_for(session, tmp_path / "elsewhere")
    topic = elsewhere.create_topic("orders")
    topic.append([Record(b"k", b"v", T0_MS)])
    assert spark_records(read_by(session.read, "orders")) == list(topic.reader())
    assert read_by(session.read, "orders", warehouse=str(tmp_path / "lake")).count() == 300


def test_an_error_in_a_task_is_told_without_a_traceback(session, orders):
    lost = path_of(files_of(orders)[0])
    lost.unlink()
    with pytest.raises(PySparkException, match=f"DamagedError: .*{lost.name}: the file is missing") as failed:
        read_by(session.read, "orders").count()
    assert "Traceback (most recent call last)" not in str(failed.value)
