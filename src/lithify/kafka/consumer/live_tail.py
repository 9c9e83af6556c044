"""Consumes partitions of a Kafka topic from given offsets on: committed records as they arrive, endlessly.

fetched ──► waiting records ──► taken        `ends`: by partition, the end of Kafka's log when a
                                             fetch reached it; none while there is more to fetch
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.errors import LithifyError, SourceLostError, SourceWentBackError
from lithify.kafka.consumer.tail_watch import TailWatch
from lithify.kafka_client.client import SLICE_S, Cluster, client
from lithify.kafka_client.epochs import Cut, cut_of, epoch_behind, find_cut
from lithify.kafka_client.kafka_headers import headers_of
from lithify.model.record import TIMESTAMP_TYPES, Record
from lithify.model.sources.source import EpochAt, SourceLog
from lithify.ports.clock import Clock
from lithify.rules.lifecycle.copies.copy_continuation import NeverCopied, SourceWentBack, copy_continuation
from lithify.service.snapshot.live import COPY_AGAIN, Reached, check_same

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

FETCHED_AT_ONCE = 10_000
"""Records of one fetch, at most. The id of the topic is requested once per fetch."""
LOG_APPEND_TIME = 2
"""The client's `TIMESTAMP_LOG_APPEND_TIME`, without importing it for each record."""
_COPIED = "run `lithify kafka ingest`, which copies the record with � in that name; then start again"


@dataclass(frozen=True, slots=True)
class ReadBefore:
    """Compares what was read before with what the cluster has now (C72)."""

    compare: Callable[[Mapping[int, Reached]], None] = lambda _reached: None
    """Raises `SourceWentBackError` if it has another log."""
    lacks: Callable[[int, EpochAt, Cut], bool] = lambda _partition, _at, _cut: True
    """Whether a log that its broker calls cut has lost what was read up to there."""
    topic_id: str = ""
    """Of the topic that it was read from; empty if it is not known, as brokers before 2.8 have none."""


NOTHING = ReadBefore()


