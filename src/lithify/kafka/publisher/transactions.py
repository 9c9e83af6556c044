"""Sends records to a Kafka topic in transactions, each of which also stores its cursor (C6).

    begin ─► records of one partition ─► flush ─► offset of the group `owner` ─► commit
                                                  with the target's new end
                                                  and the map of offsets

The next run that opens the same `owner` aborts an unfinished transaction and fences a producer that still runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lithify.errors import BrokerError, ConflictError, InvalidRecordError, LithifyError, RefusedError
from lithify.kafka.publisher.offset_map import OffsetMap
from lithify.kafka_client.client import SLICE_S, Cluster, client
from lithify.model.cursor import Cursor
from lithify.model.record import Record
from lithify.ports.source import StopAsked
from lithify.service.snapshot.collector import collector_at_rest

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer

DELIVERY_S = 100
"""By then each record was accepted or has failed, which bounds every wait for one."""
PAUSE_S = 120
"""By then the cluster aborts a transaction of which it hears nothing."""
SENDING = {
    "acks": "all",
    "linger_ms": 20,
    "transaction_timeout_ms": PAUSE_S * 1000,
    "delivery_timeout_ms": DELIVERY_S * 1000,
}
NO_REBOOTSTRAP = {"metadata_recovery_strategy": "none"}
"""After a re-bootstrap `send_offsets_to_transaction` hangs (librdkafka's issue 5511); a new session is one anyway."""
REBOOTSTRAPS = 0x020B0000
"""The version of librdkafka since which it has that setting."""
ENDED_S = 4.0
"""The longest wait of a transaction under way once everything is to end."""
GIVEN_UP_S = 3.0
"""The longest wait for an abort; without one the next run aborts the transaction."""
FULL_S = 0.05
"""The wait for room in a full queue of the client, before the next try."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The progress of a partition: the cursor in the lake, and the offsets that records below it have in the target."""

    cursor: Cursor
    map: OffsetMap

    @property
    def end(self) -> int:
        """The target's log end after its last record."""
        return self.map.end


class Transactions:
    """The one transactional producer of `owner` into the topic `to`."""

    def __init__(self, cluster: Cluster, owner: str, to: str, largest_bytes: int) -> None:
        self._cluster, self._owner, self._to = cluster, owner, to
        self._failure: tuple[KafkaError, Message] | None = None
        self._offsets: list[int] = []
        """In the lake, of the records of the open transaction, in the order in which they were sent."""
        self._there: list[int] = []
        """The offsets in the target of the records that it has acknowledged."""
        self._open = False
        self._left_s = ENDED_S
        self.records = 0
        """In the open transaction."""
        self.bytes = 0
        self._asking: Consumer = cluster.consumer(group_id=owner)
        sized = {} if "message.max.bytes" in cluster.conf else {"message_max_bytes": largest_bytes}
        stays = NO_REBOOTSTRAP if client().libversion()[1] >= REBOOTSTRAPS else {}
        self._producer: Producer = cluster.producer(transactional_id=owner, **SENDING, **sized, **stays)

    def begin(self) -> None:
        """Aborts transactions of earlier runs of this owner and fences those runs. Raises `BrokerError`."""
        with self._explained():
            self._in_slices(self._producer.init_transactions)

    def stored(self, partitions: int) -> dict[int, Stored]:
        """By partition, the progress of earlier runs. Raises `RefusedError` if another program stored it."""
        where = client().TopicPartition
        wanted = [where(self._to, partition) for partition in range(partitions)]
        self._check_group(wanted)
        offsets = self._cluster.wait(lambda slice_s: self._asking.committed(wanted, timeout=slice_s), self._asking)
        return {at.partition: _stored(at.offset, at.metadata) for at in offsets if at.offset >= 0}

    def _check_group(self, wanted: list[Any]) -> None:
        """Raises `BrokerError` without the right to read the group, for which a consumer waits in vain."""
        asked, group = self._cluster.admin(), client().ConsumerGroupTopicPartitions(self._owner, wanted)
        offsets = asked.list_consumer_group_offsets([group], request_timeout=self._cluster.timeout_s)
        try:
            self._cluster.answer(offsets[self._owner])
        except client().KafkaException as error:
            if error.args[0].code() == client().KafkaError.GROUP_AUTHORIZATION_FAILED:
                raise self._named(error.args[0]) from error

    def send(self, records: Sequence[Record], size_bytes: int) -> None:
        """Sends records of one partition, of that size in all.

        Raises `InvalidRecordError` or `BrokerError`, also for a record sent before.
        """
        if self._failure is not None:
            raise self._failed(*self._failure)
        with self._explained(), collector_at_rest():
            self._begin_transaction()
            self._produce(records)
            self._producer.poll(0)  # now and then: a client that is woken for each record sends small batches
        self._offsets += [record.offset or 0 for record in records]
        self.records += len(records)
        self.bytes += size_bytes

    def commit(self, partition: int, stored: Stored, exact_at: Sequence[int] = ()) -> Stored:
        """Commits the records that were sent together with the cursor in `stored`, which has the map from before.

        Returns what it has stored. The map remains exact at `exact_at`, offsets of the lake, if it can.
        """
        with self._explained():
            self._begin_transaction()
            while len(self._producer):  # not `flush`, which does not report that this producer was fenced
                self._wait_for_delivery()
            if self._failure is not None:
                raise self._failed(*self._failure)
            pairs = zip(self._offsets, sorted(self._there), strict=True)  # the target has them in the order of sending
            reached = replace(stored, map=stored.map.with_records(pairs).bounded(exact_at))
            metadata = _metadata(reached)
            offset = client().TopicPartition(self._to, partition, reached.cursor.offset, metadata)
            group = self._asking.consumer_group_metadata()
            self._in_slices(lambda slice_s: self._producer.send_offsets_to_transaction([offset], group, slice_s))
            self._in_slices(self._producer.commit_transaction)
        self._open, self.records, self.bytes = False, 0, 0
        self._offsets.clear()
        self._there.clear()
        return reached

    def close(self) -> None:
        """Aborts the open transaction, if there is one, and closes the clients."""
        if self._open:
            with suppress(client().KafkaException):  # the next run aborts it
                self._producer.purge()
                self._producer.abort_transaction(min(GIVEN_UP_S, self._cluster.timeout_s))
        self._asking.close()

    def _begin_transaction(self) -> None:
        if not self._open:
            self._producer.begin_transaction()
            self._open = True

    def _wait_for_delivery(self) -> None:
        if not self._producer.poll(FULL_S):
            self._waited(FULL_S)

    def _waited(self, for_s: float) -> None:
        """After a wait in vain. Raises `StopAsked` where everything is to end and it has waited long enough since."""
        if self._cluster.stops():
            self._left_s -= for_s
            if self._left_s <= 0:
                raise StopAsked

    def _in_slices(self, call: Callable[[float], None]) -> None:
        """A call that is repeated until it succeeds, so that Python handles an interrupt between two of them."""
        left = max(1, round(self._cluster.timeout_s / SLICE_S))
        while left:
            left -= 1
            try:
                call(SLICE_S)
            except client().KafkaException as error:
                if left == 0 or not error.args[0].retriable():
                    raise
                self._waited(SLICE_S)
            else:
                return

    def _produce(self, records: Sequence[Record]) -> None:
        """Hands them to the client, and waits where its queue is full."""
        produce, to, delivered = self._producer.produce, self._to, self._delivered
        for record in records:
            while True:
                try:
                    produce(
                        to,
                        record.value,
                        record.key,
                        record.partition or 0,
                        on_delivery=delivered,
                        timestamp=record.timestamp or 0,
                        headers=list(record.headers),
                    )
                    break
                except BufferError:
                    if not len(self._producer):  # nothing will make room
                        raise self._too_large(record, "queue.buffering.max.kbytes") from None
                    self._wait_for_delivery()
                except client().KafkaException as error:
                    if error.args[0].code() == client().KafkaError.MSG_SIZE_TOO_LARGE:
                        raise self._too_large(record, "max.request.size") from error
                    raise

    def _too_large(self, record: Record, setting: str) -> InvalidRecordError:
        """For a record that the client itself does not take."""
        return InvalidRecordError(
            f"{self._to}: the record at offset {record.offset} of partition {record.partition} in the lake is larger "
            f"than {setting} allows Kafka's client to send",
            hint=f"remove {setting} from the client's settings, or raise it",
        )

    def _delivered(self, failure: KafkaError | None, sent: Message) -> None:
        if failure is not None:
            self._failure = self._failure or (failure, sent)
            return
        there = sent.offset()
        assert there is not None
        self._there.append(there)

    def _failed(self, failure: KafkaError, sent: Message) -> LithifyError:
        k = client().KafkaError
        if failure.code() in (k.MSG_SIZE_TOO_LARGE, k.INVALID_RECORD, k.INVALID_MSG, k.INVALID_TIMESTAMP):
            return InvalidRecordError(
                f"Kafka's {self._to}-{sent.partition()} refuses the records from key {sent.key()!r} on: "
                f"{failure.str()}",
                hint="change the settings of that topic so that they allow the records",
            )
        return self._named(failure)

    def _named(self, failure: KafkaError) -> LithifyError:
        k = client().KafkaError
        if failure.code() == k._FATAL:  # the next call raises its cause
            try:
                self._producer.poll(0)
            except client().KafkaException as error:
                failure = error.args[0]
        if failure.code() in (k._FENCED, k.PRODUCER_FENCED, k.INVALID_PRODUCER_EPOCH):
            return ConflictError(  # the brokers refuse both in the same way
                f"{self._to}: another run is publishing this topic into it, or this run was paused in a transaction "
                f"for {PAUSE_S // 60} minutes or more",
                hint="let the other run continue, or start this one again: it continues after what was published",
            )
        named = self._cluster.named(failure, self._to)
        if failure.code() in (k.GROUP_AUTHORIZATION_FAILED, k.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
            rights = "rights: Read on the group, and Describe and Write on the transactional id,"
            return BrokerError(named.message, hint=f"give this user the {rights} {self._owner}")
        return named

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except client().KafkaException as error:
            if self._failure is not None:  # the error of a record is the cause of the later one
                raise self._failed(*self._failure) from error
            raise self._named(error.args[0]) from error


def _metadata(stored: Stored) -> str:
    """As `_stored` reads it. Versions before the map do not read it, and leave it out."""
    numbers = {"end": stored.end, "map": stored.map.to_json()}
    return json.dumps({**stored.cursor.to_json(), **numbers}, separators=(",", ":"))


def _stored(offset: int, metadata: str) -> Stored:
    try:
        fields: Any = json.loads(metadata)
        cursor = Cursor.from_json({**fields, "offset": offset})
        return Stored(cursor, OffsetMap.from_json(fields.get("map", ()), offset, int(fields["end"])))
    except (ArithmeticError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise RefusedError(
            f"another program stored these offsets: {metadata!r}", hint="publish to another topic"
        ) from error
