"""What a tail of Kafka asks before it hands out records, of a broker inside of Kafka's client (C72)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, Producer

from lithify.api.wiring.system_clock import SystemClock
from lithify.errors import BrokerError, SourceWentBackError
from lithify.kafka.consumer.live_tail import LOG_APPEND_TIME, LiveTail, ReadBefore
from lithify.kafka_client.client import Cluster
from lithify.kafka_client.epochs import LEAST, Cut, signs_between
from lithify.model.record import Record
from lithify.model.sources.source import EpochAt, Signs, as_read, signs_of
from lithify.service.snapshot.live import Reached

TOPIC = "orders"
FEW = 10


@pytest.fixture
def broker() -> Iterator[Producer]:
    yield Producer({"test.mock.num.brokers": 1, "log_level": 0})


@pytest.fixture
def cluster(broker: Producer) -> Cluster:
    (found,) = broker.list_topics(timeout=30).brokers.values()
    return Cluster({"bootstrap.servers": f"{found.host}:{found.port}", "log_level": 0})


def produce(broker: Producer, first: int, partitions: int = 1) -> None:
    """Some records into each partition; that of offset n has the timestamp 1000 + n."""
    for n in range(first, first + FEW):
        for partition in range(partitions):
            broker.produce(TOPIC, key=b"k", value=b"v", partition=partition, timestamp=1_000 + n)
    broker.flush()


def signs(timestamp_ms: int) -> Signs:
    return signs_of(timestamp_ms, b"k", b"v")


def test_the_records_of_several_partitions_are_asked_for_again_and_again(broker: Producer, cluster: Cluster) -> None:
    """With one consumer, which has no more of one partition than of another."""
    produce(broker, 0, partitions=3)
    asking = cluster.consumer(**LEAST)
    try:
        for _ in range(3):
            found = signs_between(cluster, asking, TOPIC, {0: (8, 20), 1: (0, 1), 2: (FEW, FEW + 1)})
            assert found == {0: {8: signs(1_008), 9: signs(1_009)}, 1: {0: signs(1_000)}, 2: {}}
            assert signs_between(cluster, asking, TOPIC, {0: (4, 5)}) == {0: {4: signs(1_004)}}
            assert signs_between(cluster, asking, TOPIC, {1: (100 * FEW, 101 * FEW)}) == {1: {}}
        assert signs_between(cluster, asking, TOPIC, {}) == {}
    finally:
        asking.close()


class Compared:
    """Counts how often it was asked whether the log is the one of before, which it is until `restored`."""

    def __init__(self) -> None:
        self.times, self.restored, self.at = 0, False, 0

    def __call__(self, reached: Mapping[int, Reached]) -> None:
        self.times += 1
        assert reached[0].last == (as_read(self.at - 1, 999 + self.at, b"k", b"v") if self.at else None)
        self.at += FEW
        if self.restored:
            raise SourceWentBackError("another log")


def taken(tail: LiveTail) -> list[Record]:
    found: list[Record] = []
    while len(found) < FEW:
        found += tail.take(1)
    return found


def test_a_log_is_compared_before_its_first_records_and_after_each_outage(broker: Producer, cluster: Cluster) -> None:
    produce(broker, 0)
    compared = Compared()
    tail = LiveTail(cluster, TOPIC, {0: Reached(0)}, SystemClock(), before=ReadBefore(compared))
    try:
        assert compared.times == 0
        assert len(taken(tail)) == FEW
        produce(broker, FEW)
        taken(tail)
        compared.at += FEW
        assert compared.times == 1
        cluster.outages += 1
        produce(broker, 2 * FEW)
        taken(tail)
        assert compared.times == 2
        cluster.outages += 1
        compared.restored = True
        produce(broker, 3 * FEW)
        with pytest.raises(SourceWentBackError):
            taken(tail)
        assert tail.offsets == {0: 3 * FEW}
    finally:
        tail.close()


def test_after_an_outage_another_client_goes_on_where_the_one_before_was(broker: Producer, cluster: Cluster) -> None:
    """What it knew of the end counts no more."""
    produce(broker, 0)
    tail = LiveTail(cluster, TOPIC, {0: Reached(0)}, SystemClock())
    try:
        taken(tail)
        for first in (FEW, 2 * FEW):
            assert tail.is_at_end(30)
            cluster.outages += 1
            while tail.ends:
                assert not tail.take(0.1)
            produce(broker, first)
            assert [record.offset for record in taken(tail)] == list(range(first, first + FEW))
    finally:
        tail.close()


class OfACutLog:
    """A client that was told by the broker that the log ends below its offset, and what it says of that."""

    def assign(self, _places: Any) -> None: ...

    def poll(self, _timeout_s: float) -> OfACutLog:
        return self

    def consume(self, _records: int, _timeout_s: float) -> list[OfACutLog]:
        return []

    end = "5"

    def error(self) -> KafkaError:
        text = f"Partition log truncation detected at offset 10 (leader epoch 2): broker end offset is {self.end}"
        return KafkaError(KafkaError._LOG_TRUNCATION, text)

    def partition(self) -> None: ...


class Regrown(Cluster):
    """By the time that it is asked again, the log has grown beyond the offset in the same epoch."""

    def consumer(self, **_own: Any) -> Any:
        return OfACutLog()


def test_a_cut_that_the_client_has_told_counts_also_where_the_broker_knows_of_none_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """C72: else a program that tries again reads what another log has there."""
    monkeypatch.setattr("lithify.kafka.consumer.live_tail.find_cut", lambda *_: None)
    starts = {0: Reached(10, None, EpochAt(10, 2))}
    tail = LiveTail(Regrown({"bootstrap.servers": "localhost:1"}), TOPIC, starts, SystemClock())
    with pytest.raises(SourceWentBackError, match=f"{TOPIC} has lost its records from offset 5 on"):
        tail.take(1)


class OfALowerEpoch(OfACutLog):
    """The broker does not know the epoch; nothing is asked where none is given."""

    end = "-1"

    def __init__(self) -> None:
        self.asked: list[int | None] = []

    def assign(self, places: Any) -> None:
        self.asked.append(places[0].leader_epoch)

    def poll(self, _timeout_s: float) -> Any:
        return None if self.asked[-1] is None else self

    def close(self) -> None: ...


class RestoredToBefore(Cluster):
    """Its logs have what was read, and count lower epochs."""

    made = OfALowerEpoch()

    def consumer(self, **_own: Any) -> Any:
        return self.made


def test_a_cut_that_was_told_counts_where_it_cannot_be_asked_what_was_lost() -> None:
    """C72: a client tells once, and reads on afterwards."""

    def away(_reached: Mapping[int, Reached]) -> None:
        raise BrokerError("the cluster does not answer")

    class Away(Cluster):
        def consumer(self, **_own: Any) -> Any:
            return OfALowerEpoch()

    starts = {0: Reached(10, None, EpochAt(10, 2))}
    cluster = Away({"bootstrap.servers": "localhost:1"})
    before = ReadBefore(away, lambda *_: False)
    tail = LiveTail(cluster, TOPIC, starts, SystemClock(), before=before)
    with pytest.raises(SourceWentBackError, match="has lost its records below 10"):
        tail.take(1)


def test_a_topic_that_was_recreated_and_has_no_leader_for_the_client_is_noticed(
    broker: Producer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that knows a later epoch than the new topic counts gets nothing, and no error."""
    produce(broker, 0)
    cluster.timeout_s = 1.0
    monkeypatch.setattr(Cluster, "topic_id", lambda *_: "another")
    tail = LiveTail(cluster, TOPIC, {0: Reached(FEW)}, SystemClock(), before=ReadBefore(topic_id="that of before"))
    try:
        with pytest.raises(SourceWentBackError, match="was deleted and recreated"):
            for _ in range(100):
                assert not tail.take(0.1)
    finally:
        tail.close()


@pytest.mark.parametrize("lacks", [False, True])
def test_a_log_whose_epochs_went_back_goes_on_if_it_has_what_was_read(lacks: bool) -> None:
    """C72: the broker of a cluster that was restored to before later elections calls each of its logs cut."""
    starts, asked = {0: Reached(10, None, EpochAt(10, 2))}, list[tuple[int, EpochAt, Cut]]()

    def told(partition: int, at: EpochAt, cut: Cut) -> bool:
        asked.append((partition, at, cut))
        return lacks

    cluster = RestoredToBefore({"bootstrap.servers": "localhost:1"})
    tail = LiveTail(cluster, TOPIC, starts, SystemClock(), before=ReadBefore(lacks=told))
    if lacks:
        with pytest.raises(SourceWentBackError):
            tail.take(1)
    else:
        assert (tail.take(1), tail.take(1)) == ([], [])
        assert tail.reached == {0: Reached(10)}
    assert asked == [(0, EpochAt(10, 2), Cut(None))]


def test_the_time_of_the_log_is_known_by_the_clients_own_number() -> None:
    assert TIMESTAMP_LOG_APPEND_TIME == LOG_APPEND_TIME
