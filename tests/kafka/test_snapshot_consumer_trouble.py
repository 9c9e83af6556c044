"""A consumer of lake and Kafka when Kafka compacts as well, has another topic, or does not let it in."""

from __future__ import annotations

import time

import pytest

from lithify.errors import BrokerError, ConnectorError, InvalidSettingError, RefusedError, SourceWentBackError
from lithify.kafka import SnapshotConsumer, publish
from lithify.kafka_client.client import Cluster
from lithify.model.record import Record
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.service.documents import put_source
from support.kafka.lake import kafka_lake, send, table_of

NOW = 1_700_000_000_000
SEGMENT_MS = 60_000


def test_kafkas_own_cleaner_makes_no_difference(broker, tmp_path):
    """It has been above the lake's log end: what it left there is enough for the table."""
    kafka = {"min_cleanable_dirty_ratio": "0.0", "segment_ms": str(SEGMENT_MS)}
    both = kafka_lake(broker, tmp_path, kafka=kafka)
    records = [Record(b"k%d" % (n % 5), None if n % 7 == 0 else b"v%d" % n, NOW + n * SEGMENT_MS) for n in range(40)]
    both.produce(records[:15])
    both.take_in()
    both.compact()
    for first in range(15, 40, 5):  # a batch each, and so a segment
        both.produce(records[first : first + 5])
    end = both.topic.state().log(0).log_end_offset
    deadline = time.monotonic() + 60
    while len(both.in_kafka(start=end)) > 15:
        assert time.monotonic() < deadline, "Kafka's cleaner does nothing"
        time.sleep(0.2)
    table: dict[bytes, Record] = {}
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        consumer.fill(table)
    assert {k: r.value for k, r in table.items()} == {k: r.value for k, r in table_of(records).items()}
    assert table == table_of(both.in_kafka())


def test_a_consumer_does_not_wait_for_an_open_transaction(broker, tmp_path):
    both = kafka_lake(broker, tmp_path)
    both.produce([Record(b"a", b"1", NOW)])
    producer = broker.producer(transactional_id=f"open{both.name}")
    producer.init_transactions(30)
    producer.begin_transaction()
    send(producer, both.name, [Record(b"b", b"1", NOW)])
    producer.flush(30)
    table: dict[bytes, Record] = {}
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        consumer.fill(table)
        assert set(table) == {b"a"}
        producer.commit_transaction(30)
        while not table.get(b"b"):
            consumer.fill(table)


def test_a_topic_that_is_made_again_meanwhile_is_named(broker, tmp_path):
    both = kafka_lake(broker, tmp_path)
    both.produce([Record(b"a", b"1", NOW)])
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        assert consumer.poll().offset == 0
        assert consumer.caught_up()
        broker.delete_topic(both.name)
        broker.make_topic(name=both.name)
        with pytest.raises(SourceWentBackError, match="deleted and recreated"):
            list(consumer)


@pytest.mark.parametrize("new", [30, 1])
def test_a_topic_that_is_made_again_and_has_grown_is_another(broker, tmp_path, new):
    """Kafka's client reads on at the offset, in the other topic; none of its records is handed out or counted."""
    both = kafka_lake(broker, tmp_path)
    both.produce([Record(b"k%d" % n, b"old", NOW) for n in range(5)])
    both.take_in()
    both.produce([Record(b"k5", b"old", NOW)])
    path = tmp_path / "position.json"
    table: dict[bytes, Record] = {}
    with SnapshotConsumer(both.topic, both.conf, position=path) as consumer:
        consumer.fill(table)
        broker.delete_topic(both.name)
        broker.make_topic(name=both.name)
        both.produce([Record(b"k%d" % n, b"new", NOW) for n in range(new)])
        with pytest.raises(SourceWentBackError):
            list(consumer)
        with pytest.raises(SourceWentBackError, match="was deleted and recreated"):
            consumer.fill(table)
    assert {record.value for record in table.values()} == {b"old"}
    with pytest.raises(SourceWentBackError, match="was deleted and recreated"):
        SnapshotConsumer(both.topic, both.conf, position=path)


def test_a_topic_that_was_made_again_since_it_was_copied_is_another(broker, tmp_path):
    """As the copy knows it, however long the new one is by now."""
    both = kafka_lake(broker, tmp_path)
    both.produce([Record(b"a", b"old", NOW)])
    both.take_in()
    store, state = both.topic.warehouse.store, both.topic.state()
    put_source(store, state, CopiedTopic(both.name, Cluster(both.conf).topic_id(both.name)))
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        assert consumer.poll().value == b"old"
    broker.delete_topic(both.name)
    broker.make_topic(name=both.name)
    both.produce([Record(b"a", b"new", NOW)] * 9)
    with pytest.raises(SourceWentBackError, match="was deleted and recreated"):
        SnapshotConsumer(both.topic, both.conf)


def test_a_table_is_not_gone_on_with_where_versions_decide(broker, tmp_path):
    """C11: what was deleted before is in no table; in one process it is known."""
    both = kafka_lake(broker, tmp_path, compaction_strategy="timestamp")
    both.produce([Record(b"k", b"v1", NOW), Record(b"k", None, NOW + 9)])
    path, table = tmp_path / "position.json", {}
    with SnapshotConsumer(both.topic, both.conf, position=path) as consumer:
        consumer.fill(table)
        both.produce([Record(b"k", b"old", NOW + 1)])
        consumer.fill(table)
        assert table == {}
    both.produce([Record(b"k", b"old", NOW + 2)])
    with SnapshotConsumer(both.topic, both.conf, position=path) as consumer:
        with pytest.raises(RefusedError, match="cannot be continued from a stored position"):
            consumer.fill(table)
        assert consumer.poll().value == b"old"  # those who fold themselves may
    with SnapshotConsumer(both.topic, both.conf) as consumer:
        consumer.fill(table)
    assert table == {}


def test_authentication_that_is_refused_ends_at_once(broker, tmp_path):
    both = kafka_lake(broker, tmp_path)
    conf = {**both.conf, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    conf |= {"sasl.username": "u", "sasl.password": "secret"}
    with pytest.raises(BrokerError, match="refuses this client") as refused:
        SnapshotConsumer(both.topic, conf, timeout_s=600)
    assert "secret" not in str(refused.value)
    with pytest.raises(BrokerError, match="refuses this client"):
        publish(both.topic, conf, "nowhere", timeout_s=600)


@pytest.mark.parametrize("conf", [{}, {"bootstrap.servers": ""}, {"bootstrap.servers": "x:1", "no.such.thing": "1"}])
def test_settings_that_are_none_are_refused(broker, tmp_path, conf):
    both = kafka_lake(broker, tmp_path)
    with pytest.raises(InvalidSettingError, match=r"bootstrap\.servers|no\.such\.thing"):
        SnapshotConsumer(both.topic, conf)


def test_the_client_that_is_missing_is_named(broker, tmp_path, monkeypatch):
    both = kafka_lake(broker, tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    with pytest.raises(ConnectorError, match=r"\./scripts/setup kafka"):
        SnapshotConsumer(both.topic, both.conf)
