"""What is known of a live partition is of one moment, though it takes several calls (C55)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.pulsar.client import ClientConfig
from lithify.pulsar.live import live_cluster as live
from lithify.pulsar.live.live_cluster import LiveCluster
from lithify.service.pulsar.planning import plan_round

TOPIC = "persistent://t/n/states"
FULL = 20


@dataclass
class GrowingTopic:
    """A topic in which more than a ledger is written between any two calls."""

    entries: int = 10
    calls: list[str] = field(default_factory=list)

    def asked(self, call: str) -> None:
        self.calls.append(call)
        self.entries += 30

    def internal_stats(self, _topic: str) -> dict[str, Any]:
        self.asked("statistics")
        full, current = divmod(self.entries, FULL)
        ledgers = [{"ledgerId": number, "entries": FULL, "size": FULL} for number in range(full)]
        return {
            "ledgers": [*ledgers, {"ledgerId": full, "entries": 0, "size": 0}],
            "currentLedgerEntries": current,
            "currentLedgerSize": current,
            "compactedLedger": {"ledgerId": -1, "entries": -1, "size": -1},
            "cursors": {},
        }

    def last_id(self, _topic: str) -> MessageId:
        self.asked("last message")
        return MessageId(*divmod(self.entries - 1, FULL))


def test_a_round_reads_all_entries_up_to_its_end_while_ledgers_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    """C55: or they were in no view, and skipped by the next round."""
    topic = GrowingTopic()
    monkeypatch.setattr(live, "Admin", lambda _config: topic)
    monkeypatch.setattr(live, "Cluster", lambda _config: topic)
    view = plan_round(TOPIC, LiveCluster(ClientConfig("pulsar://h:1", "http://h:2")).look(TOPIC)).view
    assert topic.calls == ["last message", "statistics"]
    assert view is not None
    (entries,) = view.ranges
    assert (entries.start, entries.end) == (MessageId(0, 0), view.horizon)
    assert entries.size_bytes == view.horizon.ledger * FULL + view.horizon.entry + 1


@dataclass
class DroppedTopic:
    """A topic whose subscription of rounds has `properties`; None: its compacted ledger is gone."""

    properties: dict[str, str] | None
    dropped: list[str] = field(default_factory=list)

    def subscriptions(self, _topic: str) -> tuple[str, ...]:
        return () if self.dropped else ("billing", live.COMPACTION)

    def internal_stats(self, topic: str) -> dict[str, Any]:
        if self.properties is None:
            raise BrokerError(f"{topic}: NoSuchLedgerExistsOnMetadataServer")
        return {"cursors": {live.COMPACTION: {"properties": self.properties}}}

    def delete_subscription(self, _topic: str, subscription: str) -> None:
        self.dropped.append(subscription)

    def unload(self, topic: str) -> None:
        self.dropped.append(topic)


@pytest.mark.parametrize(("properties", "had_view"), [({live.VIEW: "7"}, True), (None, True), ({}, False)])
def test_a_view_is_dropped_only_where_there_was_one(
    properties: dict[str, str] | None, had_view: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C55: a first round that was killed leaves a subscription, which goes."""
    topic = DroppedTopic(properties)
    monkeypatch.setattr(live, "Admin", lambda _config: topic)
    cluster = LiveCluster(ClientConfig("pulsar://h:1", "http://h:2"))
    assert [cluster.drop_view(TOPIC) for _ in range(2)] == [had_view, False]
    assert topic.dropped == [live.COMPACTION, TOPIC]
