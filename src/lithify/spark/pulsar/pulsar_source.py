"""A Pulsar cluster as the source of an ingest: its own protocol, and its admin interface where that is given.

A copy has the preset `pulsar` and keeps message ids. Before it reads for the first time it makes a durable
subscription of its own on every partition, which brokers trim nothing behind. What that is told, and what is noted
with it, `pulsar/lake/entry_continuation.py` says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from lithify.errors import BrokerError, RefusedError, SubscriptionBusyError
from lithify.model.message import MessageId
from lithify.model.settings.topic_settings import preset
from lithify.model.sources.source import IngestRequest, SourcePosition, SourceTopic
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.clock import Clock
from lithify.ports.source import OnBatch, SourceStream, StopAsked
from lithify.pulsar.client import Admin, ClientConfig, Cluster, TopicReader
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar.client.names import partition_name
from lithify.pulsar.client.patience import retried
from lithify.pulsar.lake.entry_continuation import (
    Ledgers,
    Note,
    continuation,
    subscription_of,
    unexpired,
    whole_entries,
)
from lithify.pulsar.lake.replaced_messages import published_at_end, published_there, replaced_message
from lithify.reports.ingest import IngestedEntries, IngestNote, TellNote
from lithify.rules.lifecycle.copies.copy_continuation import CopyContinuation, CopyContinues, SourceWasCut
from lithify.spark.pulsar.entry_ranges import Limits
from lithify.spark.pulsar.pulsar_stream import EntryStream, Look, StreamPlan

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
        clock: Clock,
        notes: TellNote = lambda _note: None,
    ) -> None:
        self._session, self._config, self._request, self._stops, self._clock = session, config, request, stops, clock
        self._notes = notes
        self._cluster = Cluster(config)
        self._answered = False
        self._subscriptions: dict[str, str] = {}
        """By topic, the name of the durable subscription of its copy."""
        self._noted: dict[str, Note] = {}
        """By name of a partition, what its subscription got last."""
        self._published: dict[str, dict[int, int]] = {}
        """By topic and partition, when the last message was published of copies that end with it."""

    @property
    def where(self) -> str:
        return self._config.service_url

    @property
    def is_silent(self) -> bool:
        """False: `retried` says that it waits for a broker."""
        return False

    @property
    def drops(self) -> None:
        """Compaction writes a view beside the ledgers, and leaves these as they are."""

    @property
    def look_interval_ms(self) -> int:
        return LOOK_MS

    def topics(self, pattern: str) -> tuple[str, ...]:
        """Raises `RefusedError`: topics of Pulsar are copied by name."""
        raise RefusedError(f"{pattern}: topics of Pulsar are copied by name, not by pattern")

    def topic(self, name: str) -> SourceTopic:
        """Its id is when it was created, if the admin interface tells. Raises `UnknownSourceError` or `BrokerError`."""
        count = self._retried(partial(self._cluster.partitions, name))
        return SourceTopic(name, self._created(partition_name(name, 0, count)), tuple(range(max(1, count))))

    def epochs(self, topic: SourceTopic) -> Mapping[int, int | None]:
        """None: a ledger that is closed remains as it is."""
        return {}

    def continuations(self, topic: SourceTopic, copy: TopicState) -> Mapping[int, CopyContinuation]:
        """Subscribes, so that brokers keep what comes next. Raises `RefusedError` or `BrokerError`."""
        if copy.settings.message_ids != "pulsar":
            raise RefusedError(
                f"{copy.name}: message.ids=none, but a copy of a Pulsar topic keeps ids",
                hint="use another --into: Lithify creates a topic that does not exist",
            )
        subscription = subscription_of(copy.identity)
        self._subscriptions[topic.name] = subscription
        continuations: dict[int, CopyContinuation] = {}
        self._published[topic.name] = {}
        for partition, name in self._names(topic).items():
            before = self._retried(partial(self._ledgers, name, subscription))
            self._retried(partial(self._subscribed, name, subscription))
            after = self._retried(partial(self._ledgers, name, subscription))
            known = None if before is None or after is None else before.grown_to(after)
            last = self._retried(partial(self._cluster.last_id, name))
            continuations[partition] = self._continuation(name, copy.log(partition).copied_to, known, last)
            if isinstance(continuations[partition], CopyContinues):
                continuations[partition] = self._compared(topic.name, name, copy.log(partition))
        return continuations

    def after_read(
        self, topic: SourceTopic, copy: TopicState, partitions: Collection[int]
    ) -> Mapping[int, CopyContinuation]:
        """Readers begin at the next entry that there is, whatever was before it. Raises `BrokerError`.

        They have compared the copy's last message themselves.
        """
        subscription, names = self._subscriptions[topic.name], self._names(topic)
        known = {p: self._retried(partial(self._ledgers, names[p], subscription)) for p in partitions}
        return {p: self._continuation(names[p], copy.log(p).copied_to, known[p]) for p in partitions}

    def progress(self, topic: SourceTopic, copy: TopicState, records: Mapping[int, int]) -> tuple[IngestedEntries, ...]:
        """Raises `BrokerError`."""
        entries = []
        for partition, (_, last) in self._look(topic).last_ids.items():
            log = copy.log(partition)
            end = None if last is None else MessageId(*last.place)
            to = None if log.copied_to is None else str(log.copied_to)
            lag = _lag(log.copied_to, end)
            source_end = None if end is None else str(end)
            entries.append(
                IngestedEntries(partition, log.log_end_offset, to, source_end, records.get(partition, 0), lag)
            )
        return tuple(entries)

    def own_config(self, topic: str) -> None:
        """Pulsar has policies of namespaces and topics, which no verb takes over."""

    def settings(self, topic: str, config: Mapping[str, object]) -> Mapping[str, object]:
        """The preset `pulsar`, with ids; what Pulsar has accepted is not refused. Raises `InvalidSettingError`."""
        given = "".join(f", {name}={value}" for name, value in config.items())
        name = self._request.target(topic)
        text = f"{name}: created with the preset pulsar{given}; the retention and TTL of its namespace are not copied"
        self._notes(IngestNote("settings", f"{text}, as a copy keeps its history", source=topic))
        return {**preset("pulsar"), "max.message.bytes": MOST_BYTES, **config, "message.ids": "pulsar"}

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
            limits=Limits(request.max_records, request.skip_damaged),
            look=lambda: self._look(self.topic(topic)),
            acknowledge=partial(self._acknowledge, self._subscriptions[topic]),
            published=self._published[topic],
        )
        stream = EntryStream(self._session(), plan, on_batch)
        stream.start()
        return stream

    def _names(self, topic: SourceTopic) -> dict[int, str]:
        count = self._retried(partial(self._cluster.partitions, topic.name))
        return {p: partition_name(topic.name, p, count) for p in topic.partitions}

    def _look(self, topic: SourceTopic) -> Look:
        now_ms, names = self._clock.now_ms(), self._names(topic)
        return Look(now_ms, {p: (n, self._retried(partial(self._cluster.last_id, n))) for p, n in names.items()})

    def _compared(self, topic: str, name: str, log: LogState) -> CopyContinuation:
        """The copy continues, unless the topic has another message in place of the copy's last one (C52)."""
        reader, at_end = TopicReader(self._config, name), published_at_end(log)
        theirs = published_there(log, lambda at: self._retried(partial(reader.entry, at)))
        if (other := replaced_message(log, theirs)) is not None:
            return SourceWasCut(other, None)
        if theirs is not None and at_end is not None:  # else readers would begin at an entry that may not be readable
            self._published[topic][log.partition] = at_end
        return CopyContinues(log.copied_to)

    def _continuation(
        self, name: str, copied_to: MessageId | None, known: Ledgers | None, last: MessageId | None = None
    ) -> CopyContinuation:
        alive = None
        if copied_to is not None and known is not None and known.start_beyond(copied_to) is not None:
            alive = unexpired(self._message_ttl_s(name), self._clock.now_ms())
        return continuation(copied_to, known, last, alive)

    def _message_ttl_s(self, name: str) -> int:
        """0: none, or this role may not know."""
        try:
            return self._retried(partial(Admin(self._config).message_ttl_s, name))
        except TransientBrokerError:
            raise
        except BrokerError:
            return 0

    def _ledgers(self, name: str, subscription: str) -> Ledgers | None:
        if not self._config.admin_url:
            return None
        return Ledgers.of(Admin(self._config).internal_stats(name), subscription)

    def _created(self, name: str) -> str:
        """Empty: not known."""
        if not self._config.admin_url:
            return ""
        return self._retried(partial(Admin(self._config).created, name))

    def _subscribed(self, name: str, subscription: str) -> None:
        """Makes the durable subscription if it is not there."""
        self._cluster.subscribe(name, subscription).close()

    def _acknowledge(self, subscription: str, look: Look, reached: Mapping[int, MessageId]) -> None:
        """By partition, the id up to which its copy is committed. What fails is left to a later time."""
        for partition, copied_to in reached.items():
            name, _ = look.last_ids[partition]
            seen_ms = look.ms if look.has_all(partition, copied_to) else None
            before = self._noted.get(name)
            if before is None or before.is_outdated(whole_entries(copied_to), seen_ms):
                with suppress(BrokerError, SubscriptionBusyError):
                    self._note(name, subscription, copied_to, seen_ms)

    def _note(self, name: str, subscription: str, copied_to: MessageId, seen_ms: int | None) -> None:
        """`seen_ms` is when the copy had everything; None: it does not, so the time that was noted before remains.

        A broker takes no acknowledgement before its cursor, which is elsewhere if nothing was copied since the last
        one: in a later ledger, or moved by a TTL. After a loss nothing is noted, so that the next look finds it.
        """
        place, before = whole_entries(copied_to), self._noted.get(name)
        at, noted = place, before
        self._noted[name] = Note(place, seen_ms)  # also where it fails now: not at each look again
        if before is None or before.place == place:
            known = self._ledgers(name, subscription)
            if not isinstance(self._continuation(name, copied_to, known), CopyContinues):
                return
            if known is not None:
                noted = known.noted
                at = place if known.cursor is None or seen_ms is None else max(place, known.cursor)
        if seen_ms is None and noted is not None:
            self._noted[name] = Note(place, noted.seen_ms)
        with self._cluster.subscribe(name, subscription) as held:
            held.acknowledge(at, self._noted[name].properties)

    def _retried(self, call: Callable[[], T]) -> T:
        """Tries again while the broker is away, once it has answered for as long as readers do. Raises `StopAsked`."""

        def tried() -> T:
            if self._stops():
                raise StopAsked
            return call()

        outage_s = self._config.outage_s
        answer = retried(tried, outage_s if self._answered else min(FIRST_ANSWER_S, outage_s), self._clock.sleep)
        self._answered = True
        return answer


def _lag(copied_to: MessageId | None, end: MessageId | None) -> int | None:
    """Entries, as far as ids tell."""
    if end is None or (copied_to is not None and copied_to.covers(end)):
        return 0
    if copied_to is None or copied_to.ledger != end.ledger:
        return None
    return end.entry - copied_to.entry
