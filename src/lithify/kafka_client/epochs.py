"""Asks Kafka whether a log has lost records that were read from it, by leader epochs (C72).

    read      |------ epoch 0 ------|10                      asked with (10, epoch 0)
    there     |-- epoch 0 --|5 x x x epoch 2 x x x |15       epoch 0 ends at 5 there: cut at 5

A consumer that is assigned an offset with its epoch asks the broker before it reads, and again whenever it learns of a
new leader. Epochs that a broker does not know, as with the message format before Kafka 0.11, are no cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.kafka_client.client import SLICE_S, Cluster, client
from lithify.model.source import EpochAt

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_CUT = re.compile(r"broker end offset is (\d+)")
_LEAST = {"fetch_wait_max_ms": 10, "max_partition_fetch_bytes": 1_024}
"""For a consumer that reads only to get an answer."""


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
    found = _CUT.search(failure.str())
    return Cut(None if found is None else int(found[1]))


def leader_epoch(cluster: Cluster, topic: str, partition: int) -> int | None:
    """The leader epoch of a log now; None where the broker counts none. Raises `BrokerError`."""
    k = client()
    where = k.TopicPartition(topic, partition)
    asked = cluster.kept_admin().list_offsets({where: k.admin.OffsetSpec.latest()}, request_timeout=cluster.timeout_s)
    with cluster.explained(topic):
        epoch = cluster.answer(asked[where]).leader_epoch
    return epoch if epoch is not None and epoch >= 0 else None


def find_cut(cluster: Cluster, topic: str, partition: int, at: EpochAt) -> Cut | None:
    """Where a log was cut since it was read up to `at`, if it was. Raises `BrokerError`."""
    k = client()
    consumer = cluster.consumer(**_LEAST)
    try:
        with cluster.explained(topic):
            consumer.assign([k.TopicPartition(topic, partition, at.offset, leader_epoch=at.epoch)])
        for _ in range(max(1, round(cluster.timeout_s / SLICE_S))):
            cluster.check_stop()
            if refused := cluster.refused():
                raise refused
            if (told := consumer.poll(SLICE_S)) is None:
                continue
            failure = told.error()
            if failure is None:
                return None
            if (cut := cut_of(failure)) is not None or told.partition() == partition:
                return cut  # the end of the log, or an offset that is out of it, tells of none
        raise cluster.named(k.KafkaError(k.KafkaError._TIMED_OUT), topic)
    finally:
        consumer.close()
