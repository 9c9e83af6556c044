"""Kafka's client for Python, imported when it is needed, and its errors as Lithify's.

`confluent-kafka` comes with the extra `kafka`. Its calls either wait for a bounded time, or
retry for ever and report errors to a callback; here every wait is bounded and ends with the error.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lithify.errors import ConnectorError, InvalidSettingError, LithifyError
from lithify.errors.extras import KAFKA
from lithify.kafka_client.broker_failures import error_of, refusals, silence
from lithify.kafka_client.dialects import SERVERS, for_librdkafka
from lithify.model.settings.secrets import hidden, keep
from lithify.ports.source import StopAsked

if TYPE_CHECKING:
    import confluent_kafka
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

SLICE_S = 1.0
"""Calls wait in slices of this length, so that a refused authentication ends them before the timeout."""
READING = {
    "group_id": "lithify",  # the client requires a group; no offsets are stored under this one
    "enable_auto_commit": False,
    "enable_partition_eof": True,
    "auto_offset_reset": "error",  # a deleted offset is an error: the client must not continue at another
    "isolation_level": "read_committed",
    "message_max_bytes": 1000,  # of what a producer sends: the client takes no fetch.max.bytes below it
    "max_poll_interval_ms": 86_400_000,  # the consumer joins no group, so no member waits for it
}

Conf = Mapping[str, Any]

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # errors that matter are raised


def client() -> Any:
    """The module `confluent_kafka`. Raises `ConnectorError` where it is missing."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise ConnectorError(f"Kafka's client for Python is missing: {error}", hint=KAFKA) from error
    return confluent_kafka


