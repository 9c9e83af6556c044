"""A Pulsar cluster in memory, for rounds without a server: topics, `__compaction`, ledgers of views, an engine.

The broker does what Pulsar's does: it serves the ledger that was acknowledged, stores the cursor, and then deletes
the ledger of the earlier view. The engine is the reference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from lithify.errors import (
    BrokerError,
    DamagedError,
    LithifyError,
    RefusedError,
    SubscriptionBusyError,
    UnknownSourceError,
)
from lithify.model.message import MessageId
from lithify.ports.engine import Progress, RunLimits
from lithify.ports.pulsar.pulsar_cluster import Hold, TopicLedger, TopicLook
from lithify.ports.pulsar.views import EntryRange, PlannedView, RoundLedger, ViewLedger, ViewRules, WrittenView
from lithify.pulsar import compact_entries
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.format.framing import unframed
from support.pulsar.entries import Sent, single

NOWHERE = MessageId(-1, -1)
LEDGER_ENTRIES = 10
"""A topic's ledger is full then."""


@dataclass(slots=True)
class FakePartition:
    """One partition: its ledgers, and the cursor of `__compaction`, if there is one."""

    ledgers: dict[int, list[RawEntry]] = field(default_factory=dict)
    has_cursor: bool = False
    horizon: MessageId | None = None
    view: int | None = None
    served: int | None = None
    note: int | None = None
    hold: FakeHold | None = None
    is_compacting: bool | None = False
    """By the broker, between its phases; None: it does not tell."""
    acknowledged: tuple[MessageId, int] | None = None
    """Not done yet by the broker."""

    @property
    def entries(self) -> list[RawEntry]:
        return [raw for entries in self.ledgers.values() for raw in entries]