class LiveTail:
    """Reads partitions of `topic` from `offsets` on. Raises `BrokerError` while the cluster is unreachable.

    If what was read `before` has a topic's id, it returns records of the topic with that id only: Kafka's client itself
    continues in a topic that was recreated under the same name. Raises `SourceWentBackError` then.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        starts: Mapping[int, Reached],
        clock: Clock,
        *,
        watch: TailWatch | None = None,
        before: ReadBefore = NOTHING,
    ) -> None:
        self._watch, self._before = watch, before
        self._outages: int | None = None
        """Before it was compared last."""
        self._cluster, self._topic, self._clock = cluster, topic, clock
        self._waiting: list[Record] = []
        self._heard_ms = clock.monotonic_ms()
        self.offsets = {partition: at.offset for partition, at in starts.items()}
        """By partition, the offset after the last record taken."""
        self._epochs = {partition: at.epoch for partition, at in starts.items() if at.epoch is not None}
        self._lasts = {partition: at.last for partition, at in starts.items()}
        self._fetched: dict[int, Message] = {}
        """The last of the records that wait, by partition."""
        self.ends: dict[int, int] = {}
        self._assigned_after = cluster.outages
        self._consumer = self._assigned(starts)

    def take(self, timeout_s: float) -> Sequence[Record]:
        """The next records, at least one if any arrived within the timeout."""
        if not self._waiting:
            self._fetch(timeout_s)
        if self._waiting:  # after the fetch: a check before it would miss a topic recreated in between
            self._check_same()
            self._check_same_log()
        self._check_whole()
        taken, self._waiting = self._waiting, []
        for record in taken:
            assert record.partition is not None and record.offset is not None
            self.offsets[record.partition] = record.offset + 1
        self._lasts |= {partition: Reached.by(record).last for partition, record in last_of_each(taken).items()}
        self._epochs |= {p: at for p, fetched in self._fetched.items() if (at := epoch_behind(fetched)) is not None}
        self._fetched = {}
        self._adopt_ends()
        return taken

    @property
    def reached(self) -> Mapping[int, Reached]:
        return {p: Reached(at, None, self._epochs.get(p), self._lasts.get(p)) for p, at in self.offsets.items()}

    @property
    def is_idle(self) -> bool:
        """Whether all fetched records were taken; `offsets` may then be above the last record."""
        return not self._waiting

    def is_at_end(self, timeout_s: float) -> bool:
        """Whether all of Kafka's records were read; also False for an unknown result after the timeout."""
        deadline_ms = self._clock.monotonic_ms() + round(timeout_s * 1000)
        while not self._waiting and len(self.ends) < len(self.offsets):
            left_s = (deadline_ms - self._clock.monotonic_ms()) / 1000
            if left_s <= 0:
                return False
            self._fetch(min(left_s, SLICE_S))
        return not self._waiting

    def close(self) -> None:
        self._consumer.close()

    def _fetch(self, timeout_s: float) -> None:
        first = self._consumer.poll(timeout_s)
        if first is None:
            self._check_there()
            return
        self._heard_ms = self._clock.monotonic_ms()
        for fetched in (first, *self._consumer.consume(FETCHED_AT_ONCE, 0)):
            failure = fetched.error()
            if failure is None:
                record = record_of(fetched)
                assert record.partition is not None
                self.ends.pop(record.partition, None)
                self._waiting.append(record)
                self._fetched[record.partition] = fetched
            elif failure.code() == client().KafkaError._PARTITION_EOF:
                self.ends[int(fetched.partition() or 0)] = int(fetched.offset() or 0)
            elif (cut := cut_of(failure)) is not None and self._begins_without_epochs(cut):
                return
            elif failure.code() != client().KafkaError.GROUP_AUTHORIZATION_FAILED:  # see `Cluster._note`
                raise self._failed(failure, fetched)
        if not self._waiting:
            self._adopt_ends()

    def _assigned(self, starts: Mapping[int, Reached]) -> Consumer:
        consumer: Consumer = self._cluster.consumer()
        with self._cluster.explained(self._topic):
            consumer.assign([self._begin(partition, at) for partition, at in starts.items()])
        return consumer

    def _begin(self, partition: int, at: Reached) -> TopicPartition:
        """With its epoch, if that is known: then the client asks whether the log was cut (C72)."""
        more = {"leader_epoch": at.epoch.epoch} if at.epoch is not None and at.epoch.offset == at.offset else {}
        place: TopicPartition = client().TopicPartition(self._topic, partition, at.offset, **more)
        return place

    def _begins_without_epochs(self, cut: Cut) -> bool:
        """After its client got a cut: whether no log lacks what was read, so that it continues where it was."""
        if cut.offset is not None:
            return False
        try:
            self._check_same()
            self._before.compare(self.reached)
            if any(self._before.lacks(partition, at, cut) for partition, at in self._epochs.items()):
                return False
        except SourceWentBackError:
            raise
        except LithifyError:  # its client does not tell again
            return False
        self._epochs, self._fetched, self._waiting = {}, {}, []
        self._consumer.close()
        self._consumer = self._assigned(self.reached)
        self.ends.clear()
        return True

    def _adopt_ends(self) -> None:
        """Moves offsets to the log ends: after the last record only transaction markers are left."""
        for partition, end in self.ends.items():
            self.offsets[partition] = max(end, self.offsets[partition])

    def _check_whole(self) -> None:
        """Raises `SourceLostError` if what was fetched may lack deletes."""
        if self._watch is None:
            return
        ends = {record.partition: record.offset + 1 for record in self._waiting if record.offset is not None}
        self._watch.check_read({p: (self.offsets[p], end) for p, end in ends.items() if p is not None})
        self._watch.look(self.offsets)

    def _check_same(self) -> None:
        if self._before.topic_id:
            check_same("Kafka", self._topic, self._before.topic_id, self._cluster.topic_id(self._topic))

    def _check_same_log(self) -> None:
        """C72: before the first records, which the client may have got without an epoch, and after each outage.

        A cluster whose disks were restored was away, and counts the same epochs again.
        """
        if (outages := self._cluster.outages) != self._outages:
            self._before.compare(self.reached)
            self._outages = outages

    def _check_there(self) -> None:
        """Requests metadata if the cluster was silent for `timeout_s`. Raises `BrokerError` without an answer."""
        if refused := self._cluster.refused():
            raise refused
        self._assign_anew_after_outages()
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._heard_ms < self._cluster.timeout_s * 1000:
            return
        with self._cluster.asking() as asking:
            self._cluster.partitions(asking, self._topic)
        self._check_same()  # a client that knows later epochs finds no leader in a topic that was recreated
        self._cluster.last_error, self._heard_ms = None, now_ms

    def _assign_anew_after_outages(self) -> None:
        """Another client, as soon as the cluster answers: one that knows later leader epochs than a restored cluster
        counts finds no leader there, and says nothing.
        """
        outages = self._cluster.outages
        if outages == self._assigned_after:
            return
        with suppress(client().KafkaException):
            self._consumer.list_topics(self._topic, timeout=SLICE_S)
            before, self._consumer = self._consumer, self._assigned(self.reached)
            before.close()
            self.ends.clear()
            self._assigned_after = outages

    def _failed(self, failure: KafkaError, fetched: Message) -> LithifyError:
        k = client().KafkaError
        partition = fetched.partition()
        if (cut := cut_of(failure)) is not None:
            return self._cut(cut)
        if failure.code() in (k._AUTO_OFFSET_RESET, k.OFFSET_OUT_OF_RANGE) and partition is not None:
            try:
                self._check_same()
                with self._cluster.asking() as asking:
                    ends = self._cluster.ends(asking, self._topic, partition)
                check_reachable(self._topic, partition, ends, self.offsets[partition])
            except LithifyError as error:
                return error
        return self._cluster.named(failure, self._topic)

    def _cut(self, client_cut: Cut) -> LithifyError:
        """The error of the first log that was cut: the client does not say which.

        Nor does its broker any more once a log of a restored cluster has grown again in the same epoch.
        """
        with suppress(LithifyError):
            for partition, at in self._epochs.items():
                if (cut := find_cut(self._cluster, self._topic, partition, at)) is not None:
                    return cut_error(f"{self._topic}-{partition}", cut, at.offset)
        return cut_error(self._topic, client_cut, max(self.offsets.values()))


