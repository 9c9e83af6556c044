"""Rounds of a fake cluster with ports at whose N-th call something happens (`support/faults/ports.py`)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from lithify.errors import LithifyError
from lithify.model.message import MessageId
from lithify.ports.engine import Progress, RunLimits
from lithify.ports.pulsar.views import EntryRange, PlannedView, ServedView, ViewRules, WrittenView
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.rounds.small_views import SmallViews
from lithify.reports.pulsar.rounds import TopicRoundReport
from lithify.service.pulsar.partition_round import RoundPorts
from lithify.service.pulsar.rounds import RoundRequest, compact_topic
from lithify.testing.fake_clock import FakeClock
from support.faults.ports import FaultyPort, Injector
from support.pulsar.entries import Sent
from support.pulsar.fake_cluster import FakePulsar
from support.pulsar.ledgers import Closed

TOPIC = "persistent://t/n/states"


def messages(numbers: Sequence[int], keys: int = 7) -> list[Sent]:
    return [Sent(f"k{number % keys}", b"" if number % 11 == 0 else b"%d" % number) for number in numbers]


def a_cluster(*, partitions: int = 0) -> FakePulsar:
    """A topic with a view and messages after it."""
    cluster = FakePulsar()
    names = [f"{TOPIC}-partition-{number}" for number in range(partitions)] or [TOPIC]
    for name in names:
        cluster.send(name, *messages(range(1, 36)))
    assert not a_round(cluster).failed
    for name in names:
        cluster.trim(name)
        cluster.send(name, *messages(range(36, 60)))
    return cluster


def a_round(
    cluster: FakePulsar, striker: Injector | None = None, clock: FakeClock | None = None, *, small: bool = False
) -> TopicRoundReport:
    """A round, on struck ports if there is a striker; a small one is written in this process."""
    struck = StruckSmallViews if small else StruckPulsar
    ports: Any = cluster if striker is None else struck(cluster, striker)
    world = RoundPorts(ports, ports, ports.open_ledgers, clock or FakeClock())
    return compact_topic(world, RoundRequest(TOPIC), lambda *_: None)


@dataclass(frozen=True, slots=True)
class StruckPulsar:
    """The same cluster with its holds, its ledgers and its engine behind ports that can be struck."""

    real: FakePulsar
    striker: Injector

    def __getattr__(self, name: str) -> Any:
        return getattr(FaultyPort(self.real, self.striker), name)

    @contextmanager
    def hold(self, partition: str) -> Iterator[Any]:
        with self.striker.call("hold", lambda: self.real.hold(partition)) as hold:
            yield FaultyPort(hold, self.striker)

    @contextmanager
    def open_ledgers(self) -> Iterator[Any]:
        with self.striker.call("open_ledgers", self.real.open_ledgers) as ledgers:
            yield FaultyPort(ledgers, self.striker)

    def write(
        self, views: Sequence[PlannedView], rules: ViewRules, limits: RunLimits, run_id: str, progress: Progress
    ) -> Mapping[str, WrittenView | LithifyError]:
        """Struck also after it has made a ledger that it never names, as a task does that is killed."""
        self.striker.call("create", lambda: self.real.begin_view(views[0].partition, run_id))
        written = self.striker.call("write", lambda: self.real.write(views, rules, limits, run_id, progress))
        return {name: replace(view, sole=False) for name, view in written.items()}


class StruckSmallViews(StruckPulsar):
    """The same, where views are written in this process: each call of their readers and ledgers can be struck."""

    def write(
        self, views: Sequence[PlannedView], rules: ViewRules, limits: RunLimits, run_id: str, progress: Progress
    ) -> Mapping[str, WrittenView | LithifyError]:
        engine = SmallViews(self.real, self._reader, self._open_new, time.monotonic, time.sleep, lambda: "seed")
        return engine.write(views, rules, limits, run_id, progress)

    def _reader(self, partition: str, _small_entries: bool) -> Any:
        return FaultyPort(PartitionReader(self.real, partition), self.striker)

    @contextmanager
    def _open_new(self) -> Iterator[Any]:
        with self.striker.call("open_new", lambda: nullcontext(NewLedger(self.real))) as ledger:
            yield FaultyPort(ledger, self.striker)


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """An `EntryReader` of a partition of a fake cluster, in lists of four entries."""

    cluster: FakePulsar
    partition: str

    def read(self, start: MessageId | None, end: MessageId, *, compacted: bool = False) -> Iterator[list[RawEntry]]:
        wanted = EntryRange(start, end, 0, ServedView(0, 0) if compacted else None)
        entries = self.cluster._read(self.partition, wanted)
        return (entries[at : at + 4] for at in range(0, len(entries), 4))


@dataclass(slots=True)
class NewLedger:
    """A `LedgerWriter` of a fake cluster."""

    cluster: FakePulsar
    ledger: int = -1

    def create(self, topic: str, horizon: MessageId, run_id: str) -> int:
        self.ledger = self.cluster.begin_view(topic, run_id, horizon)
        return self.ledger

    def append(self, entries: Sequence[bytes]) -> None:
        self.cluster.views[self.ledger].entries += entries

    def close(self) -> Closed:
        return Closed(len(self.cluster.views[self.ledger].entries))

    def delete(self, ledger: int) -> None:
        self.cluster.delete(ledger)
