"""Copies of Pulsar topics on Spark: rounds, `verify` and reads of records with message ids (C52, C53)."""

from __future__ import annotations

import json

import pytest

from lithify import Record
from lithify.model.message import Envelope, MessageId
from spark.topics import read_by
from support.chunks import chunk_metadata
from support.engines.kernel import compact_without_spark

pytestmark = pytest.mark.spark


@pytest.fixture
def states(lake):
    """Ten entries: a batch of three, a single message, and every fifth passed through whole, with keys in turn."""
    topic = lake.create_topic("states", like="pulsar", config={"message.ids": "pulsar", "compaction.mode": "in-place"})
    records = []
    for entry in range(30):
        for index in range(3) if entry % 2 else (-1,):
            whole = entry % 5 == 4
            key = None if whole or entry % 7 == 6 else b"k%d" % (entry % 4)
            envelope = Envelope(MessageId(7, entry, index), None if index < 1 else entry, b"p", whole)
            records.append(Record(key, b"v%d" % entry, 1_000 + entry, (), 0, envelope=envelope))
    topic.append(records[:30])
    topic.append(records[30:])
    return topic


def test_a_round_on_spark_keeps_what_is_passed_through_and_verify_agrees(session, states):
    """C52, C53, C16: records without a key go, whole entries stay, ids stay as they are."""
    before = list(states.reader())
    report = states.compact(spark=session)
    after = list(states.reader())
    whole = [r for r in before if r.passed_through]
    assert [r for r in after if r.key is None] == whole
    assert {r.offset for r in after if r.key is not None} == {
        max(r.offset or 0 for r in before if r.key == key) for key in {r.key for r in before} - {None}
    }
    assert report.logs[0].losers.no_key == sum(r.key is None and not r.passed_through for r in before) > 0
    assert states.verify(spark=session).findings == ()


def test_deletes_stay_on_spark_while_an_entry_may_hide_what_they_delete(session, states):
    """C53: though the preset drops them at once; `verify` would name one that went."""
    end = MessageId(8, 0)
    states.append([Record(b"k0", b"", 2_000, (), 0, envelope=Envelope(end, None, b"p"))])
    report = states.compact(spark=session)
    assert (report.logs[0].losers.expired_tombstone, report.logs[0].tombstones_out) == (0, 1)
    assert [r.envelope.id for r in states.reader() if r.key == b"k0"] == [end]
    assert states.verify(spark=session).findings == ()
    states.delete_records(0, 60)
    states.append([Record(b"k9", b"", 2_000, (), 0, envelope=Envelope(MessageId(8, 1), None, b"p"))])
    states.compact(spark=session)
    assert list(states.reader()) == []
    assert states.verify(spark=session).findings == ()


def test_a_chunk_holds_the_deletes_of_its_key_on_spark_and_no_others(session, lake):
    """C53: by any strategy; `verify` computes the same from the entries."""
    for name, config in {"states": {}, "late": {"compaction.strategy": "timestamp"}}.items():
        topic = lake.create_topic(
            name, like="pulsar", config={"message.ids": "pulsar", "compaction.mode": "in-place", **config}
        )
        topic.append(list(_with_chunks(b"a", 900)))
        report = topic.compact(spark=session)
        assert (report.logs[0].losers.expired_tombstone, report.logs[0].tombstones_held) == (2, 1)
        assert [r.key for r in topic.reader() if r.value == b""] == [b"a"]
        assert topic.verify(spark=session).findings == ()
        assert (topic.status().logs[0].due, topic.status().logs[0].passed_through) == (False, 0)


def _with_chunks(key, timestamp):
    """A chunk of a message with this key, and deletes of it and of two others."""
    for entry, found in enumerate((None, b"a", b"b", b"c")):
        envelope = Envelope(MessageId(7, entry), None, chunk_metadata(key), found is None)
        yield Record(found, b"part" if found is None else b"", timestamp + entry, (), 0, envelope=envelope)


