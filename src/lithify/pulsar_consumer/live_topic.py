"""A topic of a Pulsar cluster as that behind a copy: its last ids, what was trimmed of it, and its tail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeVar

from lithify.errors import LithifyError, SourceLostError, SourceWentBackError
from lithify.model.message import MessageId
from lithify.model.sources.ends import Ends
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.clock import Clock
from lithify.pulsar.client import Admin, ClientConfig, Cluster, TopicEnd, TopicReader
from lithify.pulsar.client.names import partition_name
from lithify.pulsar.client.patience import retried
from lithify.pulsar.lake.entry_continuation import Ledgers, continuation, subscription_of
from lithify.pulsar.lake.replaced_messages import published_there, replaced_message
from lithify.pulsar_consumer.kept_whole import KeptWhole
from lithify.pulsar_consumer.live_tail import PulsarTail
from lithify.rules.lifecycle.copies.copy_continuation import NeverCopied, SourceWasCut, SourceWentBack
from lithify.service.snapshot.live import COPY_AGAIN, LiveTail, Reached, check_same

T = TypeVar("T")


class PulsarTopic:
    """See `snapshot.live.LiveSource`. `identity` is the copy's, after which its subscription is named.

    With `skip_damaged` it skips entries that their producers wrote damaged (C74).
    """

    system = "Pulsar"

    def __init__(
        self, config: ClientConfig, topic: str, identity: str, clock: Clock, *, skip_damaged: bool = False
    ) -> None:
        self._config, self.topic, self._clock = config, topic, clock
        self._cluster, self._admin = Cluster(config), Admin(config)
        self._ends: dict[str, TopicEnd] = {}
        """By name of a partition."""
        self._subscription, self._skip_damaged = subscription_of(identity), skip_damaged
        self._kept_whole: dict[int, KeptWhole] = {}
        self._count = self._retried(partial(self._cluster.partitions, topic))
        self.topic_id = self._created()

    def check_same(self, known: str) -> None:
        if known:
            check_same(self.system, self.topic, known, self._created())

    def check_copy(self, state: TopicState) -> None: ...

    def partitions(self) -> int:
        self._count = self._retried(partial(self._cluster.partitions, self.topic))
        return max(1, self._count)

    def begin(self, partition: int, log: LogState, at: Reached) -> Reached | None:
        known = self._ledgers(partition)
        self._check_copied(partition, log)
        if at.message is None and log.copied_to is None:  # at the earliest entry, as any consumer
            return Reached(at.offset, known.start)
        ahead = at.message is not None and (log.copied_to is None or not log.copied_to.covers(at.message))
        copied_to = at.message if ahead else log.copied_to
        noted_place = None if known.noted is None else known.noted.place
        copied_since = noted_place is not None and copied_to is not None and noted_place.place > copied_to.place
        missing = self._missing(partition, copied_to, known)
        if missing is not None and not (copied_since and isinstance(missing, SourceLostError)):
            raise missing
        return None

    def _check_copied(self, partition: int, log: LogState) -> None:
        """Raises `SourceWentBackError` if the topic has another message in place of the copy's last one (C52)."""
        reader = TopicReader(self._config, self._name(partition))
        theirs = published_there(log, lambda at: self._retried(partial(reader.entry, at)))
        if (other := replaced_message(log, theirs)) is not None:
            raise SourceWentBackError(
                f"Pulsar's {reader.topic} has another message at {other} than the copy, as after a restore",
                hint=COPY_AGAIN,
            )

    def enter(self, partition: int, log: LogState, at: Reached) -> None: ...

    def learn(self, ends: Ends) -> None: ...

    def known_ends(self, places: Mapping[int, int]) -> Ends:
        return {}

    def ends(self, partitions: Collection[int]) -> Mapping[int, Reached]:
        return {partition: Reached(0, self._last_id(partition)) for partition in partitions}

    def missing(self, partition: int, at: Reached) -> LithifyError | None:
        return self._missing(partition, at.message, self._ledgers(partition))

    def tail(self, starts: Mapping[int, Reached]) -> LiveTail:
        readers = {partition: TopicReader(self._config, self._name(partition)) for partition in starts}
        if self._skip_damaged:
            self._kept_whole = {p: self._kept_whole.get(p, KeptWhole()) for p in {*self._kept_whole, *starts}}
        return PulsarTail(
            readers,
            starts,
            self._clock,
            last_id=self._last_id,
            check=self._check,
            kept_whole=self._kept_whole,
        )

    def damaged(self) -> dict[int, tuple[int, tuple[str, ...]]]:
        """By partition that had any, how many damaged entries were kept whole, and the first ones."""
        return {p: (kept.count, tuple(kept.named)) for p, kept in sorted(self._kept_whole.items()) if kept.count}

    def close(self) -> None:
        for end in self._ends.values():
            end.close()

    def _missing(self, partition: int, copied_to: MessageId | None, known: Ledgers) -> LithifyError | None:
        if copied_to is None:
            return None
        name = self._name(partition)
        whole = MessageId(*copied_to.place)  # entries are read as a whole
        match continuation(whole, known, self._last_id(partition)):
            case NeverCopied(_, start):
                return SourceLostError(
                    f"Pulsar's {name} starts at {start} now: messages after {copied_to} may have been trimmed, and "
                    "are not in the lake",
                    hint="run `lithify pulsar ingest` before messages are trimmed, and do not change its subscription",
                )
            case SourceWentBack(_, end):
                return SourceWentBackError(
                    f"Pulsar's {name} ends at {end}, before {copied_to}, where this consumer continues",
                    hint=COPY_AGAIN,
                )
            case SourceWasCut():
                return SourceWentBackError(
                    f"Pulsar's {name} has lost {copied_to}, where this consumer continues, as after a restore",
                    hint=COPY_AGAIN,
                )
        return None

    def _check(self, partition: int, at: Reached) -> None:
        """Raises unless what was read behind `at` until now is complete, and of the same topic."""
        self.check_same(self.topic_id)
        if (missing := self.missing(partition, at)) is not None:
            raise missing

    def _ledgers(self, partition: int) -> Ledgers:
        stats = self._retried(partial(self._admin.internal_stats, self._name(partition)))
        return Ledgers.of(stats, self._subscription)

    def _last_id(self, partition: int) -> MessageId | None:
        name = self._name(partition)
        end = self._ends.setdefault(name, TopicEnd(self._config, name))
        return self._retried(end.last_id)

    def _created(self) -> str:
        return self._retried(partial(self._admin.created, self._name(0)))

    def _name(self, partition: int) -> str:
        return partition_name(self.topic, partition, self._count)

    def _retried(self, call: Callable[[], T]) -> T:
        return retried(call, self._config.outage_s, self._clock.sleep)
