"""A Pulsar cluster as the source of an ingest: its own protocol, and its admin interface where that is given.

A copy has the preset `pulsar` and keeps message ids. Before it reads for the first time it makes a durable
subscription of its own on every partition, which brokers trim nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from lithify.errors import BrokerError, RefusedError, SubscriptionBusyError
from lithify.lifecycle.source_continuation import CopyContinuation, CopyContinues
from lithify.model.log import TopicState
from lithify.model.message import MessageId
from lithify.model.settings.topic_settings import TopicSettings, settings_of
from lithify.model.source import IngestRequest, SourcePosition, SourceTopic
from lithify.ports.source import OnBatch, SourceStream, StopAsked
from lithify.pulsar.client import Admin, ClientConfig, Cluster
from lithify.pulsar.client.names import partition_name
from lithify.pulsar.client.patience import patiently
from lithify.pulsar.lake.continuation import Ledgers, continuation, notes, subscription_of, whole_entries
from lithify.reports.ingest import IngestedEntries
from lithify.spark.pulsar.stream import EntryStream, StreamPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_MS: Final = 60_000
FIRST_ANSWER_S: Final = 30.0
"""How long a cluster is tried that has not answered yet: its address may be wrong."""
MOST_BYTES: Final = 2**31 - 1
T = TypeVar("T")


class PulsarSource:
    """A cluster. `stops` ends its waits with `StopAsked`."""

    system = "Pulsar"

    def __init__(
        self,
        session: Callable[[], SparkSession],
        config: ClientConfig,
        request: IngestRequest,
        stops: Callable[[], bool],
        wait: Callable[[float], None],
    ) -> None:
        self._session, self._config, self._request, self._stops, self._wait = session, config, request, stops, wait
        self._cluster = Cluster(config)
        self._answered = False
        self._subscriptions: dict[str, str] = {}
        """By topic, the name of the durable subscription of its copy."""

    @property
    def where(self) -> str:
        return self._config.service_url

    @property
    def look_interval_ms(self) -> int:
        return LOOK_MS

    def topics(self, pattern: str) -> tuple[str, ...]:
        """Raises `RefusedError`: topics of Pulsar are copied by name."""
        raise RefusedError(f"{pattern}: topics of Pulsar are copied by name, not by a pattern")

    def topic(self, name: str) -> SourceTopic:
        """Its id is when it was created, if the admin interface tells. Raises `UnknownSourceError` or `BrokerError`."""
        count = self._patiently(partial(self._cluster.partitions, name))
        found = SourceTopic(name, "", tuple(range(max(1, count))))
        return SourceTopic(name, self._created(partition_name(name, 0, count)), found.partitions)

    def continuations(self, topic: SourceTopic, copy: TopicState) -> Mapping[int, CopyContinuation]:
        """Subscribes, so that brokers keep what comes next. Raises `RefusedError` or `BrokerError`."""
        if copy.settings.message_ids != "pulsar":
            raise RefusedError(
                f"{copy.name}: message.ids=none, and a copy of a Pulsar topic keeps ids",
                hint="name another --into: a topic that is not there yet is created",
            )
        subscription = subscription_of(copy.identity)
        self._subscriptions[topic.name] = subscription
        found: dict[int, CopyContinuation] = {}
        for partition, name in self._names(topic).items():
            before = self._ledgers(name, subscription)
            self._patiently(partial(self._subscribed, name, subscription))
            after = self._ledgers(name, subscription)
            known = None if before is None or after is None else replace(before, ids=after.ids)
            last, copied_to = self._patiently(partial(self._cluster.last_id, name)), copy.log(partition).copied_to
            found[partition] = continuation(copied_to, known, last)
            if copied_to is not None and found[partition] == CopyContinues(copied_to):
                self._acknowledge(subscription, {name: copied_to})  # in case that an earlier run could not
        return found

    def after_read(
        self, topic: SourceTopic, copy: TopicState, partitions: Collection[int]
    ) -> Mapping[int, CopyContinuation]:
        """Readers begin at the next entry that there is. Raises `BrokerError`."""
        subscription, names = self._subscriptions[topic.name], self._names(topic)
        return {p: continuation(copy.log(p).copied_to, self._ledgers(names[p], subscription), None) for p in partitions}

    def progress(self, topic: SourceTopic, copy: TopicState, records: Mapping[int, int]) -> tuple[IngestedEntries, ...]:
        """Raises `BrokerError`."""
        found = []
        for partition, (_, last) in self._last_ids(topic).items():
            log = copy.log(partition)
            end = None if last is None else MessageId(*last.place)
            to = None if log.copied_to is None else str(log.copied_to)
            lag = _lag(log.copied_to, end)
            source_end = None if end is None else str(end)
            found.append(IngestedEntries(partition, log.log_end_offset, to, source_end, records.get(partition, 0), lag))
        return tuple(found)

    def settings(self, topic: str, config: Mapping[str, object]) -> TopicSettings:
        """The preset `pulsar`, with ids; what Pulsar has accepted is not refused. Raises `InvalidSettingError`."""
        return settings_of({"max.message.bytes": MOST_BYTES, **config, "message.ids": "pulsar"}, like="pulsar")

    def stream(
        self, topic: str, starts: Mapping[int, SourcePosition | None], run_id: str, on_batch: OnBatch
    ) -> SourceStream:
        """Raises `BrokerError`."""
        request = self._request
        plan = StreamPlan(
            config=self._config,
            starts=starts,
            job=f"lithify ingest {topic} {run_id}",
            continuous=request.continuous,
            interval_ms=request.interval_ms,
            most=request.max_records,
            last_ids=lambda: self._last_ids(self.topic(topic)),
            acknowledge=partial(self._acknowledge, self._subscriptions[topic]),
        )
        stream = EntryStream(self._session(), plan, on_batch)
        stream.start()
        return stream

    def _names(self, topic: SourceTopic) -> dict[int, str]:
        count = self._patiently(partial(self._cluster.partitions, topic.name))
        return {p: partition_name(topic.name, p, count) for p in topic.partitions}

    def _last_ids(self, topic: SourceTopic) -> dict[int, tuple[str, MessageId | None]]:
        return {p: (n, self._patiently(partial(self._cluster.last_id, n))) for p, n in self._names(topic).items()}

    def _ledgers(self, name: str, subscription: str) -> Ledgers | None:
        if not self._config.admin_url:
            return None
        stats = self._patiently(partial(Admin(self._config).internal_stats, name))
        return Ledgers.of(stats, subscription)

    def _created(self, name: str) -> str:
        """Empty: not known."""
        if not self._config.admin_url:
            return ""
        return self._patiently(partial(Admin(self._config).created, name))

    def _subscribed(self, name: str, subscription: str) -> None:
        """Makes the durable subscription if it is not there."""
        self._cluster.subscribe(name, subscription).close()

    def _acknowledge(self, subscription: str, reached: Mapping[str, MessageId]) -> None:
        """By name of a partition, the id up to which its copy is committed. What fails is left to the next time."""
        for name, copied_to in reached.items():
            place = whole_entries(copied_to)
            if place is None:
                continue
            with (
                suppress(BrokerError, SubscriptionBusyError),
                self._cluster.subscribe(name, subscription) as held,
            ):
                held.acknowledge(place, notes(place))

    def _patiently(self, call: Callable[[], T]) -> T:
        """Tries again while the broker is away, once it has answered for as long as readers do. Raises `StopAsked`."""

        def tried() -> T:
            if self._stops():
                raise StopAsked
            return call()

        outage_s = self._config.outage_s
        found = patiently(tried, outage_s if self._answered else min(FIRST_ANSWER_S, outage_s), self._wait)
        self._answered = True
        return found


def _lag(copied_to: MessageId | None, end: MessageId | None) -> int | None:
    """Entries, as far as ids tell."""
    if end is None or (copied_to is not None and copied_to.covers(end)):
        return 0
    if copied_to is None or copied_to.ledger != end.ledger:
        return None
    return end.entry - copied_to.entry
