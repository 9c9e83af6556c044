"""Gateways that coordinate one group of Kafka's clients, without sockets: what each holds, and what it commits."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import lithify
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.committed import Commit, Committed, Place
from lithify.kafka_server.groups.gateways import LEASE_MS
from lithify.kafka_server.groups.offsets import Offsets
from lithify.kafka_server.groups.tenure import Tenure
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.testing import memory_lake
from lithify.testing.fake_clock import FakeClock

GROUP, ORDERS = "billing", TopicName("shop", "orders")
FIRST, SECOND = ("shop.orders", 0), ("shop.orders", 1)


@dataclass
class OneTopic:
    """Serves `shop.orders` as it is at each moment."""

    lake: lithify.Lake = field(default_factory=memory_lake)
    topic_id: bytes = bytes(16)
    error: lithify.LithifyError | None = None
    meanwhile: Callable[[], None] = lambda: None
    """Happens while it is asked."""
    begun: int = 0
    """How often the catalog was to be checked anew."""
    old: TopicState | None = None
    """What it serves until then; None: the newest version."""

    def __post_init__(self) -> None:
        self.made = self.lake.create_topic("shop/orders", 2)

    @property
    def state(self) -> TopicState:
        if self.old is not None:
            return self.old
        return self.lake.warehouse.store.load(ORDERS)

    def topic(self, which: str | bytes, *, after: int = -1) -> OneTopic | None:
        if self.error is not None:
            raise self.error
        self.meanwhile()
        if after >= self.begun:
            self.begun, self.old = after + 1, None
        return self if which == "shop.orders" else None

    def names(self) -> dict[str, TopicName]:
        return {"shop.orders": ORDERS}


@dataclass
class Server:
    """A gateway's part of a group."""

    tenure: Tenure
    offsets: Offsets

    def commit(self, *offsets: int) -> list[Code]:
        commits = {("shop.orders", n): Commit(offset) for n, offset in enumerate(offsets)}
        return [*self.offsets.commit(GROUP, commits, refusal=Code.UNKNOWN_MEMBER_ID).values()]

    def fetched(self, places: Collection[Place] | None) -> dict[Place, Committed] | Code:
        return self.offsets.fetch({GROUP: places})[GROUP]

    def committed(self) -> list[int]:
        found = self.fetched(None)
        assert not isinstance(found, Code)
        return [committed.offset for _, committed in sorted(found.items())]


def wait(clock: FakeClock, *running: Tenure, ms: int = LEASE_MS + 1_000) -> None:
    """Time passes, second by second, for gateways that are not frozen."""
    for _ in range(ms // 1_000):
        clock.advance(1_000)
        for tenure in running:
            tenure.beat()
