"""Rounds of a fake cluster with ports at whose N-th call something happens (`support/faults/ports.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lithify.errors import LithifyError
from lithify.ports.engine import Progress, RunLimits
from lithify.ports.pulsar.views import PlannedView, ViewRules, WrittenView
from lithify.reports.pulsar.rounds import TopicRoundReport
from lithify.service.pulsar.partition_round import RoundPorts
from lithify.service.pulsar.rounds import RoundRequest, compact_topic
from lithify.testing.fake_clock import FakeClock
from support.faults.ports import FaultyPort, Injector
from support.pulsar.entries import Sent
from support.pulsar.fake_cluster import FakePulsar

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


def a_round(cluster: FakePulsar, striker: Injector | None = None, clock: FakeClock | None = None) -> TopicRoundReport:
    """A round, on struck ports if there is a striker."""
    ports: Any = cluster if striker is None else StruckPulsar(cluster, striker)
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
