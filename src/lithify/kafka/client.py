"""Kafka's client for Python, imported when it is needed, and its errors in our words.

`confluent-kafka` comes with the extra `lithify[kafka]`. Its calls either wait for a bounded time or
report what is wrong to a callback while they go on trying for ever; here every wait ends, and says why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lithify.errors import BrokerError, ConnectorError, InvalidSettingError, LithifyError, UnknownSourceError
from lithify.model.settings.secrets import hidden

if TYPE_CHECKING:
    import confluent_kafka
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

INSTALL = "pip install 'lithify[kafka]'"
SERVERS = "bootstrap.servers"
SLICE_S = 1.0
"""Calls wait in slices of this, so that a refused authentication ends them before their time."""
READING = {
    "group_id": "lithify",  # the client wants the name of a group; nothing is ever stored under this one
    "enable_auto_commit": False,
    "enable_partition_eof": True,
    "auto_offset_reset": "error",  # what is not there any more is an error, never a place elsewhere
    "isolation_level": "read_committed",
    "max_poll_interval_ms": 86_400_000,  # we are in no group that others wait for
}

Conf = Mapping[str, Any]

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # what matters of it is said by errors


def client() -> Any:
    """The module `confluent_kafka`. Raises `ConnectorError` where it is missing."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise ConnectorError(f"Kafka's client for Python is missing: {error}", hint=INSTALL) from error
    return confluent_kafka