@dataclass(slots=True)
class Cluster:
    """A Kafka cluster as one client sees it, with the last error of its connections.

    `conf` is by Java's names, or librdkafka's, `bootstrap.servers` included; `timeout_s` bounds every wait for an
    answer. Once `stops()`, a wait for an answer raises `StopAsked` within a second.
    """

    conf: Conf = field(repr=False)  # it has secrets
    timeout_s: float = 30.0
    stops: Callable[[], bool] = lambda: False
    last_error: KafkaError | None = field(default=None, init=False)
    outages: int = field(default=0, init=False)
    """How often a client has found no broker there."""
    _asked: AdminClient | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        keep(self.conf)
        self.conf = for_librdkafka(self.conf)
        keep(self.conf)
        if not self.servers:
            raise InvalidSettingError(
                f"{SERVERS} is missing", hint=f"give the address of the cluster as {SERVERS}=HOST:PORT"
            )

    @property
    def servers(self) -> str:
        return str(self.conf.get(SERVERS, ""))

    def consumer(self, **own: Any) -> Consumer:
        """A consumer of committed records. `own` overrides `conf`; `_` in its names means `.`."""
        made: Consumer = self._made(client().Consumer, {**READING, **own})
        return made

    @contextmanager
    def asking(self) -> Iterator[Consumer]:
        """A consumer for requests about topics, closed at the end."""
        consumer = self.consumer()
        try:
            yield consumer
        finally:
            consumer.close()

    def producer(self, **own: Any) -> Producer:
        """A producer. `own` overrides `conf`, as for a consumer."""
        made: Producer = self._made(client().Producer, own)
        return made

    def admin(self) -> AdminClient:
        made: AdminClient = self._made(client().admin.AdminClient, {})
        return made

    def kept_admin(self, *, anew: bool = False) -> AdminClient:
        """One for many requests, as connecting takes longer than a request."""
        if self._asked is None or anew:
            self._asked = self.admin()
        return self._asked

    def partitions(self, consumer: Consumer, topic: str) -> int:
        """How many partitions the topic has. Raises `UnknownSourceError` or `BrokerError`.

        It takes a consumer, since a broker may create a topic that a producer asks for.
        """
        metadata = self.wait(lambda slice_s: consumer.list_topics(topic, timeout=slice_s), consumer).topics[topic]
        if metadata.error is not None:
            raise self.named(metadata.error, topic)
        return len(metadata.partitions)

    def topic_id(self, topic: str) -> str:
        """Kafka's id of the topic: another one once it was recreated. Raises `UnknownSourceError` or `BrokerError`.

        Empty if the brokers give none, which is below Kafka 2.8.
        """
        given = self._described(topic).topic_id
        return as_kafka_writes(given.get_most_significant_bits(), given.get_least_significant_bits())

    def topic_config(self, topic: str) -> Mapping[str, str]:
        """The settings of a topic, including defaults. Raises `UnknownSourceError` or `BrokerError`."""
        asked, k = self.kept_admin(), client().admin
        resource = k.ConfigResource(k.ResourceType.TOPIC, topic)
        with self.explained(topic):
            entries = self.answer(asked.describe_configs([resource], request_timeout=self.timeout_s)[resource])
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def check_may_write(self, topic: str) -> None:
        """Raises `BrokerError` without the right to write to a topic, if the cluster tells."""
        may, k = self._described(topic, include_authorized_operations=True).authorized_operations, client()
        if may and not {k.admin.AclOperation.WRITE, k.admin.AclOperation.ALL} & set(may):
            raise self.named(k.KafkaError(k.KafkaError.TOPIC_AUTHORIZATION_FAILED), topic)

    def _described(self, topic: str, **more: Any) -> Any:
        wanted, asked = client().TopicCollection([topic]), self.kept_admin()

        def described() -> Any:
            return self.answer(asked.describe_topics(wanted, request_timeout=self.timeout_s, **more)[topic])

        with self.explained(topic):
            try:
                return described()
            except client().KafkaException as error:
                if error.args[0].code() != client().KafkaError._DESTROY_BROKER:
                    raise
                return described()  # by another connection than the one just lost

    def answer(self, asked: Future[Any]) -> Any:
        """What an admin client was asked for, once it is there. Raises its failure, or `StopAsked`."""
        left = max(1, round(self.timeout_s * 2 / SLICE_S))
        while True:
            left -= 1
            try:
                return asked.result(timeout=SLICE_S)
            except TimeoutError:
                self.check_stop()
                if left <= 0:
                    raise self.named(client().KafkaError(client().KafkaError._TIMED_OUT)) from None

    def check_stop(self) -> None:
        """Raises `StopAsked` if everything is to end."""
        if self.stops():
            raise StopAsked

    def ends(self, consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
        """The log start offset, and the log end offset up to which `consumer` can read."""
        where = client().TopicPartition(topic, partition)
        low, high = self.wait(lambda slice_s: consumer.get_watermark_offsets(where, timeout=slice_s), consumer)
        return int(low), int(high)

    def wait(self, call: Callable[[float], Any], consumer: Consumer) -> Any:
        """The result of `call`, retried in slices for `timeout_s`. Raises its failure as `named` maps it."""
        k = client()
        slices = max(1, round(self.timeout_s / SLICE_S))
        for left in range(slices - 1, -1, -1):
            self.check_stop()
            try:
                answer = call(SLICE_S)
                if answer is not None:
                    return answer
            except k.KafkaException as error:
                failure = error.args[0]
                self._serve(consumer, 0)
                if not self._passes(failure) or left == 0:
                    raise self.named(failure) from error
                if failure.code() in _not_known_yet(k.KafkaError):  # which returns at once, without a wait
                    self._serve(consumer, SLICE_S)
        raise self.named(k.KafkaError(k.KafkaError._TIMED_OUT))

    def named(self, failure: KafkaError, topic: str = "") -> LithifyError:
        """A failure as a `LithifyError`; for a timeout the last error of the connections, which explains it."""
        if failure.code() in silence(client().KafkaError) and self.last_error is not None:
            failure = self.last_error
        return error_of(failure, self.conf, self.servers, topic)

    @contextmanager
    def explained(self, topic: str = "") -> Iterator[None]:
        """Raises failures of the client inside the block as `LithifyError`."""
        try:
            yield
        except client().KafkaException as error:
            raise self.named(error.args[0], topic) from error

    def refused(self) -> LithifyError | None:
        """The error if the cluster refuses authentication or authorization, where a retry is useless."""
        if self.last_error is not None and self.last_error.code() in refusals(client().KafkaError):
            return self.named(self.last_error)
        return None

    def _made(self, kind: Callable[[dict[str, Any]], Any], own: Mapping[str, Any]) -> Any:
        settings = {
            "error_cb": self._note,
            "logger": _LOG,
            **self.conf,
            **{name.replace("_", "."): value for name, value in own.items()},
        }
        try:
            return kind(settings)
        except (client().KafkaException, ValueError, TypeError) as error:
            text = error.args[0].str() if isinstance(error, client().KafkaException) else str(error)
            raise InvalidSettingError(f"Kafka's client refuses a setting: {hidden(text, self.conf)}") from error

    def _note(self, failure: KafkaError) -> None:
        k = client().KafkaError
        if failure.code() == k.GROUP_AUTHORIZATION_FAILED:
            return  # a consumer that stores no offsets needs no right to its group
        self.outages += failure.code() == k._ALL_BROKERS_DOWN
        if self.last_error is None or failure.code() != k._ALL_BROKERS_DOWN:  # which follows the error that says why
            self.last_error = failure

    def _passes(self, failure: KafkaError) -> bool:
        """Whether a retry may succeed."""
        k = client().KafkaError
        passing = (*silence(k), *_not_known_yet(k))
        return self.refused() is None and (failure.code() in passing or failure.retriable())

    def _serve(self, consumer: Consumer, for_s: float) -> None:
        """Runs the client's callbacks, which it calls only in `poll`."""
        if isinstance(consumer, client().Consumer):
            consumer.poll(for_s)


def _not_known_yet(k: type[confluent_kafka.KafkaError]) -> tuple[int, ...]:
    """Codes that the client gives for any topic after an outage, until it has refreshed its metadata."""
    return (k._UNKNOWN_TOPIC, k._UNKNOWN_PARTITION)


def as_kafka_writes(most: int, least: int) -> str:
    """An id of 128 bits as Kafka's own programs write it, and so Spark's copies store it; empty for 0.

    `str()` of the id that the client for Python gives writes `+` and `/` for `-` and `_`.
    """
    both = b"".join((half % 2**64).to_bytes(8, "big") for half in (most, least))
    return base64.urlsafe_b64encode(both).decode().rstrip("=") if any(both) else ""
