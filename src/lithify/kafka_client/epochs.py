"""Asks Kafka whether a log has lost records that were read from it, by leader epochs (C72).

    read      |------ epoch 0 ------|10                      asked with (10, epoch 0)
    there     |-- epoch 0 --|5 x x x epoch 2 x x x |15       epoch 0 ends at 5 there: cut at 5

A consumer that is assigned an offset with its epoch asks the broker before it reads, and again whenever it learns of a
new leader. An epoch that a broker does not have, as with the message format before Kafka 0.11, is not a cut.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lithify.kafka_client.client import SLICE_S, Cluster, client
from lithify.model.sources.source import EpochAt, Signs, signs_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message
    from confluent_kafka.admin import AdminClient

_CUT = re.compile(r"broker end offset is (\d+)")
LEAST = {"fetch_wait_max_ms": 10, "max_partition_fetch_bytes": 1_024}
"""For a consumer that reads only to get an answer."""
KNOWN_LEADER_S = 3.0
"""How long the leader that a client knows may take for an answer."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A log has lost its records from `offset` on; None: from an offset that is not known."""

    offset: int | None


def cut_of(failure: KafkaError) -> Cut | None:
    """The cut that a failure of a consumer tells of, if any: by its text alone, where offsets are not to be reset."""
    k = client().KafkaError
    of_cuts = failure.code() == k._AUTO_OFFSET_RESET and k(k._LOG_TRUNCATION).str() in failure.str()
    if not (of_cuts or failure.code() == k._LOG_TRUNCATION):
        return None
    match = _CUT.search(failure.str())
    return Cut(None if match is None else int(match[1]))


def leader_epoch(cluster: Cluster, topic: str, partition: int) -> int | None:
    """The leader epoch of a log now; None if the broker does not count epochs. Raises `BrokerError`.

    The client sends the request to the leader that it has cached for minutes, even if that broker is gone. Then it does
    nothing else, on all of a processor, until the request times out. So its metadata is refreshed first, or another
    client is used.
    """
    k = client()
    where = k.TopicPartition(topic, partition)

    def asked(admin: AdminClient, timeout_s: float) -> Any:
        return cluster.answer(
            admin.list_offsets({where: k.admin.OffsetSpec.latest()}, request_timeout=timeout_s)[where]
        )

    end = None
    with suppress(k.KafkaException):
        cluster.kept_admin().list_topics(topic, timeout=SLICE_S)
        end = asked(cluster.kept_admin(), min(KNOWN_LEADER_S, cluster.timeout_s))
    if end is None or end.offset < 0:
        with cluster.explained(topic):
            end = asked(cluster.kept_admin(anew=True), cluster.timeout_s)
    if end.offset < 0:  # there was no answer, and the client does not call that an error
        raise cluster.named(k.KafkaError(k.KafkaError._TIMED_OUT), topic)
    epoch: int | None = end.leader_epoch
    return epoch if epoch is not None and epoch >= 0 else None


def signs_between(
    cluster: Cluster, consumer: Consumer, topic: str, ranges: Mapping[int, tuple[int, int]]
) -> Mapping[int, Mapping[int, Signs]]:
    """By partition and offset the signs of the records in its range. Raises `BrokerError`.

    `consumer` is one for requests; it is assigned nothing afterwards.
    """
    where, left, signs_by_partition = client().TopicPartition, {*ranges}, {p: dict[int, Signs]() for p in ranges}
    if not ranges:
        return signs_by_partition
    with cluster.explained(topic):
        consumer.assign([where(topic, partition, start) for partition, (start, _) in ranges.items()])
        try:
            while left:
                message = _first_of(cluster, consumer, topic, left)
                partition, offset = message.partition(), int(message.offset() or 0)
                assert partition is not None
                there = message.error() is None
                if there and offset < ranges[partition][1]:
                    kind, timestamp_ms = message.timestamp()
                    no_time = -1  # as in copies, which have Java's number for none
                    signs = signs_of(timestamp_ms if kind else no_time, message.key(), message.value())
                    signs_by_partition[partition][offset] = signs
                if not there or offset + 1 >= ranges[partition][1]:
                    left.discard(partition)
                    consumer.pause([where(topic, partition)])
        finally:
            consumer.resume([where(topic, partition) for partition in ranges])  # else it is paused for ever
            consumer.unassign()
    return signs_by_partition


def _first_of(cluster: Cluster, consumer: Consumer, topic: str, partitions: Collection[int]) -> Message:
    """What a consumer gets next of one of these: a record, the end, or an error about its offset or of a cut."""
    k = client()
    ends = (k.KafkaError._PARTITION_EOF, k.KafkaError._AUTO_OFFSET_RESET, k.KafkaError.OFFSET_OUT_OF_RANGE)
    for _ in range(max(1, round(cluster.timeout_s / SLICE_S))):
        cluster.check_stop()
        if refused := cluster.refused():
            raise refused
        message = consumer.poll(SLICE_S)
        if message is None or message.partition() not in partitions:
            continue
        failure = message.error()
        if failure is None or failure.code() in ends or cut_of(failure) is not None:
            return message
        if failure.code() != k.KafkaError.GROUP_AUTHORIZATION_FAILED:
            raise cluster.named(failure, topic)  # and not for the right to a group, see `Cluster._note`
    raise cluster.named(k.KafkaError(k.KafkaError._TIMED_OUT), topic)


def epoch_behind(fetched: Message) -> EpochAt | None:
    """The leader epoch up to behind a message; None if its broker tells none."""
    epoch = fetched.leader_epoch()
    return None if epoch is None or epoch < 0 else EpochAt(int(fetched.offset() or 0) + 1, epoch)


def find_cut(cluster: Cluster, topic: str, partition: int, at: EpochAt) -> Cut | None:
    """Where a log was cut since it was read up to `at`, if it was. Raises `BrokerError`."""
    k = client()
    consumer = cluster.consumer(**LEAST)
    try:
        with cluster.explained(topic):
            consumer.assign([k.TopicPartition(topic, partition, at.offset, leader_epoch=at.epoch)])
        failure = _first_of(cluster, consumer, topic, [partition]).error()
        return None if failure is None else cut_of(failure)  # the end of the log, or an offset out of it, tells of none
    finally:
        consumer.close()