@dataclass(slots=True)
class ViewFile:
    """A ledger with a view."""

    partition: str
    run_id: str | None
    horizon: MessageId = NOWHERE
    entries: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class FakePulsar:
    """Implements `PulsarCluster`, `ViewLedgers` and `ViewEngine`."""

    topics: dict[str, FakePartition] = field(default_factory=dict)
    views: dict[int, ViewFile] = field(default_factory=dict)
    newest: int = 4
    looks_until_done: int = 0
    """So many looks see an acknowledgement that is not done yet."""
    loses_holds: bool = False
    """While views are written."""
    dies_serving: bool = False
    """Once it has begun to serve a view, before it deletes the earlier one."""
    looks_fail_without_view: bool = False
    """Where the ledger that is served is gone, as after a broker has loaded the topic again."""
    vanishing: dict[str, str] = field(default_factory=dict)
    """By partition, its "topic" or its "cursor": deleted when a view is to be served, which then is not.

    By "look", a partition that looks do not find although it is there.
    """
    of_another_cluster: tuple[str, ...] = ()
    """Topics of a cluster that shares BookKeeper."""
    damaged: tuple[str, ...] = ()
    """Entries that views have whole."""
    threshold: int = 0
    rules: ViewRules = ViewRules()

    def send(self, partition: str, *messages: Sent) -> None:
        topic = self.topics.setdefault(partition, FakePartition())
        for sent in messages:
            if not topic.ledgers or len(topic.ledgers[max(topic.ledgers)]) == LEDGER_ENTRIES:
                topic.ledgers[self._new_ledger()] = []
            ledger = max(topic.ledgers)
            topic.ledgers[ledger].append(single(ledger, len(topic.ledgers[ledger]), sent))

    def trim(self, partition: str) -> None:
        """Deletes all but the last ledger of the topic, as far as a round has covered them."""
        topic = self.topics[partition]
        horizon = topic.horizon or MessageId(-1, -1)
        for ledger in sorted(topic.ledgers)[:-1]:
            if ledger < horizon.ledger:
                del topic.ledgers[ledger]

    def compacted_read(self, partition: str) -> list[tuple[int, int]]:
        """The ids of the entries that a reader of the compacted topic gets."""
        topic = self.topics[partition]
        view = [] if topic.served is None else [unframed(data) for data in self.views[topic.served].entries]
        horizon = topic.horizon if topic.served is not None and topic.horizon else MessageId(-1, -1)
        return [raw[:2] for raw in (*view, *(raw for raw in topic.entries if raw[:2] > horizon[:2]))]

    # The cluster.

    def partitions(self, topic: str) -> Mapping[int, str]:
        names = {int(name.rpartition("-")[2]): name for name in self.topics if name.startswith(f"{topic}-partition-")}
        if not names and topic not in self.topics:
            raise UnknownSourceError(f"{topic} not found")
        return dict(sorted(names.items())) or {0: topic}

    def view_rules(self) -> ViewRules:
        return self.rules

    def automatic_threshold_bytes(self, topic: str) -> int:
        return self.threshold

    @contextmanager
    def hold(self, partition: str) -> Iterator[Hold]:
        topic = self.topics[partition]
        if topic.hold is not None:
            raise SubscriptionBusyError(f"{partition}: ConsumerBusy")
        topic.hold, topic.has_cursor = FakeHold(self, partition), True
        try:
            yield topic.hold
        finally:
            topic.hold = None

    def is_compacting(self, partition: str) -> bool:
        found = self.topics[partition].is_compacting
        if found is None:
            raise RefusedError(f"it is unknown whether the broker compacts {partition} itself at the moment")
        return found

    def look(self, partition: str) -> TopicLook:
        if partition not in self.topics or self.vanishing.get("look") == partition:
            raise UnknownSourceError(f"{partition} not found")
        topic = self.topics[partition]
        if topic.acknowledged is not None:
            self.looks_until_done -= 1
            if self.looks_until_done <= 0:
                self._serve(topic, *topic.acknowledged)
        served = None if topic.served not in self.views else self._looked(topic.served)
        if self.looks_fail_without_view and topic.served is not None and served is None:
            raise DamagedError(f"{partition}: its compacted ledger is lost")
        entries = topic.entries
        return TopicLook(
            tuple(
                TopicLedger(ledger, len(some), sum(len(raw.data) for raw in some))
                for ledger, some in topic.ledgers.items()
            ),
            MessageId(*entries[-1][:2]) if entries else None,
            topic.horizon,
            topic.view,
            served,
            topic.note,
        )

    def drop_view(self, partition: str, *, forced: bool = False) -> bool:
        topic = self.topics[partition]
        if topic.hold is not None and not forced:
            raise BrokerError(f"{partition}: the subscription has a consumer")
        had, topic.has_cursor = topic.view is not None, False
        self.views.pop(topic.view or -1, None)
        topic.view = topic.served = topic.horizon = topic.note = None
        return had

    def unsettled(self, partition: str) -> int | None:
        return self.topics[partition].note

    def note_unsettled(self, partition: str, ledger: int | None) -> None:
        assert self.topics[partition].has_cursor
        self.topics[partition].note = ledger

    # BookKeeper.

    @contextmanager
    def open_ledgers(self) -> Iterator[FakePulsar]:
        yield self

    def newer_than(self, partition: str, ledger: int) -> tuple[ViewLedger, ...]:
        return tuple(
            ViewLedger(number, view.run_id)
            for number, view in sorted(self.views.items())
            if view.partition == partition and number > ledger
        )

    def of_rounds(self) -> tuple[RoundLedger, ...]:
        made = sorted(self.views.items())
        return tuple(
            RoundLedger(number, view.partition, view.run_id, view.horizon) for number, view in made if view.run_id
        )

    def with_messages(self, partitions: Collection[str]) -> frozenset[str]:
        there = {*self.topics, *self.of_another_cluster}
        return frozenset(name for name in partitions if name in there)

    def delete(self, ledger: int) -> None:
        self.views.pop(ledger, None)

    # The engine.

    def write(
        self, views: Sequence[PlannedView], rules: ViewRules, limits: RunLimits, run_id: str, progress: Progress
    ) -> Mapping[str, WrittenView | LithifyError]:
        written = {view.partition: self._written(view, rules, run_id) for view in views}
        for view in views:
            hold = self.topics[view.partition].hold
            if self.loses_holds and hold is not None:
                hold.is_open = False
        progress("view", len(views), len(views))
        return written

    def begin_view(self, partition: str, run_id: str | None, horizon: MessageId = NOWHERE) -> int:
        ledger = self._new_ledger()
        self.views[ledger] = ViewFile(partition, run_id, horizon)
        return ledger

    def _written(self, view: PlannedView, rules: ViewRules, run_id: str) -> WrittenView:
        ledger = self.begin_view(view.partition, run_id, view.horizon)
        read = [raw for one in view.ranges for raw in self._read(view.partition, one)]
        left = [data for *_, data in compact_entries(read, retain_null_key=rules.retain_null_key, order=rules.order)]
        self.views[ledger].entries = left
        bytes_in, bytes_out = (sum(map(len, some)) for some in ([raw.data for raw in read], left))
        return WrittenView(
            ledger, len(read), len(left), len(read), len(left), bytes_in, bytes_out, True, *self._skipped()
        )

    def _skipped(self) -> tuple[int, tuple[str, ...]]:
        return len(self.damaged), self.damaged

    def _read(self, partition: str, one: EntryRange) -> list[RawEntry]:
        topic = self.topics[partition]
        if one.compacted:
            assert topic.served is not None
            found = [unframed(data) for data in self.views[topic.served].entries]
        else:
            found = topic.entries
        return [raw for raw in found if (one.start or (-1, -1))[:2] <= raw[:2] <= one.end[:2]]

    def _looked(self, ledger: int) -> TopicLedger:
        entries = self.views[ledger].entries
        return TopicLedger(ledger, len(entries), sum(map(len, entries)))

    def _serve(self, topic: FakePartition, horizon: MessageId, ledger: int) -> None:
        assert ledger in self.views, "a ledger that is gone would be served for ever"
        earlier, topic.acknowledged = topic.served, None
        topic.horizon, topic.view, topic.served = horizon, ledger, ledger
        if self.dies_serving:
            if topic.hold is not None:
                topic.hold.is_open = False
        elif earlier is not None:
            self.delete(earlier)

    def _new_ledger(self) -> int:
        self.newest += 1
        return self.newest

    def acknowledge(self, partition: str, horizon: MessageId, ledger: int) -> None:
        topic = self.topics[partition]
        if (what := self.vanishing.get(partition)) is not None:
            assert topic.hold is not None
            topic.hold.is_open = False
            self.drop_view(partition, forced=True)
            if what == "topic":
                del self.topics[partition]
            return
        topic.acknowledged = (horizon, ledger)
        if self.looks_until_done <= 0:
            self._serve(topic, horizon, ledger)


@dataclass(slots=True)
class FakeHold:
    """See `ports.pulsar.cluster.Hold`. A test closes it to lose it."""

    cluster: FakePulsar
    partition: str
    is_open: bool = True

    def is_confirmed(self) -> bool:
        return self.is_open

    def acknowledge(self, horizon: MessageId, ledger: int) -> None:
        if not self.is_open:
            raise BrokerError(f"{self.partition}: the subscription is lost")
        self.cluster.acknowledge(self.partition, horizon, ledger)
