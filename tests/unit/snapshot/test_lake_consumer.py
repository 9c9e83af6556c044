"""A consumer of the lake alone: the compacted records, what is appended meanwhile, and a stored position (C7, C49)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.api.lake import open_lake
from lithify.errors import LithifyError, LogTruncatedError, RefusedError
from lithify.model.record import Record
from lithify.model.topic.state import NewTopic
from lithify.service.snapshot.lake_consumer import LakeConsumer
from lithify.testing.fake_clock import FakeClock
from support.engines.kernel import compact_without_spark


@pytest.fixture
def topic(tmp_path):
    lake = open_lake(str(tmp_path / "lake"))
    lake = replace(lake, warehouse=replace(lake.warehouse, clock=FakeClock(1_000)))
    return lake.create_topic("t", 2, config={"delete.retention.ms": 0})


def put(topic, text, partition=0):
    """`a=1 b=-`: keys and values; `-` deletes."""
    pairs = [pair.split("=") for pair in text.split()]
    topic.append([Record(k.encode(), None if v == "-" else v.encode(), 7, partition=partition) for k, v in pairs])


def texts(table):
    return {key.decode(): record.value.decode() for key, record in table.items()}


def taken(consumer):
    found = []
    while not consumer.caught_up():
        if (record := consumer.poll()) is not None:
            found.append((record.partition, record.offset))
    return found


def test_a_table_is_filled_and_continued(topic, tmp_path):
    table, position = {}, tmp_path / "position"
    put(topic, "a=1 b=1 a=2")
    put(topic, "c=1", 1)
    compact_without_spark(topic)
    assert topic.fill(table, position=position) == 3
    assert texts(table) == {"a": "2", "b": "1", "c": "1"}
    put(topic, "b=- d=1")
    assert topic.fill(table, position=position) == 2
    assert texts(table) == {"a": "2", "c": "1", "d": "1"}
    assert topic.fill(table, position=position) == 0


def test_what_is_appended_meanwhile_follows_once(topic):
    put(topic, "a=1 a=2")
    compact_without_spark(topic)
    with topic.consumer() as consumer:
        assert taken(consumer) == [(0, 1)]
        put(topic, "a=3")
        put(topic, "b=1", 1)
        compact_without_spark(topic)
        assert taken(consumer) == [(0, 2), (1, 0)]
        assert consumer.poll(0.5) is None
        topic.alter(partitions=3)
        put(topic, "c=1", 2)
        topic.warehouse.clock.advance(60_000)
        assert consumer.poll().partition == 2


def test_it_continues_where_the_last_one_was(topic, tmp_path):
    put(topic, "a=1 b=1 c=1")
    with topic.consumer(position=tmp_path / "position") as consumer:
        assert [consumer.poll().offset, consumer.poll().offset] == [0, 1]
    with topic.consumer(position=tmp_path / "position") as consumer:
        assert taken(consumer) == [(0, 2)]
    with pytest.raises(LithifyError, match="the position of t with Lithify's t"):
        topic.warehouse.store.create_topic(
            NewTopic(replace(topic.topic_name, topic="u"), "u", topic.state().settings, 2, 0)
        )
        replace(topic, topic_name=replace(topic.topic_name, topic="u")).consumer(position=tmp_path / "position")


def test_a_missed_delete_is_an_error(topic, tmp_path):
    """C49: the table would keep a key that was deleted while nobody read."""
    table, position = {}, tmp_path / "position"
    put(topic, "a=1 b=1")
    topic.fill(table, position=position)
    put(topic, "a=- c=1")
    compact_without_spark(topic)
    topic.warehouse.clock.advance(1_000)
    compact_without_spark(topic)
    with pytest.raises(LogTruncatedError, match="delete"):
        topic.fill(table, position=position)


def truncated(topic):
    topic.truncate(0, 1)


def truncated_and_filled(topic):
    topic.truncate(0, 1)
    put(topic, "x=1 y=1 z=1 u=1")


def recreated(topic):
    state = topic.state()
    topic.warehouse.store.drop_topic(topic.topic_name)
    topic.warehouse.store.create_topic(NewTopic(topic.topic_name, "t", state.settings, 2, 0))
    put(topic, "x=1 y=1 z=1 u=1")


@pytest.mark.parametrize("change", [truncated, truncated_and_filled, recreated])
def test_a_log_that_went_back_is_an_error_for_running_and_for_continued_consumers(topic, tmp_path, change):
    put(topic, "a=1 b=1 c=1")
    with pytest.raises(LithifyError, match=r"truncated|recreated|ends at"), topic.consumer() as consumer:
        assert taken(consumer) == [(0, 0), (0, 1), (0, 2)]
        topic.fill({}, position=tmp_path / "position")
        change(topic)
        while True:
            consumer.poll()
    with pytest.raises(LithifyError, match=r"truncated|recreated|ends at"):
        topic.fill({}, position=tmp_path / "position")


@pytest.mark.parametrize("asks", [LakeConsumer.poll, LakeConsumer.caught_up, lambda consumer: consumer.fill({})])
def test_a_log_that_was_cut_and_ends_before_what_was_read_is_an_error(topic, asks):
    """C7, C49. A table would keep what was cut."""
    put(topic, "a=1 b=1 c=1")
    with topic.consumer() as consumer:
        assert len(taken(consumer)) == 3
        topic.truncate(0, 1)
        with pytest.raises(LogTruncatedError, match="truncated"):
            asks(consumer)


@pytest.mark.parametrize("asks", [LakeConsumer.poll, LakeConsumer.caught_up, lambda consumer: consumer.fill({})])
@pytest.mark.parametrize(("change", "records"), [(truncated_and_filled, 5), (recreated, 4)])
def test_a_log_that_went_back_and_ends_where_it_ended_is_an_error_though_nothing_is_new(topic, change, records, asks):
    """C7, C49."""
    put(topic, " ".join(f"{number}=1" for number in range(records)))
    with topic.consumer() as consumer:
        assert len(taken(consumer)) == records
        change(topic)
        assert topic.state().log(0).log_end_offset == records
        with pytest.raises(LogTruncatedError, match=r"truncated|recreated"):
            asks(consumer)


def test_a_burst_in_one_of_many_partitions_takes_a_few_loads(topic, monkeypatch):
    """Not some for each partition: a topic may have a thousand, and its state is as large."""
    topic.alter(partitions=30)
    loads = []
    store = type(topic.warehouse.store)
    load = store.load
    with topic.consumer() as consumer:
        table = {}
        put(topic, "a=1", 7)
        monkeypatch.setattr(store, "load", lambda self, name: loads.append(name) or load(self, name))
        assert consumer.fill(table) == 1
        assert 0 < len(loads) < 8
        put(topic, "a=2 b=1", 8)
        loads.clear()
        assert consumer.fill(table) == 2
        assert 0 < len(loads) < 8


def test_what_was_appended_before_a_fill_is_in_it_though_a_version_was_just_loaded(topic):
    table = {}
    with topic.consumer() as consumer:  # the clock of this test never moves: what is recent stays so
        for value in ("1", "2", "3"):
            put(topic, f"a={value}")
            assert consumer.fill(table) == 1
            assert texts(table) == {"a": value}


def test_a_table_that_is_filled_again_loses_what_was_deleted_though_the_deletes_are_gone(topic):
    """C12: without a position nothing says where the table was filled up to."""
    table = {}
    put(topic, "a=1 b=1")
    assert topic.fill(table) == 2
    put(topic, "a=- c=1")
    for _ in range(2):
        compact_without_spark(topic)
        topic.warehouse.clock.advance(1_000)
    assert topic.fill(table) == 2
    assert texts(table) == {"b": "1", "c": "1"}


def test_a_consumer_that_starts_from_the_beginning_refuses_a_table_that_has_keys(topic, tmp_path):
    table = {}
    put(topic, "a=1 b=1")
    topic.fill(table, position=tmp_path / "position")
    for lost in (None, tmp_path / "another"):
        with topic.consumer(position=lost) as consumer, pytest.raises(RefusedError, match="the table has 2 keys"):
            consumer.fill(table)
    with topic.consumer(partitions=[0]) as one, topic.consumer(partitions=[1]) as other:
        put(topic, "c=1", 1)
        found = {}
        assert one.fill(found) + other.fill(found) == 3, "they share a table"


def test_a_fill_takes_up_partitions_that_were_added(topic):
    table = {}
    with topic.consumer() as consumer:
        put(topic, "a=1")
        consumer.fill(table)
        topic.alter(partitions=3)
        put(topic, "b=1", 2)
        assert consumer.fill(table) == 1  # at once: the clock of this test does not move
        assert texts(table) == {"a": "1", "b": "1"}


def test_its_repr_says_what_and_where_it_reads(topic):
    put(topic, "a=1 b=2")
    with topic.consumer() as consumer:
        assert repr(consumer) == "<LakeConsumer of t, processed up to 0: 0, 1: 0>"
        taken(consumer)
        consumer.position()
        assert repr(consumer) == "<LakeConsumer of t, processed up to 0: 2, 1: 0>"


def test_the_repr_of_a_reader_says_what_and_where_it_reads(topic):
    put(topic, "a=1 b=2")
    reader = topic.reader(0)
    reader.read_next()
    assert repr(reader) == "<LogReader of t, next offsets 0: 1>"
    topic.alter(partitions=300)
    assert repr(topic.reader()).startswith("<TopicReader of t, next offsets 0: 0, 1: 0, ")
    assert repr(topic.reader()).endswith(", 7: 0, and 292 more>")
    with topic.reader(group="g", follow=True) as member:
        assert repr(member) == "<GroupReader of t, group g, next offsets none: it reads no partition>"
        list(member.poll())
        assert repr(member).startswith("<GroupReader of t, group g, next offsets 0: 2, 1: 0, ")
    assert repr(member).endswith(", closed>")
