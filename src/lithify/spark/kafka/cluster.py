"""Asks a Kafka cluster about its topics, by the AdminClient of Spark's Kafka connector.

So the `kafka.` options of Spark's Kafka source, with its credentials, apply here too. Every call ends within
`CALL_S` seconds, or when `stops()` becomes true. For a cluster that has not answered yet, all calls together
wait `CALL_S` seconds at most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from lithify.errors import BrokerError, ConnectorError, UnknownSourceError
from lithify.model.settings.secrets import hidden, keep
from lithify.model.source import SourceLog, SourceTopic
from lithify.ports.source import StopAsked

CALL_S = 30
SLICE_MS = 200
"""Milliseconds between two calls of `stops` during a wait."""

_REFUSED = (
    "AuthenticationException",
    "AuthorizationException",
    "IllegalSaslStateException",
    "UnsupportedSaslMechanismException",
)
"""Suffixes of class names."""
_SLICE_IS_OVER = "java.util.concurrent.TimeoutException"
_UNKNOWN = ("UnknownTopicOrPartitionException", "InvalidTopicException", "UnknownTopicIdException")


class KafkaCluster:
    """A client of a cluster, as a context manager. Calls raise `StopAsked` once `stops()` is true."""

    def __init__(
        self, session: SparkSession, config: Mapping[str, str], stops: Callable[[], bool] = lambda: False
    ) -> None:
        self._jvm: Any = session._jvm
        self._config = dict(config)
        keep(self._config)
        self._stops = stops
        self._admin: Any = None
        self._waits_left = CALL_S * 1000 // SLICE_MS
        """Slices left until the cluster has answered for the first time."""
        self._answered = False
        self._unanswered = False
        """Whether a call has waited for longer than a slice, and is waiting still."""

    @property
    def where(self) -> str:
        return self._config.get("bootstrap.servers", "")

    def __enter__(self) -> Self:
        """Raises `ConnectorError` if the client is not on the class path, `BrokerError` for settings it refuses."""
        properties = self._jvm.java.util.Properties()
        for name, value in {"default.api.timeout.ms": str(CALL_S * 1000), **self._config}.items():
            properties.setProperty(name, value)
        with self._errors_converted("the cluster"):
            admin = self._jvm.org.apache.kafka.clients.admin.AdminClient
            if not callable(getattr(admin, "create", None)):
                raise missing_connector()
            self._admin = admin.create(properties)
        return self

    def __exit__(self, *_: object) -> None:
        if self._admin is not None:
            self._admin.close(self._jvm.java.time.Duration.ofSeconds(1))
            self._admin = None

    def topics(self, pattern: str) -> tuple[str, ...]:
        """Names, sorted, of the topics that the regular expression fully matches. Raises `BrokerError`."""
        with self._errors_converted("the cluster"):
            names = [str(name) for name in self._iterable(self._answer(self._admin.listTopics().names()))]
        return tuple(sorted(name for name in names if re.fullmatch(pattern, name)))

    def topic(self, name: str) -> SourceTopic:
        """The id and partitions of a topic. Raises `UnknownSourceError` or `BrokerError`."""
        with self._errors_converted(name):
            described = self._answer(self._admin.describeTopics(self._list([name])).allTopicNames())[name]
            partitions = sorted(int(info.partition()) for info in self._iterable(described.partitions()))
            return SourceTopic(name, str(described.topicId().toString()), tuple(partitions))

    def logs(self, topic: SourceTopic) -> Mapping[int, SourceLog]:
        """By partition the log start offset, and the end offset for `read_committed`. Raises as `topic`."""
        specs = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        with self._errors_converted(topic.name):
            starts = self._offsets(topic, specs.earliest())
            ends = self._offsets(topic, specs.latest())
        return {p: SourceLog(p, starts[p], ends[p]) for p in topic.partitions}

    def config(self, topic: str) -> Mapping[str, str]:
        """The settings of a topic, including defaults. Raises as `topic`."""
        resources = self._jvm.org.apache.kafka.common.config
        with self._errors_converted(topic):
            resource = resources.ConfigResource(getattr(resources, "ConfigResource$Type").TOPIC, topic)
            found = self._answer(self._admin.describeConfigs(self._list([resource])).all())[resource]
            return {
                str(entry.name()): str(entry.value())
                for entry in self._iterable(found.entries())
                if entry.value() is not None
            }

    def _offsets(self, topic: SourceTopic, spec: Any) -> dict[int, int]:
        wanted = self._jvm.java.util.HashMap()
        places = {p: self._jvm.org.apache.kafka.common.TopicPartition(topic.name, p) for p in topic.partitions}
        for place in places.values():
            wanted[place] = spec
        level = self._jvm.org.apache.kafka.common.IsolationLevel.READ_COMMITTED
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        found = self._answer(self._admin.listOffsets(wanted, options).all())
        return {p: int(found[place].offset()) for p, place in places.items()}

    def _answer(self, future: Any) -> Any:
        unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        left = CALL_S * 1000 // SLICE_MS if self._answered else max(1, self._waits_left)
        while True:
            if self._stops():
                raise StopAsked
            try:
                answer = future.get(SLICE_MS, unit)
            except Py4JJavaError as error:
                left, self._unanswered = left - 1, True
                if not self._answered:
                    self._waits_left = left
                if left <= 0 or str(error.java_exception.getClass().getName()) != _SLICE_IS_OVER:
                    raise
            else:
                self._answered, self._unanswered = True, False
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
            raise missing_connector() from error

    def _error(self, what: str, error: Py4JJavaError) -> Exception:
        causes = _causes(error.java_exception)
        kinds, why = [kind for kind, _ in causes], hidden(causes[-1][1], self._config)
        if kinds[-1] == _SLICE_IS_OVER:
            why = f"no answer within {CALL_S} seconds"
        if any(kind.endswith(_UNKNOWN) for kind in kinds):
            return UnknownSourceError(f"{self.where} has no topic {what}", hint="check its name and the address")
        if any(kind.endswith(_REFUSED) for kind in kinds):
            return BrokerError(f"{self.where} refuses access to {what}: {why}", hint="check the credentials")
        return BrokerError(f"{self.where} cannot be asked about {what}: {why}", hint="check the address and try again")


def missing_connector() -> ConnectorError:
    """The error for a session without Kafka's classes on its class path."""
    return ConnectorError(
        "this Spark session has no Kafka connector",
        hint="name a folder with its jars with --jars, or give the session spark.jars.packages; see `lithify doctor`",
    )


def _causes(error: Any) -> list[tuple[str, str]]:
    """Class and message of a Java exception and its causes, innermost last, at most 10."""
    found: list[tuple[str, str]] = []
    while error is not None and len(found) < 10:
        message = " ".join(str(error.getMessage() or "").split())[:300]
        found.append((str(error.getClass().getName()), message or str(error.getClass().getSimpleName())))
        error = error.getCause()
    return found
