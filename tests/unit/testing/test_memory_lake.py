"""The lake in memory does what programs do to a stored lake, and refuses what it cannot do."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lithify
from lithify.api.pulsar import client_config
from lithify.errors import RefusedError
from lithify.model.record import Record
from lithify.testing import FakeClock, memory_lake


@pytest.fixture
def lake():
    return memory_lake(FakeClock(1_000_000))


def some_records(count):
    return [Record(key=b"k%d" % (n % 3), value=b"%d" % n) for n in range(count)]


def test_rounds_leave_the_latest_and_verify_proves_it(lake):
    topic = lake.create_topic("orders", config={"min.compaction.lag.ms": 0})
    topic.append(some_records(10))
    assert topic.plan().logs[0].records_in == 10
    assert topic.compact().logs[0].records_out == 3
    assert topic.verify().findings == ()
    assert topic.history()[0].changed
    assert [record.value for record in topic.reader()] == [b"7", b"8", b"9"]


def test_a_tombstone_waits_for_a_group_in_the_lake(lake):
    clock = lake.warehouse.clock
    topic = lake.create_topic("orders", config={"tombstone.hold.groups": "billing", "delete.retention.ms": 1})
    topic.append([Record(key=b"a", value=b"1"), Record(key=b"a", value=None)])
    for _ in range(2):
        topic.compact()
        clock.advance(10)
    assert [record.value for record in topic.reader()] == [None]
    with topic.reader(group="billing") as reader:
        list(reader)
        reader.commit()
    topic.append(some_records(1))
    topic.compact()
    assert [record.key for record in topic.reader()] == [b"k0"]


def test_a_status_and_the_information_of_all_topics_are_there(lake):
    lake.create_topic("orders").append(some_records(2))
    assert [one.topic for one in lake.status().topics] == ["orders"]
    assert lake.topic_infos()[0].records == 2
    assert lake.info().topics == 1
    assert lake.delete_topic("orders") == ()


def test_lakes_share_nothing(lake):
    lake.create_topic("orders")
    assert memory_lake().topics() == ()


PULSAR = client_config("pulsar://localhost:1", "http://localhost:1")


@pytest.mark.parametrize(
    "verb",
    [
        lambda lake: lake.cleaner(),
        lambda lake: lake.replicas().status(),
        lambda lake: lake.repairable(),
        lambda lake: lake.ingest({"bootstrap.servers": "localhost:1"}, ["orders"]),
        lambda lake: lake.ingest_pulsar(PULSAR, ["persistent://public/default/orders"]),
    ],
)
def test_what_needs_a_stored_warehouse_is_refused_before_it_begins(lake, verb):
    with pytest.raises(RefusedError, match=r"memory: .* need a warehouse on a disk or in a store"):
        verb(lake)


def a_table(*kinds: int | None) -> pa.Table:
    """Records with these timestamp types, at consecutive offsets."""
    count = len(kinds)
    return pa.table(
        {
            "key": pa.array([b"k"] * count),
            "value": pa.array([b"v"] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([1] * count, pa.int64()),
            "timestamp_type": pa.array(kinds, pa.int32()),
        }
    )


ODD_BATCHES = {
    "a table with types of time": a_table(0, 1, None),
    "a table with a type of time that is none": a_table(0, 7),
    "a table with a negative type of time": a_table(1, -1),
    "a key of text": [Record("k", b"v")],
    "a value of text": [Record(b"k", "v")],
    "a key that is a number": [Record(1, b"v")],
    "bytes that can be changed": [Record(bytearray(b"k"), memoryview(b"v"))],
    "a time with a fraction": [Record(b"k", b"v", timestamp=1.5)],
    "a time that is a flag": [Record(b"k", b"v", timestamp=True)],
    "a time of text": [Record(b"k", b"v", timestamp="1")],
    "a partition of text": [Record(b"k", b"v", partition="0")],
    "a partition that is not there": [Record(b"k", b"v", partition=5)],
    "an offset of text": [Record(b"k", b"v", offset="7")],
    "a type of time that is none": [Record(b"k", b"v", timestamp_type="x")],
    "headers in lists": [Record(b"k", b"v", headers=[["a", b"b"]])],
    "no headers": [Record(b"k", b"v", headers=None)],
    "a header's name of bytes": [Record(b"k", b"v", headers=((b"a", b"b"),))],
    "a header's value of text": [Record(b"k", b"v", headers=(("a", "b"),))],
    "a header without a name": [Record(b"k", b"v", headers=((None, b"b"),))],
    "a header's name that is no text": [Record(b"k", b"v", headers=(("\udc80", b"b"),))],
    "a tuple": [(b"k", b"v")],
    "a dictionary": [{"key": b"k", "value": b"v"}],
    "nothing for a record": [None],
}


@pytest.mark.parametrize("keep_offsets", [False, True])
@pytest.mark.parametrize("batch", ODD_BATCHES.values(), ids=ODD_BATCHES)
def test_what_a_program_appends_is_taken_or_refused_as_by_a_stored_lake(batch, keep_offsets, tmp_path):
    def outcome(lake):
        topic = lake.create_topic("orders")
        try:
            topic.append(batch, keep_offsets=keep_offsets)
        except Exception as error:
            return type(error), str(error)
        return [record._replace(timestamp=None) for record in topic.reader()]

    assert outcome(memory_lake()) == outcome(lithify.open(tmp_path))


def test_a_program_that_changes_what_it_appended_changes_no_record(lake):
    topic, value = lake.create_topic("orders"), bytearray(b"1")
    topic.append([Record(b"k", value)])
    value[:] = b"2"
    assert [record.value for record in topic.reader()] == [b"1"]