def test_spark_reads_the_ids_where_it_is_asked_for_them(session, lake, states):
    """C52: in other topics they are null."""
    lake.create_topic("orders").append([Record(b"k", b"v", 1)])
    frame = read_by(session.read, "states,orders", includeMessageIds=True)
    assert frame.columns[7:] == ["ledger_id", "entry_id", "batch_index", "event_time", "passed_through", "metadata"]
    found = {(row.topic, row.offset): row for row in frame.collect()}
    assert found["orders", 0].ledger_id is None
    for record in states.reader():
        row, envelope = found["states", record.offset], record.envelope
        assert (row.ledger_id, row.entry_id, row.batch_index) == envelope.id
        assert (row.event_time is None, row.passed_through or False) == (
            envelope.event_time is None,
            envelope.passed_through,
        )
        assert bytes(row.metadata) == b"p"
    assert "ledger_id" not in read_by(session.read, "states").columns


def test_spark_starts_and_ends_at_ids(session, states):
    """C52: as a reader does, and `load()` takes the topic."""

    def ids(**options):
        frame = session.read.format("lithify").options(includeMessageIds=True, **options).load("states")
        return sorted((row.ledger_id, row.entry_id, row.batch_index) for row in frame.collect())

    every = [record.envelope.id for record in states.reader()]
    between = {"startingOffsets": '{"states":{"0":"7:3:1"}}', "endingOffsets": '{"states":{"0":"7:21"}}'}
    assert ids(**between) == [one for one in every if (7, 3, 1) <= one < (7, 21)]
    compact_without_spark(states)
    assert ids(**between) == [r.envelope.id for r in states.reader() if (7, 3, 1) <= r.envelope.id < (7, 21)]
    beyond = {"startingOffsets": '{"states":{"0":"7:3"}}', "endingOffsets": '{"states":{"0":"7:30"}}'}
    with pytest.raises(Exception, match="message id 7:30 was not copied yet: the last copied one is 7:29"):
        ids(**beyond)
    assert ids(failOnDataLoss=False, **beyond) == [r.envelope.id for r in states.reader() if r.envelope.id >= (7, 3)]


def test_a_stream_starts_at_an_id(session, states, tmp_path):
    """C52."""
    frame = read_by(session.readStream, "states", startingOffsets='{"states":{"0":"7:20"}}', includeMessageIds=True)
    query = frame.writeStream.format("memory").queryName("ids").option("checkpointLocation", str(tmp_path / "at"))
    query.trigger(availableNow=True).start().awaitTermination()
    found = sorted(tuple(row) for row in session.sql("select ledger_id, entry_id, batch_index from ids").collect())
    assert found == [r.envelope.id for r in states.reader() if r.envelope.id >= (7, 20)]


def test_a_write_of_records_without_ids_is_refused(session, states):
    """C52: only an ingest has ids."""
    version = states.state().version
    frame = session.createDataFrame([(b"k", b"v")], "key binary, value binary").coalesce(1)
    with pytest.raises(Exception, match=r"it has no message id, but message\.ids=pulsar"):
        frame.write.format("lithify").mode("append").option("topic", "states").save()
    assert states.state().version == version


def test_a_topic_has_its_name_of_pulsar_in_spark_too(session, lake):
    """By that name, or the one that it is stored under, it is read, begun within and matched by a pattern."""
    name, stored = "persistent://shop/eu/orders", "pulsar.shop.eu/orders"
    topic = lake.create_topic(name, like="pulsar", config={"message.ids": "pulsar"})
    topic.append(
        [Record(b"k", b"v%d" % n, 1, (), 0, envelope=Envelope(MessageId(7, n), None, b"", False)) for n in (0, 1)]
    )
    for given in (name, stored):
        frame = read_by(session.read, given, startingOffsets=json.dumps({given: {"0": "7:1"}}))
        assert [(row.topic, row.offset) for row in frame.collect()] == [(name, 1)]
    for pattern in ("persistent://shop/eu/.*", r"pulsar\.shop\.eu/.*"):
        frame = session.read.format("lithify").option("subscribePattern", pattern).load()
        assert [row.topic for row in frame.collect()] == [name] * 2