def last_of_each(records: Sequence[Record]) -> Mapping[int, Record]:
    """By partition the last of these records."""
    return {record.partition: record for record in records if record.partition is not None}


def check_reachable(topic: str, partition: int, ends: tuple[int, int], offset: int) -> None:
    """Raises `SourceLostError` or `SourceWentBackError` if Kafka's log cannot be read from `offset` on."""
    match copy_continuation(offset, SourceLog(partition, *ends)):
        case NeverCopied(_, start):
            raise SourceLostError(
                f"Kafka's {topic}-{partition} starts at {start} now: offsets [{offset}, {start}) are neither in Kafka "
                "nor in the lake",
                hint="ingest records before Kafka's retention deletes them",
            )
        case SourceWentBack(_, end):
            raise SourceWentBackError(
                f"Kafka's {topic}-{partition} ends at {end}, below offset {offset}, where this consumer continues",
                hint="check whether its topic was recreated or truncated, or is another one",
            )


def cut_error(log: str, cut: Cut, offset: int) -> SourceWentBackError:
    """The error for a log, or a topic of which one has, that has lost records which were read (C72)."""
    where = f"below {offset}" if cut.offset is None else f"from offset {cut.offset} on"
    return SourceWentBackError(
        f"Kafka's {log} has lost its records {where} and now has others there, as after an unclean leader "
        f"election or a restore; this consumer had read the lost records up to {offset}",
        hint=COPY_AGAIN,
    )


def record_of(fetched: Message) -> Record:
    """A message of the client as a record. Raises `InvalidRecordError`."""
    kind, timestamp = fetched.timestamp()
    return Record(
        fetched.key(),
        fetched.value(),
        timestamp,
        headers_of(fetched, _COPIED),
        fetched.partition(),
        fetched.offset(),
        TIMESTAMP_TYPES[kind == LOG_APPEND_TIME],
    )