@dataclass(slots=True)
class Cluster:
    """A Kafka cluster as one client sees it, and what went wrong with it last.

    `conf` is librdkafka's, `bootstrap.servers` included; `timeout_s` bounds every wait for an answer.
    """

    conf: Conf = field(repr=False)  # it has secrets
    timeout_s: float = 30.0
    trouble: KafkaError | None = field(default=None, init=False)
    _asked: AdminClient | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not self.servers:
            raise InvalidSettingError(f"no {SERVERS} given", hint=f"{SERVERS}=HOST:PORT says where the cluster is")

    @property
    def servers(self) -> str:
        return str(self.conf.get(SERVERS, ""))

    def consumer(self, **own: Any) -> Consumer:
        """Reads committed records, with `own` over what was given, a `_` in a name standing for a `.`."""
        made: Consumer = self._made(client().Consumer, {**READING, **own})
        return made

    @contextmanager
    def asking(self) -> Iterator[Consumer]:
        """A consumer to ask the cluster with, for as long as that takes."""
        consumer = self.consumer()
        try:
            yield consumer
        finally:
            consumer.close()

    def producer(self, **own: Any) -> Producer:
        """With `own` over what was given, as for a consumer."""
        made: Producer = self._made(client().Producer, own)
        return made

    def admin(self) -> AdminClient:
        made: AdminClient = self._made(client().admin.AdminClient, {})
        return made

    def partitions(self, consumer: Consumer, topic: str) -> int:
        """How many partitions the topic has. Raises `UnknownSourceError` or `BrokerError`.

        Consumers ask for it, since what a producer asks for, a broker may make.
        """
        found = self.wait(lambda slice_s: consumer.list_topics(topic, timeout=slice_s), consumer).topics[topic]
        if found.error is not None:
            raise self.named(found.error, topic)
        return len(found.partitions)

    def topic_id(self, topic: str) -> str:
        """Kafka's id of the topic: another one once it was recreated. Raises `UnknownSourceError` or `BrokerError`.

        Empty where the brokers give none, which is below Kafka 2.8.
        """
        wanted = client().TopicCollection([topic])
        if self._asked is None:
            self._asked = self.admin()  # kept: a connection for each question would take longer than the answer
        with self.explained(topic):
            found = self._asked.describe_topics(wanted, request_timeout=self.timeout_s)[topic]
            given = found.result(timeout=self.timeout_s * 2).topic_id
        none = not given.get_most_significant_bits() and not given.get_least_significant_bits()
        return "" if none else str(given)

    def ends(self, consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
        """The log start offset and the log end offset that a reader of `consumer` can get to."""
        where = client().TopicPartition(topic, partition)
        low, high = self.wait(lambda slice_s: consumer.get_watermark_offsets(where, timeout=slice_s), consumer)
        return int(low), int(high)

    def wait(self, call: Callable[[float], Any], consumer: Consumer) -> Any:
        """What `call` returns, tried in slices for `timeout_s`. Raises what `named` makes of its failure."""
        k = client()
        slices = max(1, round(self.timeout_s / SLICE_S))
        for left in range(slices - 1, -1, -1):
            try:
                answer = call(SLICE_S)
                if answer is not None:
                    return answer
            except k.KafkaException as error:
                failure = error.args[0]
                self._serve(consumer, 0)
                if not self._passes(failure) or left == 0:
                    raise self.named(failure) from error
                if failure.code() in _not_known_yet(k.KafkaError):  # which is said at once
                    self._serve(consumer, SLICE_S)
        raise self.named(k.KafkaError(k.KafkaError._TIMED_OUT))

    def named(self, failure: KafkaError, topic: str = "") -> LithifyError:
        """A failure as an error of ours; what the connections said before explains a mere timeout."""
        k = client().KafkaError
        if failure.code() in _silence(k) and self.trouble is not None:
            failure = self.trouble
        where, why = f"Kafka at {self.servers}", hidden(failure.str(), self.conf)
        match failure.code():
            case k.UNKNOWN_TOPIC_OR_PART | k._UNKNOWN_TOPIC | k._UNKNOWN_PARTITION:
                return UnknownSourceError(f"{where} has no topic {topic}".rstrip(), hint="check name and cluster")
            case k.TOPIC_EXCEPTION:
                return UnknownSourceError(f"{topic!r} is no name of a Kafka topic", hint="check the name")
            case code if code in _refusals(k):
                return BrokerError(f"{where} refuses us: {why}", hint="check user, password and rights")
            case _:
                hint = "check that it runs and can be reached from here; try again"
                return BrokerError(f"{where} does not do what it is asked: {why}", hint=hint)

    @contextmanager
    def explained(self, topic: str = "") -> Iterator[None]:
        """Failures of the client in here as errors of ours."""
        try:
            yield
        except client().KafkaException as error:
            raise self.named(error.args[0], topic) from error

    def refused(self) -> LithifyError | None:
        """The error, if the cluster does not let us in: trying again would change nothing."""
        if self.trouble is not None and self.trouble.code() in _refusals(client().KafkaError):
            return self.named(self.trouble)
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
        self.trouble = failure

    def _passes(self, failure: KafkaError) -> bool:
        """Whether it may work if it is tried again."""
        k = client().KafkaError
        passing = (*_silence(k), *_not_known_yet(k))
        return self.refused() is None and (failure.code() in passing or failure.retriable())

    def _serve(self, consumer: Consumer, for_s: float) -> None:
        """Lets the client call back: it does so in `poll` alone."""
        if isinstance(consumer, client().Consumer):
            consumer.poll(for_s)


def _silence(k: type[confluent_kafka.KafkaError]) -> tuple[int, ...]:
    """What is reported where no broker answered."""
    return (k._TRANSPORT, k._TIMED_OUT, k._ALL_BROKERS_DOWN, k._RESOLVE, k._TIMED_OUT_QUEUE)


def _not_known_yet(k: type[confluent_kafka.KafkaError]) -> tuple[int, ...]:
    """What the client says of any topic after an outage, before it has asked again itself."""
    return (k._UNKNOWN_TOPIC, k._UNKNOWN_PARTITION)


def _refusals(k: type[confluent_kafka.KafkaError]) -> tuple[int, ...]:
    return (
        k._AUTHENTICATION,
        k._SSL,
        k.SASL_AUTHENTICATION_FAILED,
        k.TOPIC_AUTHORIZATION_FAILED,
        k.GROUP_AUTHORIZATION_FAILED,
        k.CLUSTER_AUTHORIZATION_FAILED,
        k.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )
