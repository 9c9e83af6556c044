"""Asks a Kafka cluster about its topics, by the AdminClient of Spark's Kafka connector.

So the `kafka.` options of Spark's Kafka source, with its credentials, apply here too. Every call ends within
`CALL_S` seconds, or when `stops()` becomes true. For a cluster that has not answered yet, all calls together
wait `CALL_S` seconds at most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any, Self

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from lithify.errors import BrokerError, UnknownSourceError
from lithify.kafka_client.client import as_kafka_writes
from lithify.model.settings.secrets import hidden, keep
from lithify.model.sources.source import EpochAt, Signs, SourceLog, SourceTopic
from lithify.ports.source import StopAsked
from lithify.spark.kafka.connector import missing_connector
from lithify.spark.kafka.java_causes import causes_of
from lithify.spark.kafka.log_signs import signs_between
from lithify.spark.session.ended_session import JVM_GONE

CALL_S = 30
ANSWER_MS = 1_000
SLICE_MS = 200  # between two calls of `stops` during a wait

_REFUSED = (
    "AuthenticationException",
    "AuthorizationException",
    "IllegalSaslStateException",
    "UnsupportedSaslMechanismException",
)
"""Suffixes of class names."""
_OWN = "DYNAMIC_TOPIC_CONFIG"
_SLICE_IS_OVER = "java.util.concurrent.TimeoutException"
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_ASKING = {
    "auto.offset.reset": "none",
    "enable.auto.commit": "false",  # a `group.id` may be given, of a group whose positions stay as they are
    **dict.fromkeys(("key.deserializer", "value.deserializer"), _BYTES),
    "max.partition.fetch.bytes": "1024",
    "fetch.max.wait.ms": "10",
}
"""For a consumer that only asks, or reads one record of each partition."""
_SILENT = ("TimeoutException", "DisconnectException")
_UNKNOWN = ("UnknownTopicOrPartitionException", "InvalidTopicException", "UnknownTopicIdException")


class KafkaCluster:
    """A client of a cluster, as a context manager. Calls raise `StopAsked` once `stops()` is true."""

    def __init__(
        self, session: SparkSession, config: Mapping[str, str], stops: Callable[[], bool] = lambda: False
    ) -> None:
        self._jvm: Any = session._jvm
        self._config = dict(config)
        keep(self._config)
        self._stops, self._answered = stops, False
        self._admin: Any = None
        self._waits_left = CALL_S * 1000 // SLICE_MS  # slices, until the cluster has answered for the first time

    @property
    def where(self) -> str:
        return self._config.get("bootstrap.servers", "")

    def __enter__(self) -> Self:
        """Raises `ConnectorError` if the client is not on the class path, `BrokerError` for settings it refuses."""
        with self._errors_converted("the cluster"):
            admin = self._jvm.org.apache.kafka.clients.admin.AdminClient
            if not callable(getattr(admin, "create", None)):
                raise missing_connector()
            self._admin = admin.create(self._properties({}))
        return self

    def __exit__(self, *_: object) -> None:
        if self._admin is not None:
            with suppress(*JVM_GONE):
                self._admin.close(self._jvm.java.time.Duration.ofSeconds(1))
            self._admin = None

    def answers(self) -> bool:
        """Whether the cluster answers within `ANSWER_MS`; an error of its own is an answer."""
        unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        options = self._jvm.org.apache.kafka.clients.admin.DescribeClusterOptions().timeoutMs(ANSWER_MS)
        try:
            self._admin.describeCluster(options).clusterId().get(ANSWER_MS, unit)
        except Py4JJavaError as error:
            return not any(kind.endswith(_SILENT) for kind, _ in causes_of(error.java_exception))
        return True

    def topics(self, pattern: str) -> tuple[str, ...]:
        """Names, sorted, of the topics that the regular expression fully matches. Raises `BrokerError`."""
        with self._errors_converted("the cluster"):
            names = [str(name) for name in self._iterable(self._answer(self._admin.listTopics().names()))]
        return tuple(sorted(name for name in names if re.fullmatch(pattern, name)))

    def topic(self, name: str) -> SourceTopic:
        """The id, if the brokers give any, and partitions. Raises `UnknownSourceError` or `BrokerError`."""
        with self._errors_converted(name):
            described = self._answer(self._admin.describeTopics(self._list([name])).allTopicNames())[name]
            partitions = sorted(int(info.partition()) for info in self._iterable(described.partitions()))
            most, least = described.topicId().getMostSignificantBits(), described.topicId().getLeastSignificantBits()
            return SourceTopic(name, as_kafka_writes(most, least), tuple(partitions), self._cluster_id)

    @cached_property
    def _cluster_id(self) -> str:
        """Empty for a cluster that has none, or does not tell."""
        try:
            return str(self._answer(self._admin.describeCluster().clusterId()) or "")
        except Py4JJavaError:
            return ""

    def logs(self, topic: SourceTopic) -> Mapping[int, SourceLog]:
        """By partition the log start offset, and the end offset for `read_committed`. Raises as `topic`."""
        specs = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        with self._errors_converted(topic.name):
            starts, ends = (self._offsets(topic, spec()) for spec in (specs.earliest, specs.latest))
        return {p: SourceLog(p, starts[p][0], *ends[p]) for p in topic.partitions}

    def epochs(self, topic: SourceTopic) -> Mapping[int, int | None]:
        """By partition the leader epoch, None if the broker does not tell. Raises as `topic`."""
        with self._errors_converted(topic.name):
            latest = self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
            return {p: epoch for p, (_, epoch) in self._offsets(topic, latest).items()}

    def cuts(self, topic: str, asked: Mapping[int, EpochAt]) -> Mapping[int, int | None]:
        """Of partitions that have lost some of what was read: from where on, None if that is unknown (C72).

        A consumer asks, and reads nothing. Raises as `topic`.
        """
        if not asked:
            return {}
        with self._errors_converted(topic), self._consumer() as consumer:
            return self._cuts(consumer, topic, asked)

    def signs(self, topic: str, ranges: Mapping[int, tuple[int, int]]) -> Mapping[int, Mapping[int, Signs]]:
        """By partition and offset the signs of the records in its range. Raises as `topic`."""
        if not ranges:
            return {}
        places = {p: self._place(topic, p) for p in ranges}
        with self._errors_converted(topic), self._consumer() as consumer:
            consumer.assign(self._list([*places.values()]))
            return signs_between(consumer, places, ranges, self._polls(consumer), self._list)

    def _polls(self, consumer: Any) -> Iterator[Any]:
        left = CALL_S * 1000 // SLICE_MS
        while left:
            if self._stops():
                raise StopAsked
            yield (fetched := consumer.poll(self._jvm.java.time.Duration.ofMillis(SLICE_MS)))
            left -= bool(fetched.isEmpty())

    @contextmanager
    def _consumer(self) -> Iterator[Any]:
        consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(self._properties(_ASKING))
        try:
            yield consumer
        finally:
            consumer.close(self._jvm.java.time.Duration.ofSeconds(1))

    def _cuts(self, consumer: Any, topic: str, asked: Mapping[int, EpochAt]) -> Mapping[int, int | None]:
        clients, cuts = self._jvm.org.apache.kafka.clients.consumer, dict[int, int | None]()
        while len(cuts) < len(asked):
            left = {p: self._place(topic, p) for p in asked if p not in cuts}
            places = self._list([*left.values()])
            consumer.assign(places)
            self._waited(partial(consumer.endOffsets, places))  # it knows the leaders then, so that it asks them
            for p, place in left.items():
                epoch = self._jvm.java.util.Optional.of(asked[p].epoch)
                consumer.seek(place, clients.OffsetAndMetadata(asked[p].offset, epoch, ""))
            try:
                for place in left.values():
                    self._waited(partial(consumer.position, place))
                return cuts
            except Py4JJavaError as error:
                if not str(error.java_exception.getClass().getName()).endswith("LogTruncationException"):
                    raise
                cut, ends = error.java_exception.offsetOutOfRangePartitions(), error.java_exception.divergentOffsets()
                for p in [p for p, place in left.items() if cut.containsKey(place)]:
                    end = ends.get(left[p])
                    cuts[p] = None if end is None else int(end.offset())
        return cuts

    def _waited(self, call: Callable[[Any], Any]) -> None:
        """Makes a call that is given a timeout, in slices of it. Raises `StopAsked`."""
        left = CALL_S * 1000 // SLICE_MS
        while True:
            if self._stops():
                raise StopAsked
            try:
                call(self._jvm.java.time.Duration.ofMillis(SLICE_MS))
                return
            except Py4JJavaError as error:
                left -= 1
                if left <= 0 or not str(error.java_exception.getClass().getName()).endswith(".errors.TimeoutException"):
                    raise

    def _properties(self, own: Mapping[str, str]) -> Any:
        properties = self._jvm.java.util.Properties()
        for name, value in {"default.api.timeout.ms": str(CALL_S * 1000), **self._config, **own}.items():
            properties.setProperty(name, value)
        return properties

    def _place(self, topic: str, partition: int) -> Any:
        return self._jvm.org.apache.kafka.common.TopicPartition(topic, partition)

    def config(self, topic: str, *, own: bool = False) -> Mapping[str, str]:
        """The settings of a topic, including defaults, or only its `own`. Raises as `topic`."""
        resources = self._jvm.org.apache.kafka.common.config
        with self._errors_converted(topic):
            resource = resources.ConfigResource(getattr(resources, "ConfigResource$Type").TOPIC, topic)
            config = self._answer(self._admin.describeConfigs(self._list([resource])).all())[resource]
            return {
                str(entry.name()): str(entry.value())
                for entry in self._iterable(config.entries())
                if entry.value() is not None and (not own or str(entry.source()) == _OWN)
            }

    def size_bytes(self, topic: SourceTopic) -> int:
        """What the topic takes on the disks of its leaders. Raises as `topic`, also without the right to ask that."""
        with self._errors_converted(topic.name):
            described = self._answer(self._admin.describeTopics(self._list([topic.name])).allTopicNames())[topic.name]
            leaders = {int(info.partition()): info.leader().id() for info in self._iterable(described.partitions())}
            folders = self._answer(self._admin.describeLogDirs(self._list([*{*leaders.values()}])).allDescriptions())
            total = 0
            for partition, leader in leaders.items():
                for folder in self._iterable(folders[leader].values()):
                    replica = folder.replicaInfos().get(self._place(topic.name, partition))
                    total += 0 if replica is None else int(replica.size())
            return total

    def _offsets(self, topic: SourceTopic, spec: Any) -> dict[int, tuple[int, int | None]]:
        """By partition the offset, and the leader epoch where the broker tells it."""
        wanted = self._jvm.java.util.HashMap()
        places = {p: self._place(topic.name, p) for p in topic.partitions}
        for place in places.values():
            wanted[place] = spec
        level = self._jvm.org.apache.kafka.common.IsolationLevel.READ_COMMITTED
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        offsets = self._answer(self._admin.listOffsets(wanted, options).all())
        return {p: (int(at.offset()), _epoch(at.leaderEpoch())) for p, at in ((p, offsets[places[p]]) for p in places)}

    def _answer(self, future: Any) -> Any:
        unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        left = CALL_S * 1000 // SLICE_MS if self._answered else max(1, self._waits_left)
        while True:
            if self._stops():
                raise StopAsked
            try:
                answer = future.get(SLICE_MS, unit)
            except Py4JJavaError as error:
                left -= 1
                if not self._answered:
                    self._waits_left = left
                if left <= 0 or str(error.java_exception.getClass().getName()) != _SLICE_IS_OVER:
                    raise
            else:
                self._answered = True
                return answer

    def _iterable(self, collection: Any) -> Any:
        return self._jvm.java.util.ArrayList(collection)

    def _list(self, items: list[Any]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.append(item)
        return made

    @contextmanager
    def _errors_converted(self, what: str) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            raise self._error(what, error) from error
        except Py4JError as error:
            raise (StopAsked() if self._stops() else missing_connector()) from error

    def _error(self, what: str, error: Py4JJavaError) -> Exception:
        causes = causes_of(error.java_exception)
        kinds, why = [kind for kind, _ in causes], hidden(causes[-1][1], self._config)
        if kinds[-1] == _SLICE_IS_OVER:
            why = f"no answer within {CALL_S} seconds"
        if any(kind.endswith(_UNKNOWN) for kind in kinds):
            return UnknownSourceError(f"{self.where} has no topic {what}", hint="check its name and the address")
        if any(kind.endswith(_REFUSED) for kind in kinds):
            return BrokerError(f"{self.where} refuses access to {what}: {why}", hint="check the credentials")
        return BrokerError(f"{self.where} does not report {what}: {why}", hint="check the address and try again")


def _epoch(of: Any) -> int | None:
    return int(of.get()) if of.isPresent() and int(of.get()) >= 0 else None  # -1: the broker counts none for this log
