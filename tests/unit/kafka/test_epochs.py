"""What Kafka's client says of a log that was cut."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException
from confluent_kafka.admin import ListOffsetsResultInfo

from lithify.errors import BrokerError
from lithify.kafka_client.client import Cluster
from lithify.kafka_client.epochs import Cut, cut_of, leader_epoch, signs_between
from lithify.model.sources.source import signs_of

CUT = (
    "Partition log truncation detected at offset 10 (leader epoch 2): broker end offset is 5 (offset leader epoch 0). "
    "Reset to INVALID.: Local: Partition log truncation detected (broker 1)"
)
UNKNOWN = (
    "No epoch found less or equal to offset 10 (leader epoch 100): broker end offset is -1 (offset leader epoch -1). "
    "Reset using configured policy.: Local: Partition log truncation detected (broker 1)"
)
GONE = "fetch failed due to requested offset not available on the broker: Broker: Offset out of range (broker 1)"


@pytest.mark.parametrize(
    ("code", "text", "found"),
    [
        (KafkaError._AUTO_OFFSET_RESET, CUT, Cut(5)),
        (KafkaError._LOG_TRUNCATION, CUT, Cut(5)),
        (KafkaError._AUTO_OFFSET_RESET, UNKNOWN, Cut(None)),
        (KafkaError._AUTO_OFFSET_RESET, GONE, None),
        (KafkaError._PARTITION_EOF, "", None),
    ],
)
def test_a_cut_is_told_by_the_text_of_a_failure(code: int, text: str, found: Cut | None) -> None:
    """C72"""
    assert cut_of(KafkaError(code, text)) == found


class Answering(Cluster):
    """A cluster whose clients, one after the other, have these answers about a log's end."""

    __slots__ = ("answers",)

    def admin(self) -> Any:
        return Admin(self.answers.pop(0))


class Admin:
    def __init__(self, answer: tuple[int, int] | KafkaError) -> None:
        self._answer = answer
        self.told: list[str] = []

    def list_topics(self, topic: str, timeout: float) -> None:
        """Tells the client who leads."""
        self.told.append(topic)

    def list_offsets(self, wanted: Any, request_timeout: float) -> Any:
        asked: Future[Any] = Future()
        if isinstance(self._answer, KafkaError):
            asked.set_exception(KafkaException(self._answer))
        else:
            offset, epoch = self._answer
            asked.set_result(ListOffsetsResultInfo(offset, -1, epoch))
        return dict.fromkeys(wanted, asked)


NONE = (-1001, -1)
"""What the client has for an end where the broker that led before is gone: no error."""


@pytest.mark.parametrize("known", [NONE, KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)])
def test_where_the_known_leader_is_gone_the_new_one_is_asked(known: Any) -> None:
    """C72: without an answer it is not as if the broker counted no epochs."""
    cluster = answering(known, (10, 3))
    assert leader_epoch(cluster, "orders", 0) == 3
    assert leader_epoch(cluster, "orders", 0) == 3  # by the client that knows who leads
    with pytest.raises(BrokerError):
        leader_epoch(answering(known, NONE), "orders", 0)


def test_a_client_is_told_who_leads_before_it_asks_a_leader() -> None:
    """One that asks a leader whose broker is gone keeps a processor busy until its request times out."""
    cluster = answering((10, 3))
    for times in (1, 2):
        assert leader_epoch(cluster, "orders", 0) == 3
        assert vars(cluster.kept_admin())["told"] == ["orders"] * times


def test_a_broker_that_counts_no_epochs_has_none() -> None:
    assert leader_epoch(answering((10, -1)), "orders", 0) is None


def answering(*answers: Any) -> Answering:
    cluster = Answering({"bootstrap.servers": "localhost:1"})
    cluster.answers = [*answers]
    return cluster


class WithoutTime:
    """A record of the message format before Kafka 0.10, and the consumer that gets it."""

    def assign(self, _places: Any) -> None: ...

    pause = resume = assign

    def unassign(self) -> None: ...

    def poll(self, _timeout_s: float) -> WithoutTime:
        return self

    def partition(self) -> int:
        return 0

    offset = partition

    def error(self) -> None: ...

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_NOT_AVAILABLE, 0

    def key(self) -> bytes:
        return b"key"

    def value(self) -> None:
        """A delete."""


def test_a_record_without_a_timestamp_has_that_of_copies() -> None:
    """C72: else its copy would be taken for one of another log."""
    consumer: Any = WithoutTime()
    assert signs_between(answering(), consumer, "orders", {0: (0, 1)}) == {0: {0: signs_of(-1, b"key", None)}}
